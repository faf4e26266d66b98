/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank sim TRACE: replay a trace under layout policies and compare them.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/plan_recorder.h"
#include "sim/cmd/scenario.h"
#include "sim/cmd/version.h"
#include "sim/report/requests_csv.h"
#include "sim/report/result_json.h"
#include "sim/report/timeline.h"

struct settings {
    struct scenario_options run;
    const char *scenario, *json, *requests, *plan;
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
static const char *const file_options[] = {
    "scenario", "json", "requests", "plan", "timeline", "timeline_from_s", "timeline_to_s"};

enum { N_FILE_OPTIONS = sizeof file_options / sizeof *file_options };

/* Everything that one call holds. */
struct session {
    struct settings settings;
    json_t *document; /* of --scenario; its strings are borrowed by settings */
    struct scenario scenario;
    struct plan_recorder recorder;
    struct timeline timeline;
    struct outfile json, requests, plan;
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
    const char *const path[] = {s->json, s->requests, s->plan, s->timeline.path};
    int n = 0;
    for (int i = 0; i < 4; i++)
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
        return err_set(err,
                       "--json, --requests, --plan, --timeline: only one of them may be \"-\"");
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
    if (open_output(&s->json, set->json, err) < 0 ||
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
    timeline_span(&((struct session *)session)->timeline, r);
}

static int run_lineup(struct session *s, struct err *err)
{
    struct engine_observer observer = {
        .step = s->plan.f != NULL ? record_step : NULL,
        .span = s->settings.timeline.path != NULL ? record_span : NULL,
        .context = s,
    };
    if (scenario_run(&s->scenario, &observer, err) < 0)
        return -1;
    if (s->plan.f != NULL && s->recorder.written == 0)
        fputs("wavetank: --plan: no step was selected\n", stderr);
    return 0;
}

static void count_tokens(const struct trace *t, int64_t *input_tokens, int64_t *output_tokens)
{
    *input_tokens = *output_tokens = 0;
    for (size_t i = 0; i < t->n; i++) {
        *input_tokens += t->request[i].input_tokens;
        *output_tokens += t->request[i].output_tokens;
    }
}

static json_t *trace_json(const struct trace *t)
{
    int64_t input_tokens, output_tokens, skipped = 0;
    json_t *obj = json_object(), *path = json_string(t->path);
    count_tokens(t, &input_tokens, &output_tokens);
    for (int i = 0; i < SKIP_COUNT; i++)
        skipped += t->skipped[i];
    json_object_set_new(obj, "path", path != NULL ? path : json_string("(not UTF-8)"));
    json_object_set_new(obj, "format", json_string(t->format));
    json_object_set_new(obj, "requests", json_integer((json_int_t)t->n));
    json_object_set_new(obj, "skipped", json_integer(skipped));
    json_object_set_new(obj, "span_s", json_num(ps_to_s(t->last_ps)));
    json_object_set_new(obj, "input_tokens_total", json_integer(input_tokens));
    json_object_set_new(obj, "output_tokens_total", json_integer(output_tokens));
    return obj;
}

static json_t *run_json(const struct session *s, const struct summary *summary, int i)
{
    const struct summary_row *row = &summary->row[i];
    const struct setup *setup = &s->scenario.setup;
    const struct run_result *yardstick = summary_yardstick(summary);
    json_t *run = result_json(row->policy, row->result, setup->layout, setup->n_layouts);
    double frac;
    if (yardstick != NULL)
        json_object_set_new(run, "regret_frac",
                            summary_regret(row->result, yardstick, &frac) ? json_num(frac)
                                                                          : json_null());
    return run;
}

static void write_json(const struct session *s, const struct summary *summary, FILE *out)
{
    json_t *doc = json_object(), *runs = json_array(), *set = opt_dump(options, &s->settings);
    for (int i = 0; i < N_FILE_OPTIONS; i++)
        json_object_del(set, file_options[i]);
    for (int i = 0; i < summary->n; i++)
        json_array_append_new(runs, run_json(s, summary, i));
    json_object_set_new(doc, "wavetank", json_string(WAVETANK_VERSION));
    json_object_set_new(doc, "trace", trace_json(&s->scenario.trace));
    json_object_set_new(doc, "model", json_string(s->scenario.setup.model.name));
    json_object_set_new(doc, "cluster", json_string(s->scenario.setup.cluster.name));
    json_object_set_new(doc, "scenario", set);
    json_object_set_new(doc, "runs", runs);
    result_json_write(doc, out);
    json_decref(doc);
}

static void write_requests(const struct session *s, const struct summary *summary, FILE *out)
{
    requests_csv_header(out);
    for (int i = 0; i < summary->n; i++)
        requests_csv_run(out, summary->row[i].policy, s->scenario.request, summary->row[i].result);
}

static void print_trace(const struct trace *t, FILE *out)
{
    int64_t input_tokens, output_tokens;
    char requests[32], span[32], input[32], output[32];
    count_tokens(t, &input_tokens, &output_tokens);
    fprintf(out,
            "trace    %s (%s)\n"
            "         %s requests over %s, %s input and %s output tokens\n",
            t->path, t->format, units_count((int64_t)t->n, requests, sizeof requests),
            units_time(t->last_ps, span, sizeof span),
            units_count(input_tokens, input, sizeof input),
            units_count(output_tokens, output, sizeof output));
}

static int print_tables(const struct session *s, const struct summary *summary, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    print_trace(&s->scenario.trace, o.f);
    setup_print(&s->scenario.setup, o.f);
    fputc('\n', o.f);
    summary_print(summary, o.f);
    return outfile_commit(&o, err);
}

static int commit(struct outfile *o, struct err *err)
{
    return o->f != NULL ? outfile_commit(o, err) : 0;
}

static int report(struct session *s, struct err *err)
{
    const struct scenario *scenario = &s->scenario;
    struct summary_row *row = xcalloc((size_t)scenario->lineup.n, sizeof *row);
    struct summary summary = {
        .row = row,
        .n = scenario->lineup.n,
        .layouts = scenario->setup.layout,
        .n_layouts = scenario->setup.n_layouts,
        .has_slo = scenario_has_slo(&s->settings.run),
    };
    lineup_rows(&scenario->lineup, row);
    if (s->json.f != NULL)
        write_json(s, &summary, s->json.f);
    if (s->requests.f != NULL)
        write_requests(s, &summary, s->requests.f);
    int rc = commit(&s->json, err);
    rc = rc == 0 ? commit(&s->requests, err) : rc;
    rc = rc == 0 ? commit(&s->plan, err) : rc;
    rc = rc == 0 ? timeline_close(&s->timeline, s->scenario.request, row[0].result, err) : rc;
    if (rc == 0 && count_stdout(&s->settings) == 0)
        rc = print_tables(s, &summary, err);
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
    outfile_abort(&s->json);
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
    if (parse(&session, argc, argv, &n_args, &help, &err) < 0 ||
        (!help && run(&session, n_args, argv + 1, &err) < 0))
        rc = err_report(&err, "wavetank");
    else if (help)
        manual_print(&sim_manual, stdout);
    release(&session);
    return rc;
}
