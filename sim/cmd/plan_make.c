/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/plan_make.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/setup.h"
#include "sim/study/trial_plans.h"

/* The first two keep a step's time within what the clock can count. */
enum {
    CONTEXT_MAX_TOKENS = 1 << 24,
    REQUESTS_MAX = 512,
    REPEATS_MAX = 200,
    CHUNK_MAX_ROWS = 1 << 16
};

struct settings {
    struct setup_options setup;
    int64_t seed, max_tokens, every;
    struct trial_switches switches;
    const char *out;
    char layouts[64]; /* when none are given */
    const char *source_path;
    struct plan source;
    int left_out; /* by compare */
};

#define FIELD(name) offsetof(struct settings, name)

/* clang-format off */
#define LAYOUTS_OPT                                                                                \
    {"layouts", 0, OPT_STR, offsetof(struct settings, setup.layouts), "LIST", NULL, 0, 0, NULL,    \
     "layouts to try; without it tp, cp, dp, dop and helix with one KVP shard a rank"}
#define OUT_OPT                                                                                    \
    {"out", 'o', OPT_STR, offsetof(struct settings, out), "FILE", NULL, 0, 0, NULL,                \
     "write the plan (\"-\": standard output)"}
#define SEED_OPT                                                                                   \
    {"seed", 0, OPT_I64, offsetof(struct settings, seed), "N", "0", 0, 9e18, NULL,                 \
     "seed of every random draw, and of the numbers that a replay makes up"}
/* clang-format on */

static const struct opt grid_options[] = {
    SETUP_MACHINE_OPTS(FIELD(setup)),
    LAYOUTS_OPT,
    OUT_OPT,
    {"max-tokens", 0, OPT_TOKENS, FIELD(max_tokens), "N", "2M", 1, 0x1p63, NULL,
     "leave out shapes whose requests hold more tokens in all"},
    SEED_OPT,
    {0},
};

static const struct opt compare_options[] = {
    SETUP_MACHINE_OPTS(FIELD(setup)),
    LAYOUTS_OPT,
    OUT_OPT,
    {"every", 0, OPT_I64, FIELD(every), "N", "16", 1, 1e9, NULL, "take every Nth step of the plan"},
    {0},
};

static const struct opt predict_options[] = {SETUP_MACHINE_OPTS(FIELD(setup)), OUT_OPT, {0}};

static const struct opt switches_options[] = {
    SETUP_MACHINE_OPTS(FIELD(setup)),
    LAYOUTS_OPT,
    OUT_OPT,
    {"batch", 0, OPT_I64, FIELD(switches.batch), "B", "16", 1, REQUESTS_MAX, NULL,
     "decoding requests"},
    {"context", 0, OPT_TOKENS, FIELD(switches.ctx_tokens), "S", NULL, 1, CONTEXT_MAX_TOKENS, NULL,
     "tokens of context of each, in the mean, as in 64K"},
    {"spread", 0, OPT_F64, FIELD(switches.spread_frac), "FRAC", "0.5", 0, 1, NULL,
     "contexts are drawn from so far below to so far above S"},
    {"repeats", 0, OPT_I64, FIELD(switches.repeats), "R", "10", 1, REPEATS_MAX, NULL,
     "trials of each directed pair and mechanism"},
    {"chunk", 0, OPT_TOKENS, FIELD(switches.chunk_rows), "Q", "0", 0, CHUNK_MAX_ROWS, NULL,
     "rows of a prompt that one request of each owner has (0: all decode)"},
    SEED_OPT,
    {0},
};

/* How an action makes its plan, once the machine is loaded. */
typedef int make_fn(struct plan *out, const struct trial_setting *t, struct settings *s,
                    struct err *err);

/* All that a replay runs. */
static int default_layouts(struct settings *s, struct err *err)
{
    struct cluster c;
    if (s->setup.layouts != NULL || s->setup.cluster == NULL)
        return 0;
    if (cluster_load(&c, s->setup.cluster, err) < 0)
        return -1;
    snprintf(s->layouts, sizeof s->layouts, "tp,cp,dp,dop,helix:kvp=%d,tpa=1", c.ranks);
    s->setup.layouts = s->layouts;
    return 0;
}

static void print_summary(const struct plan *p, const struct settings *s)
{
    int switches = 0;
    int64_t step_ns = 0;
    char time[32];
    for (int i = 0; i < p->n; i++) {
        switches += p->step[i].from[0] != '\0';
        step_ns += p->step[i].pred.step_ns;
    }
    printf("%s: %d steps, %d switches, predicted to take %s\n", s->out, p->n, switches,
           units_time(step_ns * PS_PER_NS, time, sizeof time));
    if (s->left_out > 0)
        printf("%d times a step was left out under a layout that cannot hold its requests\n",
               s->left_out);
}

static int write_plan(const struct setup *setup, make_fn *make, struct settings *s, struct err *err)
{
    struct plan p;
    struct trial_setting t = {
        .cost = setup->cost, .cluster = setup->cluster.name, .seed = (uint64_t)s->seed};
    if (make(&p, &t, s, err) < 0)
        return -1;
    int rc = plan_save(&p, s->out, err);
    if (rc == 0 && strcmp(s->out, "-") != 0)
        print_summary(&p, s);
    plan_release(&p);
    return rc;
}

static int make_plan(make_fn *make, struct settings *s, struct err *err)
{
    struct setup setup;
    if (s->out == NULL)
        return err_set(err, "-o: say where to write the plan");
    if (default_layouts(s, err) < 0 || setup_load(&setup, &s->setup, TRIAL_PAGE_TOKENS, err) < 0)
        return -1;
    int rc = write_plan(&setup, make, s, err);
    setup_release(&setup);
    return rc;
}

