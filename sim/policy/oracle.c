/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle: what a policy could do that knew the future. At a decision it forks the run, lets the
 * fork follow a plan (the layouts of its first decisions, then a base policy), and takes the first
 * layout of the plan that ended best. Plans grow by one decision at a time, those kept that ended
 * best so far (beam search), from the empty one, which is the base policy itself.
 *
 * A fork's copy of the policy has no foresight: it follows its plan. So a plan is tried by writing
 * it down here before the fork is made.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/policy/lead.h"

enum { DEPTH_MAX = 16, BASE = -1 };
enum objective { OBJECTIVE_LATENCY, OBJECTIVE_TTFT, OBJECTIVE_MAKESPAN };

struct plan {
    int n;
    int8_t layout[DEPTH_MAX]; /* of the first decisions */
};

struct oracle {
    /* options */
    int objective;
    double horizon_s, every_ms, base_margin_frac;
    int64_t depth, beam, budget;
    /* compiled */
    int64_t horizon_ps, every_ps, base_margin_ppm[LAYOUT_MAX];
    /* between decisions */
    int held; /* layout, or BASE, */
    int64_t until_ps;
    int64_t n_forks, n_cut;
    /* of a fork */
    struct plan plan;
    int next;
    uint32_t *fits; /* of the branch: what fits where its plan has ended; NULL once told */
};

static const struct opt opts[] = {
    {"objective", 0, OPT_ENUM, offsetof(struct oracle, objective), "WHAT", "latency", 0, 0,
     "latency|ttft|makespan",
     "what is smallest where as many requests complete: the sum of E2E, that of TTFT, or the end"},
    {"horizon-s", 0, OPT_F64, offsetof(struct oracle, horizon_s), "S", "30", 0, 1e6, NULL,
     "sees the requests that arrive so long after the decision, each to its end"},
    {"every-ms", 0, OPT_F64, offsetof(struct oracle, every_ms), "MS", "1000", 0, 1e9, NULL,
     "a decision holds so long (0: one step)"},
    {"depth", 0, OPT_I64, offsetof(struct oracle, depth), "N", "1", 1, DEPTH_MAX, NULL,
     "decisions ahead that are tried out"},
    {"beam", 0, OPT_I64, offsetof(struct oracle, beam), "N", "4", 1, 1e6, NULL,
     "plans of one length that are tried further"},
    {"budget", 0, OPT_I64, offsetof(struct oracle, budget), "N", "100000", 0, 1e12, NULL,
     "forks of one group's run; then the base policy decides"},
    {"base-margin", 0, OPT_F64, offsetof(struct oracle, base_margin_frac), "FRAC", "0.05", 0, 1,
     NULL, "the base policy is splash with this margin (0: greedy, 1: it stays)"},
    {0},
};

static int init(void *state, const char *arg, const struct layout *layouts, int n, struct err *err)
{
    struct oracle *o = state;
    (void)arg, (void)layouts, (void)err;
    o->held = BASE;
    o->horizon_ps = (int64_t)(o->horizon_s * (double)PS_PER_S + 0.5);
    o->every_ps = (int64_t)(o->every_ms * (double)PS_PER_MS + 0.5);
    for (int l = 0; l < n; l++)
        o->base_margin_ppm[l] = (int64_t)(o->base_margin_frac * PPM + 0.5);
    return 0;
}

/* A plan that was tried. */
struct branch {
    struct plan plan;
    uint32_t fits; /* layouts that it may go on with; none where nothing is left to decide */
    int64_t completed;
    __int128 loss;
};

struct branches {
    struct branch *item;
    size_t n, cap;
};

struct tree {
    struct oracle *oracle;
    const struct policy_view *view;
    struct branch best;
    bool cut; /* by the budget */
};

static uint32_t fitting(const struct policy_view *view)
{
    uint32_t fits = 0;
    for (int l = 0; l < view->n; l++)
        fits |= (uint32_t)(view->candidate[l].verdict == FITS) << l;
    return fits;
}

static __int128 loss_of(enum objective objective, const struct outlook *o)
{
    switch (objective) {
    case OBJECTIVE_TTFT: return o->ttft_ps;
    case OBJECTIVE_MAKESPAN: return o->last_finish_ps;
    default: return o->e2e_ps;
    }
}

/* More completed first, then the smaller loss. */
static int compare_ends(const struct branch *a, const struct branch *b)
{
    if (a->completed != b->completed)
        return a->completed > b->completed ? -1 : 1;
    return (a->loss > b->loss) - (a->loss < b->loss);
}

static int compare_branches(const void *x, const void *y)
{
    const struct branch *a = x, *b = y;
    int order = compare_ends(a, b);
    return order != 0 ? order : memcmp(a->plan.layout, b->plan.layout, sizeof a->plan.layout);
}

