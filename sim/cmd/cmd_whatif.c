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
#include "sim/cmd/version.h"
#include "sim/cmd/whatif_run.h"
#include "sim/report/result_json.h"

struct settings {
    struct opt_list find;
    double rate_step, rate_max;
    int64_t max_groups, extra;
    const char *json;
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
    {0},
};

/* Everything that one call holds. */
struct session {
    struct settings *settings;
    struct whatif_file file;
    struct whatif_row *row;
    struct whatif_report report;
    struct outfile json;
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

static int check(struct session *s, struct err *err)
{
    const struct settings *set = s->settings;
    double steps = floor(set->rate_max / set->rate_step + 1e-9);
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

static int write_json(struct session *s, struct err *err)
{
    json_t *document = json_object();
    json_object_set_new(document, "wavetank", json_string(WAVETANK_VERSION));
    json_object_set_new(document, "cases", whatif_json(&s->report));
    result_json_write(document, s->json.f);
    json_decref(document);
    return outfile_commit(&s->json, err);
}

static int print(const struct session *s, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    whatif_print(&s->report, o.f);
    return outfile_commit(&o, err);
}

/* The output is opened before anything runs, so that a bad path costs no simulation. */
static int run_session(struct session *s, const char *path, struct err *err)
{
    const char *json = s->settings->json;
    if (check(s, err) < 0 || whatif_file_load(&s->file, path, err) < 0 ||
        check_slo(s, path, err) < 0 || (json != NULL && outfile_open(&s->json, json, err) < 0))
        return -1;
    s->row = xcalloc((size_t)s->file.n, sizeof *s->row);
    s->report.row = s->row;
    s->report.n = s->file.n;
    if (answer_all(s, path, err) < 0 || (json != NULL && write_json(s, err) < 0))
        return -1;
    return json != NULL && strcmp(json, "-") == 0 ? 0 : print(s, err);
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
    struct settings settings = {0};
    int rc = cmd_main(&whatif_manual, &settings, run, argc, argv);
    opt_release(options, &settings);
    return rc;
}