static int make_grid(struct plan *out, const struct trial_setting *t, struct settings *s,
                     struct err *err)
{
    return trial_plans_grid(out, t, s->max_tokens, err);
}

static int run_grid(void *settings, int n_args, char **args, struct err *err)
{
    (void)args;
    if (n_args != 0)
        return err_set(err, "plan grid: takes options only (see --help)");
    return make_plan(make_grid, settings, err);
}

static int make_compare(struct plan *out, const struct trial_setting *t, struct settings *s,
                        struct err *err)
{
    struct trial_source source = {s->source_path, &s->source, s->every};
    return trial_plans_compare(out, t, &source, &s->left_out, err);
}

static int make_prediction(struct plan *out, const struct trial_setting *t, struct settings *s,
                           struct err *err)
{
    struct trial_source source = {s->source_path, &s->source, 1};
    return trial_plans_predict(out, t, &source, err);
}

/* Model, cluster and seed are the source's unless given. */
static int load_source(struct settings *s, const char *path, struct err *err)
{
    if (plan_load(&s->source, path, err) < 0)
        return -1;
    const struct plan_header *h = &s->source.header;
    s->source_path = path;
    s->seed = (int64_t)h->seed;
    s->setup.model = s->setup.model != NULL ? s->setup.model : h->model;
    s->setup.cluster = s->setup.cluster != NULL ? s->setup.cluster : h->cluster;
    return 0;
}

static int run_compare(void *settings, int n_args, char **args, struct err *err)
{
    struct settings *s = settings;
    if (n_args != 1)
        return err_set(err, "plan compare: expected one PLAN (see --help)");
    if (load_source(s, args[0], err) < 0)
        return -1;
    int rc = make_plan(make_compare, s, err);
    plan_release(&s->source);
    return rc;
}

static int run_predict(void *settings, int n_args, char **args, struct err *err)
{
    struct settings *s = settings;
    if (n_args != 1)
        return err_set(err, "plan predict: expected one PLAN (see --help)");
    if (load_source(s, args[0], err) < 0)
        return -1;
    char *layouts = plan_layouts(&s->source);
    s->setup.layouts = s->source.n > 0 ? layouts : NULL;
    int rc = make_plan(make_prediction, s, err);
    free(layouts);
    plan_release(&s->source);
    return rc;
}

static int make_switches(struct plan *out, const struct trial_setting *t, struct settings *s,
                         struct err *err)
{
    return trial_plans_switches(out, t, &s->switches, err);
}

static int run_switches(void *settings, int n_args, char **args, struct err *err)
{
    struct settings *s = settings;
    (void)args;
    if (n_args != 0)
        return err_set(err, "plan switches: takes options only (see --help)");
    if (s->switches.ctx_tokens == 0)
        return err_set(err, "--context: missing; give it as in --context 64K");
    return make_plan(make_switches, s, err);
}

const struct manual plan_grid_manual = {
    .name = "plan grid",
    .what = "make a plan to calibrate with",
    .synopsis = "plan grid --model NAME --cluster NAME -o FILE [option]...",
    .text = "Writes the plan to calibrate with: decode, prefill and mixed steps over a grid\n"
            "of batches and contexts, with even and uneven owners, under every layout that\n"
            "holds them; and blocking switches, every directed pair at three contexts.",
    .options = grid_options,
    .examples = "wavetank plan grid --model deepseek-r1-slice --cluster h200x2 -o grid.jsonl",
    .see_also = "docs/plans.md, docs/calibration.md",
};

const struct manual plan_compare_manual = {
    .name = "plan compare",
    .what = "make a plan of a plan's steps under every layout",
    .synopsis = "plan compare PLAN -o FILE [option]...",
    .text = "Writes a plan of every Nth step of PLAN under every layout in turn, to see\n"
            "whether the predicted fastest is the fastest. Model and cluster are PLAN's\n"
            "unless given.",
    .options = compare_options,
    .examples = "wavetank plan compare run.jsonl --every 50 -o compare.jsonl",
    .see_also = "docs/plans.md",
};

const struct manual plan_predict_manual = {
    .name = "plan predict",
    .what = "write a plan with today's predictions",
    .synopsis = "plan predict PLAN -o FILE [option]...",
    .text = "Writes PLAN, measured or not, with today's predictions: those of the profile\n"
            "given, to validate it on what was measured before. Model and cluster are\n"
            "PLAN's unless given.",
    .options = predict_options,
    .examples = "wavetank plan predict old.measured.jsonl -o new.jsonl",
    .see_also = "docs/plans.md",
};

const struct manual plan_switches_manual = {
    .name = "plan switches",
    .what = "make a plan of every switch, three ways",
    .synopsis = "plan switches --model NAME --cluster NAME --context S -o FILE\n"
                "                              [option]...",
    .text = "Writes three-way trials of every directed pair of layouts: the step that\n"
            "switches, target-ready (free), blocking and overlapped, in random order.",
    .options = switches_options,
    .examples = "wavetank plan switches --model deepseek-r1-slice --cluster h200x2 \\\n"
                "    --batch 16 --context 64K -o switches.jsonl",
    .see_also = "docs/plans.md",
};

int plan_grid(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&plan_grid_manual, &settings, run_grid, argc, argv);
}

int plan_compare(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&plan_compare_manual, &settings, run_compare, argc, argv);
}

int plan_predict(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&plan_predict_manual, &settings, run_predict, argc, argv);
}

int plan_switches(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&plan_switches_manual, &settings, run_switches, argc, argv);
}
