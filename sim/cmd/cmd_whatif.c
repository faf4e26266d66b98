/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank whatif SCENARIO.json: a base scenario and variations of it, side by side.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/command_text.h"
#include "sim/cmd/profile_about.h"
#include "sim/cmd/version.h"
#include "sim/cmd/whatif_run.h"
#include "sim/report/result_json.h"
#include "sim/report/whatif_html.h"

struct settings {
    struct opt_list find;
    double rate_step, rate_max;
    int64_t max_groups, extra;
    const char *json, *report;
    char *command; /* as it was typed */
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    {"find", 0, OPT_LIST, FIELD(find), "WHAT", NULL, 0, 0, NULL,
     "answer for every case: max-rate (the highest rate that meets the SLO) or min-gpus (the "
     "fewest GPUs that do)"},
    {"rate-step", 0, OPT_F64, FIELD(rate_step), "X", "0.1", 1e-6, 1e6, NULL,
     "find rates that are multiples of X"},
    {"rate-max", 0, OPT_F64, FIELD(rate_max), "X", "10", 1e-6, 1e6, NULL,
     "the highest rate to try"},
    {"groups-max", 0, OPT_I64, FIELD(max_groups), "N", "8", 2, 1024, NULL,
     "the most groups to try, prefill groups included"},
    {"extra", 0, OPT_I64, FIELD(extra), "N", "4", 0, 10000, NULL,
     "trials after each search, next to the edge, to see whether it is the only one"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the result as JSON (\"-\": standard output, without the tables)"},
    {"report", 0, OPT_STR, FIELD(report), "FILE.html", NULL, 0, 0, NULL,
     "write cases and searches as a page with charts (\"-\": standard output)"},
    {0},
};

/* Everything that one call holds. */
struct session {
    struct settings *settings;
    struct whatif_file file;
    struct whatif_row *row;
    struct whatif_report report;
    struct outfile json, page;
};

static int check_question(const char *word, bool asked[FIND_COUNT], struct err *err)
{
    for (int q = 0; q < FIND_COUNT; q++) {
        if (strcmp(word, whatif_question_names[q]) == 0) {
            asked[q] = true;
            return 0;
        }
    }
    return err_set(err, "--find: must be one of max-rate, min-gpus, got \"%s\"", word);
}

static bool takes_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static int check(struct session *s, struct err *err)
{
    const struct settings *set = s->settings;
    double steps = floor(set->rate_max / set->rate_step + 1e-9);
    if (takes_stdout(set->json) && takes_stdout(set->report))
        return err_set(err, "--json, --report: only one of them may be \"-\"");
    for (int i = 0; i < set->find.n; i++)
        if (check_question(set->find.item[i], s->report.asked, err) < 0)
            return -1;
    if (steps < 1 || steps > 1e9)
        return err_set(err, "--rate-step, --rate-max: %g in steps of %g are no range to search",
                       set->rate_max, set->rate_step);
    s->report.rate_step = set->rate_step;
    s->report.max_rate_steps = (int64_t)steps;
    s->report.max_groups = set->max_groups;
    return 0;
}

static int check_slo(const struct session *s, const char *path, struct err *err)
{
    if (s->settings->find.n == 0)
        return 0;
    for (int i = 0; i < s->file.n; i++)
        if (!scenario_has_slo(&s->file.item[i].options.run))
            return err_set(err, "%s: %s: has no slo, which --find needs", path,
                           s->file.item[i].name);
    return 0;
}

static int answer(struct session *s, int i, struct err *err)
{
    const struct whatif_case *c = &s->file.item[i];
    struct whatif_row *row = &s->row[i];
    if (whatif_answer(c, row, err) < 0)
        return -1;
    for (enum whatif_question q = 0; q < FIND_COUNT; q++)
        if (s->report.asked[q] &&
            whatif_find(c, q, &s->report, (int)s->settings->extra, &row->found[q], err) < 0)
            return -1;
    return 0;
}

/* A failure says in which case. */
static int answer_all(struct session *s, const char *path, struct err *err)
{
    for (int i = 0; i < s->file.n; i++) {
        struct err fault = ERR_NONE;
        if (answer(s, i, &fault) == 0)
            continue;
        err_set(err, "%s: %s: %s", path, s->file.item[i].name, fault.text);
        err->kind = fault.kind;
        return -1;
    }
    return 0;
}

static json_t *document_of(const struct session *s)
{
    json_t *document = json_object();
    json_object_set_new(document, "wavetank", json_string(WAVETANK_VERSION));
    json_object_set_new(document, "cases", whatif_json(&s->report));
    return document;
}

/* The facts are the base's; its options stand beside those of the searches. */
static void write_page(const struct session *s, const json_t *document)
{
    const struct whatif_row *base = &s->row[0];
    const char *named = s->file.item[0].options.run.setup.profile;
    struct profile_about profile;
    struct cluster cluster;
    struct err err = ERR_NONE;
    bool known = named != NULL || cluster_load(&cluster, base->cluster, &err) == 0;
    profile_about_open(&profile, named != NULL ? named : known ? cluster.profile : "?");
    json_t *all = opt_dump(options, s->settings);
    json_object_update(all, base->scenario);
    const struct page_fact facts[] = {{"base's trace", base->trace},
                                      {"model", base->model},
                                      {"cluster", base->cluster},
                                      {"base's profile", profile.text},
                                      {"policy", base->policy},
                                      {"SLO", base->has_slo ? base->slo : "none"},
                                      {0}};
    const struct whatif_page page = {
        .about = {facts, "wavetank " WAVETANK_VERSION, s->settings->command, profile.source, all},
        .report = &s->report,
        .result = document,
    };
    whatif_html(&page, s->page.f);
    json_decref(all);
    profile_about_close(&profile);
}

static int write_files(struct session *s, struct err *err)
{
    json_t *document = document_of(s);
    int rc = 0;
    if (s->settings->json != NULL) {
        result_json_write(document, s->json.f);
        rc = outfile_commit(&s->json, err);
    }
    if (rc == 0 && s->settings->report != NULL) {
        write_page(s, document);
        rc = outfile_commit(&s->page, err);
    }
    json_decref(document);
    return rc;
}

static int print(const struct session *s, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    whatif_print(&s->report, o.f);
    return outfile_commit(&o, err);
}

/* Before anything runs, so that a bad path costs no simulation. */
static int open_outputs(struct session *s, struct err *err)
{
    const struct settings *set = s->settings;
    if (set->json != NULL && outfile_open(&s->json, set->json, err) < 0)
        return -1;
    return set->report != NULL ? outfile_open(&s->page, set->report, err) : 0;
}

static int run_session(struct session *s, const char *path, struct err *err)
{
    const struct settings *set = s->settings;
    if (check(s, err) < 0 || whatif_file_load(&s->file, path, err) < 0 ||
        check_slo(s, path, err) < 0 || open_outputs(s, err) < 0)
        return -1;
    s->row = xcalloc((size_t)s->file.n, sizeof *s->row);
    s->report.row = s->row;
    s->report.n = s->file.n;
    if (answer_all(s, path, err) < 0 || write_files(s, err) < 0)
        return -1;
    return takes_stdout(set->json) || takes_stdout(set->report) ? 0 : print(s, err);
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct session s = {.settings = settings};
    if (n_args != 1)
        return err_set(err, "whatif: expected one SCENARIO.json (see --help)");
    int rc = run_session(&s, args[0], err);
    for (int i = 0; s.row != NULL && i < s.file.n; i++)
        whatif_row_release(&s.row[i]);
    free(s.row);
    outfile_abort(&s.json);
    outfile_abort(&s.page);
    whatif_file_release(&s.file);
    return rc;
}

const struct manual whatif_manual = {
    .name = "whatif",
    .what = "compare a scenario with variations of it: SLO, speed, cost",
    .synopsis = "whatif SCENARIO.json [option]...",
    .text = "Simulates a base scenario and variations of it: whether each keeps its SLO, how\n"
            "fast it is and what it costs. The file holds \"base\" (options of \"wavetank sim\",\n"
            "and trace, slo_attained_frac, price_per_gpu_hour) and \"variations\", each with a\n"
            "\"name\" and what it does \"set\" anew.",
    .options = options,
    .examples = "wavetank whatif docs/scenarios/capacity.json --find max-rate",
    .see_also = "docs/whatif.md",
};

int cmd_whatif(int argc, char **argv)
{
    struct settings settings = {.command = command_text(argc, argv)};
    int rc = cmd_main(&whatif_manual, &settings, run, argc, argv);
    opt_release(options, &settings);
    free(settings.command);
    return rc;
}
