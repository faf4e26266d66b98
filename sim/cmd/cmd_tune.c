/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank tune TRACE...: a policy's options by trying them, on all cores and many machines.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/command_text.h"
#include "sim/cmd/profile_about.h"
#include "sim/cmd/run_labels.h"
#include "sim/cmd/version.h"
#include "sim/report/tune_html.h"

enum { JOBS_MAX = 256, SEEDS_MAX = 10000 };

struct settings {
    struct run_settings run;
    struct draw_options draws;
    struct opt_list grid;
    const char *objective, *db, *csv, *report;
    int64_t random, jobs, top;
    bool halving;
    char *command; /* no option: how the page was asked for */
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    SETUP_MACHINE_OPTS(FIELD(run.setup)),
    SETUP_LAYOUTS_OPT(FIELD(run.setup)),
    RUN_OPTS(FIELD(run)),
    ENGINE_OPTS(FIELD(run.engine)),
    {"grid", 0, OPT_LIST, FIELD(grid), "NAME=VALUES", NULL, 0, 0, NULL,
     "try an option's values: margin=0:0.3:0.02, persist=1:8, dwell_ms=0,50,200; the policy's "
     "options, or any above"},
    {"random", 0, OPT_I64, FIELD(random), "N", "0", 0, STUDY_RUNS_MAX, NULL,
     "so many settings of the grid by lot (0: all)"},
    {"halving", 0, OPT_FLAG, FIELD(halving), NULL, NULL, 0, 0, NULL,
     "all settings on a ninth of each trace, the best third on a third, and of those the best "
     "third on all"},
    {"objective", 0, OPT_STR, FIELD(objective), "WHAT", "e2e", 0, 0, NULL,
     "what to make least: e2e, makespan, goodput, ttft-p99, tpot-p99, switch-penalty, or "
     "arithmetic over metrics, as in \"e2e_s_mean + 0.01 * switches\""},
    {"seeds", 0, OPT_I64, FIELD(draws.seeds), "N", "1", 1, SEEDS_MAX, NULL,
     "draw each trace anew with so many seeds, from --seed on"},
    {"seed", 0, OPT_I64, FIELD(draws.reading.seed), "N", "0", 0, 9e17, NULL,
     "the first seed; also that of --random"},
    {"count", 0, OPT_I64, FIELD(draws.count), "N", "0", 0, 1e6, NULL,
     "of gen: traces, so many sessions, steps or documents (0: as the preset says)"},
    {"db", 0, OPT_STR, FIELD(db), "FILE", NULL, 0, 0, NULL,
     "keep every run here, and do none again that is there (wavetank help db)"},
    {"jobs", 'j', OPT_I64, FIELD(jobs), "N", "0", 0, JOBS_MAX, NULL,
     "runs at a time (0: one per core; under mpirun one in each process)"},
    {"csv", 0, OPT_STR, FIELD(csv), "FILE", NULL, 0, 0, NULL,
     "write one row per setting (\"-\": standard output, without the tables)"},
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write the study as one HTML page, with maps of the options"},
    {"top", 0, OPT_I64, FIELD(top), "N", "10", 1, 1e6, NULL, "settings in the table"},
    TRACE_READING_OPTS(FIELD(draws.reading)),
    TRACE_SELECT_OPTS(FIELD(draws.select)),
    {0},
};

/* Everything that one process holds. */
struct session {
    struct settings settings;
    struct ranks ranks;
    struct grid grid;
    struct formula objective;
    struct draws draws;
    char **trace; /* as typed */
    int n_traces;
    int64_t *point;
    struct study study;
    struct tune_runs runs;
    struct run_labels labels;
    struct run_store *store;
    struct outfile csv, page;
};

static bool takes_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static int check(struct session *s, int n_args, struct err *err)
{
    const struct settings *set = &s->settings;
    if (n_args == 0)
        return err_set(err, "tune: expected a TRACE or more (see --help)");
    if (takes_stdout(set->csv) && takes_stdout(set->report))
        return err_set(err, "--csv, --report: only one of them may be \"-\"");
    if (set->run.setup.model == NULL)
        return err_set(err, "--model: missing; see \"wavetank list models\"");
    if (set->run.setup.cluster == NULL)
        return err_set(err, "--cluster: missing; see \"wavetank list clusters\"");
    if (set->grid.n == 0)
        return err_set(err, "--grid: missing; say what to try, as in --grid margin=0:0.3:0.05");
    for (int i = 0; i < set->grid.n; i++)
        if (grid_add(&s->grid, set->grid.item[i], err) < 0)
            return -1;
    if (set->random == 0 && grid_points(&s->grid) > STUDY_RUNS_MAX)
        return err_set(err,
                       "--grid: %lld settings are more than %d; take fewer values, or some by "
                       "lot with --random N",
                       (long long)grid_points(&s->grid), STUDY_RUNS_MAX);
    return formula_parse(&s->objective, "--objective", set->objective, err);
}