/* False when the budget is spent. */
static bool try_plan(struct tree *t, const struct plan *plan, struct branch *out)
{
    struct oracle *o = t->oracle;
    struct outlook outlook;
    *out = (struct branch){.plan = *plan};
    if (o->n_forks >= o->budget) {
        t->cut = true;
        return false;
    }
    o->n_forks++;
    o->plan = *plan;
    o->next = 0;
    o->fits = &out->fits;
    t->view->foresee(t->view, t->view->now_ps + o->horizon_ps, &outlook);
    o->fits = NULL;
    o->plan.n = 0; /* none in the forks that other groups make */
    out->completed = outlook.completed;
    out->loss = loss_of((enum objective)o->objective, &outlook);
    return true;
}

/* Try the plan with each layout that it may go on with. */
static void grow(struct tree *t, const struct branch *from, struct branches *to)
{
    struct plan plan = from->plan;
    plan.n++;
    for (int l = 0; l < t->view->n; l++) {
        struct branch tried;
        plan.layout[plan.n - 1] = (int8_t)l;
        if ((from->fits >> l & 1) == 0)
            continue;
        if (!try_plan(t, &plan, &tried))
            return;
        to->item = xgrow(to->item, &to->cap, to->n + 1, sizeof *to->item);
        to->item[to->n++] = tried;
        if (compare_ends(&tried, &t->best) < 0)
            t->best = tried;
    }
}

static void search(struct tree *t, struct branches kept)
{
    const struct oracle *o = t->oracle;
    for (int64_t depth = 0; depth < o->depth && kept.n > 0 && !t->cut; depth++) {
        struct branches grown = {0};
        for (size_t i = 0; i < kept.n; i++)
            grow(t, &kept.item[i], &grown);
        if (grown.n > 0)
            qsort(grown.item, grown.n, sizeof *grown.item, compare_branches);
        grown.n = grown.n < (size_t)o->beam ? grown.n : (size_t)o->beam;
        free(kept.item);
        kept = grown;
    }
    free(kept.item);
}

static int look_ahead(struct oracle *o, const struct policy_view *view)
{
    uint32_t fits = fitting(view);
    if ((fits & (fits - 1)) == 0)
        return BASE; /* which has no choice either */
    struct tree tree = {.oracle = o, .view = view};
    struct branches kept = {.item = NULL};
    kept.item = xgrow(NULL, &kept.cap, 1, sizeof *kept.item);
    if (try_plan(&tree, &(struct plan){0}, &kept.item[0]))
        kept.n = 1;
    tree.best = kept.item[0];
    search(&tree, kept);
    o->n_cut += tree.cut;
    return tree.best.plan.n > 0 ? tree.best.plan.layout[0] : BASE;
}

static void hold(struct oracle *o, int layout, int64_t until_ps)
{
    o->held = layout;
    o->until_ps = until_ps;
}

/* In a fork: the plan's next layout, then the base policy to the end. */
static void follow_plan(struct oracle *o, const struct policy_view *view)
{
    if (o->next < o->plan.n) {
        hold(o, o->plan.layout[o->next++], view->now_ps + o->every_ps);
        return;
    }
    if (o->fits != NULL)
        *o->fits = fitting(view);
    o->fits = NULL;
    hold(o, BASE, INT64_MAX);
}

static bool is_held(const struct oracle *o, const struct policy_view *view)
{
    return view->now_ps < o->until_ps &&
           (o->held == BASE || view->candidate[o->held].verdict == FITS);
}

static struct decision decide(void *state, const struct policy_view *view)
{
    struct oracle *o = state;
    if (!is_held(o, view) && view->foresee != NULL)
        hold(o, look_ahead(o, view), view->now_ps + o->every_ps);
    else if (!is_held(o, view))
        follow_plan(o, view);

    struct decision d = {.layout = o->held, .wanted = o->held, .hold = SEG_FOREVER};
    if (o->held == BASE) {
        struct lead lead = lead_find(view, o->base_margin_ppm);
        d = (struct decision){.layout = lead.pick,
                              .wanted = lead.wanted,
                              .hold = lead.pick == view->current ? lead.hold : 1};
    }
    /* Asked again at the first step that begins when this no longer holds. */
    struct seg step = view->candidate[d.layout].cost.step;
    d.hold = min_i64(d.hold, seg_steps_to_reach(step, o->until_ps - view->now_ps));
    return d;
}

static int64_t count_cut(const void *state)
{
    return ((const struct oracle *)state)->n_cut;
}

const struct policy_kind policy_oracle = {
    .name = "oracle",
    .what = "forks the run at a decision and takes the layout that turns out best",
    .may_switch = true,
    .opts = opts,
    .state_size = sizeof(struct oracle),
    .init = init,
    .decide = decide,
    .count_cut = count_cut,
};
