/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank validate PLAN MEASURED: the simulator's predictions against a replay's measurements.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/setup.h"
#include "sim/cmd/version.h"
#include "sim/report/result_json.h"
#include "sim/report/validation_html.h"
#include "sim/report/validation_json.h"
#include "sim/report/validation_text.h"
#include "sim/report/validation_timeline.h"
#include "sim/study/prediction.h"

struct settings {
    const char *report, *json, *timeline, *profile;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write the result as one HTML file"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the result as JSON (\"-\": standard output, without the tables)"},
    {"timeline", 0, OPT_STR, FIELD(timeline), "FILE", NULL, 0, 0, NULL,
     "write both sides as a timeline for Perfetto, one above the other (.json or .json.gz)"},
    {"profile", 0, OPT_STR, FIELD(profile), "NAME", NULL, 0, 0, NULL,
     "profile that made PLAN's predictions, for the record; the cluster's own if not given"},
    {0},
};

/* Everything that one call holds. */
struct session {
    struct plan plan, measured;
    struct validation validation;
    struct setup setup;
    struct catalog_doc profile_doc;
    struct err profile_err;
    char *command;
    struct validation_about about;
    struct outfile json, html;
};

/* A plan names no profile. The one that is given, or the cluster's own, is its profile if it
 * predicts most of the steps; a chunk of one row cannot be told from a decoding request. */
static int find_profile(struct session *s, const char *name, struct err *err)
{
    struct validation_about *about = &s->about;
    struct plan part = s->plan; /* the steps measured */
    part.n = s->validation.joined.n;
    char *layouts = plan_layouts(&part), in_file[CATALOG_NAME_SIZE];
    struct setup_options o = {s->plan.header.model, s->plan.header.cluster, name, layouts};
    int rc = setup_load(&s->setup, &o, 64, err);
    free(layouts);
    if (rc < 0)
        return -1;
    name = name != NULL ? name : s->setup.cluster.profile;
    if (catalog_open(&s->profile_doc, "profiles", name, in_file, err) < 0)
        return -1;
    about->profile = s->setup.profile.name;
    about->profile_kind = s->setup.profile.kind;
    about->profile_source = json_object_get(s->profile_doc.json, "source");
    about->profile_predicts = 2 * prediction_matches(s->setup.cost, &part) > part.n;
    return 0;
}

static char *join_command(char **args, const struct settings *set)
{
    return xasprintf("wavetank validate %s %s%s%s%s%s%s%s", args[0], args[1],
                     set->profile ? " --profile " : "", set->profile ? set->profile : "",
                     set->report ? " --report " : "", set->report ? set->report : "",
                     set->json ? " --json " : "", set->json ? set->json : "");
}

static int load(struct session *s, const struct settings *set, char **args, struct err *err)
{
    if (plan_load(&s->plan, args[0], err) < 0 || plan_load(&s->measured, args[1], err) < 0 ||
        validation_init(&s->validation, &s->plan, args[0], &s->measured, args[1], err) < 0)
        return -1;
    s->command = join_command(args, set);
    s->about = (struct validation_about){
        .version = WAVETANK_VERSION,
        .command = s->command,
        .plan_path = args[0],
        .measured_path = args[1],
        .plan = &s->plan.header,
        .measured = &s->measured.header,
        .profile_fault = s->profile_err.text,
    };
    if (set->profile != NULL)
        return find_profile(s, set->profile, err);
    find_profile(s, NULL, &s->profile_err);
    return 0;
}

static int open_output(struct outfile *o, const char *path, struct err *err)
{
    return path != NULL ? outfile_open(o, path, err) : 0;
}

static int commit(struct outfile *o, struct err *err)
{
    return o->f != NULL ? outfile_commit(o, err) : 0;
}

/* JSON and HTML both or none. */
static int write_files(struct session *s, const struct settings *set, struct err *err)
{
    if (open_output(&s->json, set->json, err) < 0 || open_output(&s->html, set->report, err) < 0)
        return -1;
    if (s->json.f != NULL) {
        json_t *document = validation_json(&s->validation, &s->about);
        result_json_write(document, s->json.f);
        json_decref(document);
    }
    if (s->html.f != NULL)
        validation_html(&s->validation, &s->about, s->html.f);
    if (set->timeline != NULL &&
        validation_timeline(&s->validation, &s->about, set->timeline, err) < 0)
        return -1;
    return commit(&s->json, err) < 0 || commit(&s->html, err) < 0 ? -1 : 0;
}

static int print(const struct session *s, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    validation_print(&s->validation, &s->about, o.f);
    return outfile_commit(&o, err);
}

static int count_stdout(const struct settings *set)
{
    const char *const path[] = {set->json, set->report, set->timeline};
    int n = 0;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        n += path[i] != NULL && strcmp(path[i], "-") == 0;
    return n;
}

static int report(struct session *s, const struct settings *set, struct err *err)
{
    const struct joined *j = &s->validation.joined;
    if (j->unmatched > 0)
        fprintf(stderr, "wavetank: %s: the run was cut: %d of the plan's %d steps are missing\n",
                s->about.measured_path, j->unmatched, s->plan.n);
    if (write_files(s, set, err) < 0)
        return -1;
    return count_stdout(set) > 0 ? 0 : print(s, err);
}

static void release(struct session *s)
{
    outfile_abort(&s->json);
    outfile_abort(&s->html);
    free(s->command);
    catalog_close(&s->profile_doc);
    setup_release(&s->setup);
    validation_release(&s->validation);
    plan_release(&s->measured);
    plan_release(&s->plan);
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *set = settings;
    struct session session = {0};
    if (n_args != 2)
        return err_set(err, "validate: expected PLAN and MEASURED (see --help)");
    if (count_stdout(set) > 1)
        return err_set(err, "--json, --report, --timeline: only one of them may be \"-\"");
    int rc = load(&session, set, args, err);
    rc = rc == 0 ? report(&session, set, err) : rc;
    release(&session);
    return rc;
}

const struct manual validate_manual = {
    .name = "validate",
    .what = "compare a plan's predictions with its measurement",
    .synopsis = "validate PLAN MEASURED [option]...",
    .text = "Compares what PLAN predicts with what a replay of it measured (see\n"
            "\"wavetank-replay --help\"): error by step, layout and stage, over the whole\n"
            "schedule, the order of layouts, what switches cost, and where not to believe the\n"
            "simulator. PLAN's predictions count, not those that MEASURED repeats, so that an\n"
            "old measurement can judge a new profile. MEASURED may end early.",
    .options = options,
    .examples = "wavetank validate run.jsonl run.measured.jsonl --report validation.html\n"
                "wavetank validate run.jsonl run.measured.jsonl --timeline trial.json",
    .see_also = "docs/metrics.md, docs/timeline.md",
};

int cmd_validate(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&validate_manual, &settings, run, argc, argv);
}