static int choose_settings(struct session *s, struct err *err)
{
    const struct settings *set = &s->settings;
    int64_t n = set->random > 0 ? set->random : STUDY_RUNS_MAX;
    n = grid_choose(&s->grid, n, (uint64_t)set->draws.reading.seed, &s->point);
    s->study = (struct study){
        .grid = &s->grid,
        .point = s->point,
        .n = n,
        .draws = {.n = s->draws.n, .trace = s->draws.trace},
        .rungs = set->halving ? STUDY_RUNGS_MAX : 1,
        .objective = &s->objective,
    };
    if (study_runs(&s->study) > STUDY_RUNS_MAX)
        return err_set(err, "tune: %lld runs are more than %d; take fewer values or seeds",
                       (long long)study_runs(&s->study), STUDY_RUNS_MAX);
    s->runs = (struct tune_runs){
        .base = &set->run, .draw_options = &set->draws, .draws = &s->draws, .study = &s->study};
    return tune_runs_check(&s->runs, err);
}

/* What every process does, each for itself. */
static int prepare(struct session *s, int n_args, char **args, struct err *err)
{
    FILE *notes = s->ranks.rank == 0 ? stderr : NULL;
    if (check(s, n_args, err) < 0 ||
        draws_load(&s->draws, &s->settings.draws, n_args, args, notes, err) < 0)
        return -1;
    return choose_settings(s, err);
}

/* What only the first does. */
static int open_outputs(struct session *s, struct err *err)
{
    const struct settings *set = &s->settings;
    if (set->csv != NULL && outfile_open(&s->csv, set->csv, err) < 0)
        return -1;
    if (set->report != NULL && outfile_open(&s->page, set->report, err) < 0)
        return -1;
    if (set->db == NULL)
        return 0;
    run_labels_init(&s->labels, &s->runs);
    s->store = run_store_open(set->db, err);
    return s->store != NULL ? 0 : -1;
}

static int threads(const struct session *s)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (s->settings.jobs > 0)
        return (int)s->settings.jobs;
    return s->ranks.n > 1 || cores < 1 ? 1 : cores < JOBS_MAX ? (int)cores : JOBS_MAX;
}

/* The recommended setting as it is typed; to be freed. NULL: there is none. */
static char *recommended(const struct session *s, const struct findings *f)
{
    struct run_setting r;
    struct err err = ERR_NONE;
    if (f->best < 0 || run_setting_make(&r, &s->runs, f->best, &err) < 0)
        return NULL;
    char *options_text = run_setting_options(&s->runs, f->best);
    char *text = xasprintf("--policy %s%s", r.policy, options_text);
    free(options_text);
    run_setting_release(&r);
    return text;
}

static int print(const struct tune_report *report, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    tune_text_print(report, o.f);
    return outfile_commit(&o, err);
}

static char *join(int n, char **text)
{
    char *all = xstrdup("");
    for (int i = 0; i < n; i++) {
        char *more = xasprintf("%s%s%s", all, i > 0 ? ", " : "", text[i]);
        free(all);
        all = more;
    }
    return all;
}

/* What the grid leaves alone. */
static void write_page(const struct session *s, const struct tune_report *report)
{
    const struct settings *set = &s->settings;
    const struct setup_options *setup = &set->run.setup;
    struct profile_about profile;
    struct cluster cluster;
    struct err err = ERR_NONE;
    char *traces = join(s->n_traces, s->trace);
    json_t *options_json = opt_dump(options, set);
    bool named = setup->profile != NULL || cluster_load(&cluster, setup->cluster, &err) == 0;
    profile_about_open(&profile, setup->profile ? setup->profile : named ? cluster.profile : "?");
    const struct page_fact facts[] = {{"traces", traces},
                                      {"model", setup->model},
                                      {"cluster", setup->cluster},
                                      {"profile", profile.text},
                                      {"policy", set->run.policy},
                                      {"goal", set->objective},
                                      {0}};
    const struct page_about about = {facts, "wavetank " WAVETANK_VERSION, set->command,
                                     profile.source, options_json};
    tune_html(report, &about, s->page.f);
    profile_about_close(&profile);
    json_decref(options_json);
    free(traces);
}

