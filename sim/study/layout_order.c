/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/layout_order.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"

const char *const order_verdict_names[ORDER_VERDICT_COUNT] = {
    [ORDER_RIGHT] = "right",
    [ORDER_TIE] = "tie",
    [ORDER_WRONG] = "wrong",
};

static const double context_frac = 0.01, tie_frac = 0.02;

static bool seen_before(const struct joined *j, int first, int i)
{
    for (int k = first; k < i; k++)
        if (j->step[k].layout == j->step[i].layout)
            return true;
    return false;
}

static int group_end(const struct joined *j, int first)
{
    int i = first + 1;
    while (i < j->n && joined_same_batch(j->step[i].at, j->step[first].at, context_frac) &&
           (joined_is_settled(j, i) || !seen_before(j, first, i)))
        i++;
    return i;
}

/* Those of the group's steps that are of one kind: at most one for each layout. */
static struct order_member *make_members(const struct joined *j, const struct order_group *g,
                                         enum step_kind kind, int *n)
{
    struct order_member *member = xcalloc((size_t)(g->end - g->first), sizeof *member);
    *n = 0;
    for (int i = g->first; i < g->end; i++) {
        const struct joined_step *s = &j->step[i];
        if (s->kind == kind)
            member[(*n)++] = (struct order_member){s->layout, s->pred->step_ns, s->meas->step_ns};
    }
    return member;
}

static void pick_members(struct order_group *g, const struct joined *j)
{
    int n_steady, n_ready;
    struct order_member *steady = make_members(j, g, STEP_STEADY, &n_steady);
    struct order_member *ready = make_members(j, g, STEP_READY, &n_ready);
    bool settled = n_steady >= n_ready;
    g->member = settled ? steady : ready;
    g->n = settled ? n_steady : n_ready;
    free(settled ? ready : steady);
}

static int sign(int64_t x)
{
    return (x > 0) - (x < 0);
}

static double kendall_tau(const struct order_member *m, int n)
{
    int sum = 0;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++)
            sum += sign(m[a].pred_ns - m[b].pred_ns) * sign(m[a].meas_ns - m[b].meas_ns);
    return 2.0 * sum / ((double)n * (n - 1));
}

static void judge(struct order_group *g)
{
    const struct order_member *m = g->member;
    for (int i = 1; i < g->n; i++) {
        g->pick = m[i].pred_ns < m[g->pick].pred_ns ? i : g->pick;
        g->fastest = m[i].meas_ns < m[g->fastest].meas_ns ? i : g->fastest;
    }
    g->tau = kendall_tau(m, g->n);
    g->regret = (double)m[g->pick].meas_ns / (double)m[g->fastest].meas_ns - 1;
    if (g->regret == 0)
        g->verdict = ORDER_RIGHT;
    else
        g->verdict = g->regret < tie_frac ? ORDER_TIE : ORDER_WRONG;
}

static void add_group(struct layout_order *o, size_t *cap, const struct joined *j, int first,
                      int end)
{
    struct order_group g = {.first = first, .end = end};
    pick_members(&g, j);
    if (g.n < 2) {
        free(g.member);
        return;
    }
    judge(&g);
    o->group = xgrow(o->group, cap, (size_t)o->n + 1, sizeof *o->group);
    o->group[o->n++] = g;
    o->verdicts[g.verdict]++;
    o->tau += g.tau;
    o->regret += g.regret;
}

void layout_order_init(struct layout_order *o, const struct joined *j)
{
    size_t cap = 0;
    *o = (struct layout_order){0};
    for (int first = 0, end; first < j->n; first = end) {
        end = group_end(j, first);
        add_group(o, &cap, j, first, end);
    }
    int agreed = o->verdicts[ORDER_RIGHT] + o->verdicts[ORDER_TIE];
    o->agreement = o->n > 0 ? (double)agreed / o->n : NAN;
    o->tau = o->n > 0 ? o->tau / o->n : NAN;
    o->regret = o->n > 0 ? o->regret / o->n : NAN;
}

void layout_order_release(struct layout_order *o)
{
    for (int i = 0; i < o->n; i++)
        free(o->group[i].member);
    free(o->group);
    *o = (struct layout_order){0};
}
