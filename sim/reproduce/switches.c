/* SPDX-License-Identifier: Apache-2.0
 *
 * Overheads of a switch by the simulator's own Eq. 7 (sim/cost/transition), with the bandwidths of
 * the platform's figure and two fitted constants: by how much preparing a layer's weights or KV
 * lengthens its transfer.
 */
#include <math.h>

#include "sim/base/units.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/primitives.h"
#include "sim/reproduce/rows.h"

/* Columns of tables 1, 7 and 8 that are used. */
enum { READY = 2, BLOCKING = 5, OVERLAPPED = 7 };

/* Every switch hands over, also one that moves nothing: the 0.02 and 0.03 ms of the tables. */
static const double handoff_ms = 0.025;

static const double blocking_goal_frac = 0.10, overlapped_goal_frac = 0.20;
static const double blocking_goal_share = 34.0 / 36, overlapped_goal_share = 30.0 / 36;

struct preparation {
    double weights_factor, kv_factor;
};

/* A switch study: the platform with the figure's bandwidths as its collectives. */
struct study {
    struct platform on;
    struct profile profile;
    struct bandwidths fitted;
    struct paper table;
};

/* Time is bytes over bandwidth at any size that occurs. */
static void make_curve(struct collective_curve *c, struct collective_point point[2], int ranks,
                       double bytes_per_s)
{
    *c = (struct collective_curve){.ranks = ranks, .n = 2, .point = point};
    for (int i = 0; i < c->n; i++) {
        double bytes = i == 0 ? ranks : 1e12;
        point[i] =
            (struct collective_point){bytes, bytes * (ranks - 1) / ranks / bytes_per_s * 1e6};
    }
    c->latency_us = point[0].us;
}

static struct collective_table collectives_of(const struct collective_table *base, int ranks,
                                              const struct bandwidths *fitted)
{
    struct collective_point points[2][2];
    struct collective_curve gather, exchange;
    struct collective_table made = {0};
    make_curve(&gather, points[0], ranks, fitted->bytes_per_s[KV_GATHERED]);
    make_curve(&exchange, points[1], ranks, fitted->bytes_per_s[KV_EXCHANGED]);
    made.n[COLL_ALL_GATHER] = made.n[COLL_ALL_TO_ALL] = 1;
    made.curve[COLL_ALL_GATHER] = &gather;
    made.curve[COLL_ALL_TO_ALL] = &exchange;
    return collective_rebase(base, &made, ranks);
}

static int study_load(struct study *s, int platform, struct err *err)
{
    if (platform_load(&s->on, platform, err) < 0)
        return -1;
    platform_keep_kv_layers(&s->on);
    if (primitives_fit(&s->on, &s->fitted, err) < 0 ||
        paper_load(&s->table, s->on.switches_table,
                   "src,dst|t_ready_p50_ms,t_block_p50_ms,t_splash_p50_ms,dt_block_p50_ms,"
                   "dt_block_p95_ms,dt_splash_p50_ms,dt_splash_p95_ms",
                   err) < 0) {
        platform_release(&s->on);
        return -1;
    }
    s->profile = s->on.profile;
    s->profile.collectives =
        collectives_of(&s->on.profile.collectives, s->on.cluster.ranks, &s->fitted);
    s->profile.transfer.repack_hbm_frac = s->profile.transfer.regroup_hbm_frac = 0;
    s->profile.transfer.beside_frac = 1;
    return 0;
}

static void study_release(struct study *s)
{
    collective_release(&s->profile.collectives);
    paper_release(&s->table);
    platform_release(&s->on);
}

/* The row's switch, inside the target-ready step that was measured, its time even over the layers.
 */
static struct transition switch_of(struct study *s, int row, const struct preparation *prepared)
{
    const double *rate = s->fitted.bytes_per_s;
    int from = platform_layout(&s->on, paper_text(&s->table, row, 0));
    int to = platform_layout(&s->on, paper_text(&s->table, row, 1));
    double ready_ms = paper_number(&s->table, row, READY);
    struct step_cost step = {.proj = seg_const(ps_from_s(ready_ms / 1e3))};
    struct transition t;
    s->profile.transfer.weights_factor =
        prepared->weights_factor * rate[KV_GATHERED] / rate[WEIGHTS_GATHERED];
    s->profile.transfer.kv_factor = prepared->kv_factor;
    cost_set_profile(s->on.cost, &s->profile);
    transition_cost(s->on.cost, from, to, s->on.owned_tokens, &step, &t);
    return t;
}