static int write_all(struct session *s, const struct tune_report *report, struct err *err)
{
    const struct settings *set = &s->settings;
    int rc = 0;
    if (set->csv != NULL) {
        tune_csv_write(report->findings, s->csv.f);
        rc = outfile_commit(&s->csv, err);
    }
    if (rc == 0 && set->report != NULL) {
        write_page(s, report);
        rc = outfile_commit(&s->page, err);
    }
    if (rc < 0 || takes_stdout(set->csv) || takes_stdout(set->report))
        return rc;
    return print(report, err);
}

static int report(struct session *s, int workers, uint64_t began_ns, struct err *err)
{
    struct findings f;
    findings_make(&f, &s->study, (uint64_t)s->settings.draws.reading.seed);
    char *setting = recommended(s, &f);
    const struct tune_report report = {
        .findings = &f,
        .objective = s->settings.objective,
        .store = s->settings.db,
        .setting = setting,
        .traces = s->draws.traces,
        .seedless = s->draws.seedless,
        .workers = workers,
        .seeds = s->settings.draws.seeds,
        .top = s->settings.top,
        .wall_ns = wall_ns() - began_ns,
    };
    int rc = write_all(s, &report, err);
    free(setting);
    findings_release(&f);
    return rc;
}

static int lead(struct session *s, const struct team_task *task, struct err *err)
{
    uint64_t began_ns = wall_ns();
    struct team *team = team_new(&s->ranks, threads(s), task);
    int rc = study_run(&s->study, team, s->store, run_labels_make, &s->labels, err);
    int workers = team_size(team);
    team_dismiss(team);
    team_free(team);
    return rc < 0 ? -1 : report(s, workers, began_ns, err);
}

/* Of several processes that fail alike, the first one speaks. */
static int work(struct session *s, int n_args, char **args, struct err *err)
{
    struct team_task task = {.worker_new = tune_worker_new,
                             .worker_free = tune_worker_free,
                             .work = tune_worker_run,
                             .context = &s->runs};
    int rc = prepare(s, n_args, args, err);
    s->trace = args;
    s->n_traces = n_args;
    if (rc == 0 && s->ranks.rank == 0)
        rc = open_outputs(s, err);
    int failed = ranks_first_failed(&s->ranks, rc < 0);
    if (failed >= 0)
        return failed == s->ranks.rank ? -1 : 1;
    if (s->ranks.rank == 0)
        return lead(s, &task, err);
    team_follow(&task);
    return 0;
}

static void release(struct session *s)
{
    outfile_abort(&s->csv);
    outfile_abort(&s->page);
    run_store_close(s->store);
    run_labels_release(&s->labels);
    study_release(&s->study);
    free(s->point);
    draws_release(&s->draws);
    grid_release(&s->grid);
    opt_release(options, &s->settings);
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct session s = {.settings = *(struct settings *)settings};
    if (ranks_begin(&s.ranks, err) < 0)
        return -1;
    int rc = work(&s, n_args, args, err);
    release(&s);
    ranks_end(&s.ranks);
    return rc;
}

const struct manual tune_manual = {
    .name = "tune",
    .what = "try a policy's options and say which are best",
    .synopsis = "tune TRACE... --model NAME --cluster NAME --grid NAME=VALUES...",
    .text = "Tries a policy's options on traces and says which are best, what each matters\n"
            "and how sure that is. A TRACE is a file, or gen:WORKLOAD[:PRESET], drawn by\n"
            "seed (\"wavetank list presets\"). Runs go to all cores, and with mpirun to many\n"
            "machines; with --db a study that was stopped goes on where it was.",
    .options = options,
    .examples = "wavetank tune traces/samples/azure_2023_code.csv \\\n"
                "    --model deepseek-v3.2 --cluster b200x8 --grid margin=0:0.3:0.05 \\\n"
                "    --grid dwell_ms=0,50,200 --db study.db --report study.html",
    .see_also = "docs/tuning.md",
};

int cmd_tune(int argc, char **argv)
{
    struct settings settings = {.command = command_text(argc, argv)};
    int rc = cmd_main(&tune_manual, &settings, run, argc, argv);
    free(settings.command);
    return rc;
}
