/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank sim TRACE: replay a trace under layout policies and compare them.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/command_text.h"
#include "sim/cmd/plan_recorder.h"
#include "sim/cmd/scenario.h"
#include "sim/cmd/sim_output.h"
#include "sim/cmd/version.h"
#include "sim/report/requests_csv.h"
#include "sim/report/result_json.h"
#include "sim/report/timeline.h"

struct settings {
    struct scenario_options run;
    const char *scenario, *json, *report, *requests, *plan;
    struct plan_options plan_options;
    struct timeline_options timeline;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    SETUP_MACHINE_OPTS(FIELD(run.setup)),
    SETUP_LAYOUTS_OPT(FIELD(run.setup)),
    SCENARIO_OPTS(FIELD(run)),
    {"scenario", 0, OPT_STR, FIELD(scenario), "FILE", NULL, 0, 0, NULL,
     "JSON object of options, or a result that holds one; the command line wins"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the result as JSON (\"-\": standard output, without the tables)"},
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write the result as one HTML page with charts of what every policy did over time"},
    {"requests", 0, OPT_STR, FIELD(requests), "FILE", NULL, 0, 0, NULL,
     "write one CSV row per request and policy"},
    {"plan", 0, OPT_STR, FIELD(plan), "FILE", NULL, 0, 0, NULL,
     "write the steps of the one policy that runs, to replay them"},
    PLAN_OPTS(FIELD(plan_options)),
    TIMELINE_OPTS(FIELD(timeline)),
    TRACE_READING_OPTS(FIELD(run.reading)),
    TRACE_SELECT_OPTS(FIELD(run.select)),
    ENGINE_OPTS(FIELD(run.engine)),
    {0},
};

/* Results do not depend on these, so that equal runs give equal results wherever they go. */
static const char *const file_options[] = {"scenario",        "json",         "report",
                                           "requests",        "plan",         "timeline",
                                           "timeline_from_s", "timeline_to_s"};

enum { N_FILE_OPTIONS = sizeof file_options / sizeof *file_options };

/* Everything that one call holds. */
struct session {
    struct settings settings;
    json_t *document; /* of --scenario; its strings are borrowed by settings */
    struct scenario scenario;
    struct plan_recorder recorder;
    struct timeline timeline;
    char *command;
    struct course **course; /* of every run, for the page; else NULL */
    struct outfile json, page, requests, plan;
};

/* A result has its own scenario in it. */
static int read_scenario(struct session *s, const char *path, struct err *err)
{
    char *place = NULL;
    s->document = json_load_path(path, err);
    if (s->document == NULL)
        return -1;
    json_t *inner = json_object_get(s->document, "scenario");
    if (inner != NULL && !json_is_object(inner))
        return err_set(err, "%s: .scenario: a scenario names no other", path);
    if (inner != NULL)
        place = xasprintf("%s: .scenario", path);
    int rc = opt_parse_json(options, &s->settings, place != NULL ? place : path,
                            inner != NULL ? inner : s->document, err);
    free(place);
    return rc;
}

/* The command line is read twice: for --scenario, and over what that says. */
static int parse(struct session *s, int argc, char **argv, int *n_args, bool *help, struct err *err)
{
    struct settings typed = {0};
    char **copy = xcalloc((size_t)argc + 1, sizeof *copy);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    opt_defaults(options, &typed);
    opt_defaults(options, &s->settings);
    int rc = opt_parse_argv(options, &typed, argc, copy, n_args, help, err);
    if (rc == 0 && !*help && typed.scenario != NULL)
        rc = read_scenario(s, typed.scenario, err);
    if (rc == 0 && typed.run.policies.n > 0)
        opt_release(options, &s->settings);
    if (rc == 0 && !*help)
        rc = opt_parse_argv(options, &s->settings, argc, argv, n_args, help, err);
    opt_release(options, &typed);
    free(copy);
    return rc;
}

static int count_stdout(const struct settings *s)
{
    const char *const path[] = {s->json, s->report, s->requests, s->plan, s->timeline.path};
    int n = 0;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        n += path[i] != NULL && strcmp(path[i], "-") == 0;
    return n;
}

static bool is_one_run(const struct settings *s)
{
    return s->run.policies.n == 1 && strcmp(s->run.policies.item[0], "best-fixed") != 0;
}

static int check_plan(struct settings *s, struct err *err)
{
    bool selects = s->plan_options.steps != NULL || s->plan_options.around_switches >= 0;
    if (s->plan == NULL)
        return selects ? err_set(err, "--plan-steps, --plan-around-switches: need --plan") : 0;
    struct engine_config *engine = &s->run.engine;
    if (!is_one_run(s))
        return err_set(err, "--plan: a plan is of one run; give exactly one --policy, and not "
                            "best-fixed");
    if (engine->replicas > 1 || engine->prefill_replicas > 0)
        return err_set(err, "--plan: a plan is of one group; leave --replicas at 1 and "
                            "--prefill-replicas at 0");
    if (engine->prefix_cache)
        return err_set(err, "--plan: a replay has no prefix cache; leave --prefix-cache out");
    engine->exact = true;
    return 0;
}

static int check(struct settings *s, struct err *err)
{
    if (count_stdout(s) > 1)
        return err_set(err, "--json, --report, --requests, --plan, --timeline: only one of them "
                            "may be \"-\"");
    if (scenario_check(&s->run, err) < 0 || timeline_check(&s->timeline, is_one_run(s), err) < 0)
        return -1;
    return check_plan(s, err);
}

static int open_output(struct outfile *o, const char *path, struct err *err)
{
    return path != NULL ? outfile_open(o, path, err) : 0;
}

/* Before the run, so that a bad path costs no simulation. */
static int open_outputs(struct session *s, struct err *err)
{
    const struct settings *set = &s->settings;
    if (open_output(&s->json, set->json, err) < 0 || open_output(&s->page, set->report, err) < 0 ||
        open_output(&s->requests, set->requests, err) < 0 ||
        open_output(&s->plan, set->plan, err) < 0)
        return -1;
    if (s->plan.f != NULL)
        plan_recorder_begin(&s->recorder, &s->scenario.setup, (uint64_t)set->run.reading.seed,
                            s->plan.f);
    const struct setup *setup = &s->scenario.setup;
    const struct opt_list *policies = &set->run.policies;
    const struct timeline_about about = {WAVETANK_VERSION, setup->model.name, setup->cluster.name,
                                         policies->n > 0 ? policies->item[0] : ""};
    return timeline_open(&s->timeline, &set->timeline, &about, &set->run.engine, setup->layout,
                         err);
}

static void record_step(void *session, const struct step_record *r)
{
    plan_recorder_step(&((struct session *)session)->recorder, r);
}

static void record_span(void *session, const struct span_record *r)
{
    struct session *s = session;
    if (s->settings.timeline.path != NULL)
        timeline_span(&s->timeline, r);
    if (s->course != NULL)
        course_span(s->course[s->scenario.lineup.running], r);
}

static void watch_courses(struct session *s)
{
    const struct engine_config *c = &s->settings.run.engine;
    int n = s->scenario.lineup.n_runs;
    s->course = xcalloc((size_t)n, sizeof *s->course);
    for (int i = 0; i < n; i++)
        s->course[i] = course_new((int)(c->replicas + c->prefill_replicas));
}

static int run_lineup(struct session *s, struct err *err)
{
    struct engine_observer observer = {
        .step = s->plan.f != NULL ? record_step : NULL,
        .span = s->settings.timeline.path != NULL || s->page.f != NULL ? record_span : NULL,
        .context = s,
    };
    if (s->page.f != NULL)
        watch_courses(s);
    if (scenario_run(&s->scenario, &observer, err) < 0)
        return -1;
    if (s->plan.f != NULL && s->recorder.written == 0)
        fputs("wavetank: --plan: no step was selected\n", stderr);
    return 0;
}

static void write_requests(const struct session *s, const struct summary *summary, FILE *out)
{
    requests_csv_header(out);
    for (int i = 0; i < summary->n; i++)
        requests_csv_run(out, summary->row[i].policy, s->scenario.request, summary->row[i].result);
}

static void write_page(const struct session *s, const struct sim_output *o, const json_t *result)
{
    const struct lineup *l = &s->scenario.lineup;
    struct sim_course *course = xcalloc((size_t)l->n_runs, sizeof *course);
    for (int i = 0; i < l->n_runs; i++)
        course[i] = (struct sim_course){l->run[i].policy, s->course[i]};
    sim_output_page(o, result, course, l->n_runs, s->command, s->page.f);
    free(course);
}

static void write_results(const struct session *s, const struct sim_output *o)
{
    if (s->json.f == NULL && s->page.f == NULL)
        return;
    json_t *result = sim_output_json(o);
    if (s->json.f != NULL)
        result_json_write(result, s->json.f);
    if (s->page.f != NULL)
        write_page(s, o, result);
    json_decref(result);
}

static int print_tables(const struct sim_output *output, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    sim_output_tables(output, o.f);
    return outfile_commit(&o, err);
}

static int commit(struct outfile *o, struct err *err)
{
    return o->f != NULL ? outfile_commit(o, err) : 0;
}

static json_t *scenario_of(const struct settings *set)
{
    json_t *scenario = opt_dump(options, set);
    for (int i = 0; i < N_FILE_OPTIONS; i++)
        json_object_del(scenario, file_options[i]);
    return scenario;
}

static int write_all(struct session *s, const struct summary *summary, struct err *err)
{
    const struct scenario *run = &s->scenario;
    const char *profile = s->settings.run.setup.profile;
    json_t *scenario = scenario_of(&s->settings);
    const struct sim_output output = {&run->setup, &run->trace, summary, scenario,
                                      profile != NULL ? profile : run->setup.cluster.profile};
    write_results(s, &output);
    if (s->requests.f != NULL)
        write_requests(s, summary, s->requests.f);
    int rc = commit(&s->json, err);
    rc = rc == 0 ? commit(&s->page, err) : rc;
    rc = rc == 0 ? commit(&s->requests, err) : rc;
    rc = rc == 0 ? commit(&s->plan, err) : rc;
    rc = rc == 0 ? timeline_close(&s->timeline, run->request, summary->row[0].result, err) : rc;
    if (rc == 0 && count_stdout(&s->settings) == 0)
        rc = print_tables(&output, err);
    json_decref(scenario);
    return rc;
}

static int report(struct session *s, struct err *err)
{
    const struct scenario *scenario = &s->scenario;
    struct summary_row *row = xcalloc((size_t)scenario->lineup.n, sizeof *row);
    const struct summary summary = {
        .row = row,
        .n = scenario->lineup.n,
        .layouts = scenario->setup.layout,
        .n_layouts = scenario->setup.n_layouts,
        .has_slo = scenario_has_slo(&s->settings.run),
    };
    lineup_rows(&scenario->lineup, row);
    int rc = write_all(s, &summary, err);
    free(row);
    return rc;
}

static int run(struct session *s, int n_args, char **args, struct err *err)
{
    struct settings *set = &s->settings;
    if (n_args != 1)
        return err_set(err, "sim: expected one TRACE (see --help)");
    if (check(set, err) < 0 || scenario_load_machine(&s->scenario, &set->run, err) < 0 ||
        plan_recorder_init(&s->recorder, &set->plan_options, err) < 0 ||
        scenario_load_trace(&s->scenario, args[0], err) < 0 || open_outputs(s, err) < 0 ||
        run_lineup(s, err) < 0)
        return -1;
    return report(s, err);
}

static void release(struct session *s)
{
    for (int i = 0; s->course != NULL && i < s->scenario.lineup.n_runs; i++)
        course_free(s->course[i]);
    free(s->course);
    free(s->command);
    outfile_abort(&s->json);
    outfile_abort(&s->page);
    outfile_abort(&s->requests);
    outfile_abort(&s->plan);
    timeline_abort(&s->timeline);
    plan_recorder_release(&s->recorder);
    scenario_release(&s->scenario);
    opt_release(options, &s->settings);
    json_decref(s->document);
}

const struct manual sim_manual = {
    .name = "sim",
    .what = "replay a trace under layout policies and compare them",
    .synopsis = "sim TRACE --model NAME --cluster NAME [option]...",
    .text = "Replays a trace through a group of ranks that batches continuously, once under\n"
            "each policy, and compares latency and throughput. TRACE is a file, a .gz or\n"
            "\"-\" (standard input); \"wavetank help trace\" says how its format is told.",
    .options = options,
    .examples = "wavetank sim traces/samples/azure_2023_code.csv \\\n"
                "    --model deepseek-v3.2 --cluster b200x8\n"
                "wavetank sim TRACE --model deepseek-v3.2 --cluster b200x8 \\\n"
                "    --policy splash --policy best-fixed --slo ttft=2s,tpot=50ms\n"
                "wavetank sim TRACE --model deepseek-v3.2 --cluster b200x8 \\\n"
                "    --policy splash --timeline run.json.gz",
    .see_also = "docs/model.md (formulas), docs/metrics.md (numbers), docs/timeline.md",
};

int cmd_sim(int argc, char **argv)
{
    struct err err = ERR_NONE;
    struct session session = {0};
    bool help = false;
    int n_args = 0, rc = 0;
    session.command = command_text(argc, argv);
    if (parse(&session, argc, argv, &n_args, &help, &err) < 0 ||
        (!help && run(&session, n_args, argv + 1, &err) < 0))
        rc = err_report(&err, "wavetank");
    else if (help)
        manual_print(&sim_manual, stdout);
    release(&session);
    return rc;
}