static double to_ms(int64_t ps)
{
    return (double)ps / (double)PS_PER_MS;
}

/* Blocking overhead is linear in both factors: least squares of its relative error. */
static struct preparation fit(struct study *s)
{
    const struct preparation weights = {1, 0}, kv = {0, 1};
    double ww = 0, wk = 0, kk = 0, w1 = 0, k1 = 0;
    for (int row = 0; row < s->table.rows; row++) {
        double paper_ms = paper_number(&s->table, row, BLOCKING) - handoff_ms;
        double w = to_ms(switch_of(s, row, &weights).blocking_ps) / paper_ms;
        double k = to_ms(switch_of(s, row, &kv).blocking_ps) / paper_ms;
        ww += w * w;
        wk += w * k;
        kk += k * k;
        w1 += w;
        k1 += k;
    }
    double determinant = ww * kk - wk * wk;
    return (struct preparation){(kk * w1 - wk * k1) / determinant,
                                (ww * k1 - wk * w1) / determinant};
}

/* How many rows of a table, and of all tables, meet their goals. */
struct score {
    int n, blocking, overlapped, under_bound;
};

static void show_score(struct reproduction *r, const struct score *s, const char *of)
{
    double n = s->n, blocking = s->blocking / n, overlapped = s->overlapped / n;
    rows_figure(r, blocking, blocking_goal_share, blocking >= blocking_goal_share,
                "%s.blocking_within", of);
    rows_figure(r, overlapped, overlapped_goal_share, overlapped >= overlapped_goal_share,
                "%s.overlapped_within", of);
    rows_figure(r, s->under_bound / n, 1, s->under_bound == s->n, "%s.under_bound", of);
}

static void compare_row(struct reproduction *r, struct study *s, int row,
                        const struct preparation *fitted, struct score *score)
{
    const char *src = paper_text(&s->table, row, 0), *dst = paper_text(&s->table, row, 1);
    struct transition t = switch_of(s, row, fitted);
    double blocking_ms = to_ms(t.blocking_ps) + handoff_ms;
    double exposed_ms = to_ms(t.exposed_ps) + handoff_ms;
    double bound_ms = s->on.overhead_max_frac * paper_number(&s->table, row, READY);
    score->n++;
    score->blocking +=
        rows_predicted(r, paper_text(&s->table, row, BLOCKING), blocking_ms, blocking_goal_frac,
                       "%s.%s-%s.blocking_ms", s->on.switches_table, src, dst);
    score->overlapped +=
        rows_predicted(r, paper_text(&s->table, row, OVERLAPPED), exposed_ms, overlapped_goal_frac,
                       "%s.%s-%s.overlapped_ms", s->on.switches_table, src, dst);
    score->under_bound += exposed_ms <= bound_ms;
}

static void compare_table(struct reproduction *r, struct study *s, struct score *all)
{
    const char *table = s->on.switches_table;
    struct preparation fitted = fit(s);
    struct score score = {0};
    for (int row = 0; row < s->table.rows; row++)
        compare_row(r, s, row, &fitted, &score);
    show_score(r, &score, table);
    rows_figure(r, fitted.weights_factor, NAN, true, "%s.fitted.weights_preparation", table);
    rows_figure(r, fitted.kv_factor, NAN, true, "%s.fitted.kv_preparation", table);
    all->n += score.n;
    all->blocking += score.blocking;
    all->overlapped += score.overlapped;
    all->under_bound += score.under_bound;
}

int reproduce_switches(struct reproduction *r, struct err *err)
{
    struct score all = {0};
    for (int i = 0; i < PLATFORMS; i++) {
        struct study s;
        if (study_load(&s, i, err) < 0)
            return -1;
        compare_table(r, &s, &all);
        study_release(&s);
    }
    show_score(r, &all, "tables1-7-8");
    return 0;
}
