/* SPDX-License-Identifier: Apache-2.0
 *
 * Overheads of a switch by the simulator's own Eq. 7 (sim/cost/transition), with the bandwidths of
 * the platform's figure and two fitted constants: moving one layer's weights or KV takes a multiple
 * of what its primitive alone takes, and a fixed time. What exceeds the primitive is preparation,
 * which layers that hold no KV hide where they come before the first that does.
 */
#include <math.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/primitives.h"
#include "sim/reproduce/rows.h"

/* Columns of tables 1, 7 and 8: p50, whose p95 comes next. */
enum { READY = 2, BLOCKING = 5, OVERLAPPED = 7 };

/* Every switch hands over, also one that moves nothing: the 0.02 and 0.03 ms of the tables. */
static const double handoff_ms = 0.025;

static const double blocking_goal_frac = 0.10, overlapped_goal_frac = 0.20;
static const double blocking_goal_share = 34.0 / 36, overlapped_goal_share = 30.0 / 36;

/* What moving one layer's weights or KV takes: stretch x its primitive alone + fixed. */
struct moving {
    double stretch, fixed_ms;
};

/* A switch study: the platform with the figure's bandwidths as its collectives. */
struct study {
    struct platform on;
    struct profile profile;
    struct bandwidths fitted;
    struct paper table;
    double ahead_frac; /* of a step: the layers before the first that holds KV */
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

/* Linear layers come first in each group: in GLM-5.3-Flash layers 3, 7, ... 43 hold KV. */
static double ahead_frac(const struct model *m)
{
    int ahead = m->linear.layers / model_kv_layers(m);
    return (double)ahead / m->layers;
}

static int study_load(struct study *s, int platform, struct err *err)
{
    if (platform_load(&s->on, platform, err) < 0)
        return -1;
    s->ahead_frac = ahead_frac(&s->on.model);
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
static struct transition switch_of(struct study *s, int row, double weights_factor,
                                   double kv_factor)
{
    const double *rate = s->fitted.bytes_per_s;
    int from = platform_layout(&s->on, paper_text(&s->table, row, 0));
    int to = platform_layout(&s->on, paper_text(&s->table, row, 1));
    double ready_ms = paper_number(&s->table, row, READY);
    struct step_cost step = {.proj = seg_const(ps_from_s(ready_ms / 1e3))};
    struct transition t;
    s->profile.transfer.weights_factor =
        weights_factor * rate[KV_GATHERED] / rate[WEIGHTS_GATHERED];
    s->profile.transfer.kv_factor = kv_factor;
    cost_set_profile(s->on.cost, &s->profile);
    transition_cost(s->on.cost, from, to, s->on.owned_tokens, &step, &t);
    return t;
}

static double to_ms(int64_t ps)
{
    return (double)ps / (double)PS_PER_MS;
}

/* One layer by the primitives alone; 0 for what does not move. */
struct alone {
    double weights_ms, kv_ms;
};

static struct alone alone_of(struct study *s, int row)
{
    return (struct alone){to_ms(switch_of(s, row, 1, 0).first_ps),
                          to_ms(switch_of(s, row, 0, 1).first_ps)};
}

static double factor_of(const struct moving *m, double alone_ms)
{
    return alone_ms > 0 ? m->stretch + m->fixed_ms / alone_ms : 0;
}

struct overheads {
    double blocking_ms, overlapped_ms;
};

static struct overheads overheads_of(struct study *s, int row, const struct moving *m)
{
    struct alone alone = alone_of(s, row);
    struct transition t =
        switch_of(s, row, factor_of(m, alone.weights_ms), factor_of(m, alone.kv_ms));
    double preparation_ms = to_ms(t.first_ps) - alone.weights_ms - alone.kv_ms;
    double hidden_ms = fmin(preparation_ms, s->ahead_frac * paper_number(&s->table, row, READY));
    return (struct overheads){to_ms(t.blocking_ps) + handoff_ms,
                              to_ms(t.exposed_ps) - hidden_ms + handoff_ms};
}

/* Normal equations of the two constants. */
struct sums {
    double ss, sf, ff, s, f;
};

/* An overhead of the paper: `stretch_ms` x stretch + `moves` x fixed. */
static void sums_add(struct sums *sums, double paper_ms, double stretch_ms, double moves)
{
    double s = stretch_ms / (paper_ms - handoff_ms), f = moves / (paper_ms - handoff_ms);
    sums->ss += s * s;
    sums->sf += s * f;
    sums->ff += f * f;
    sums->s += s;
    sums->f += f;
}

/* Least squares of the relative error of both overheads. At these step times no later layer is
 * late: an overlapped overhead is the first layer's, and says nothing where its preparation is
 * hidden. */
static struct moving fit(struct study *s)
{
    struct sums sums = {0};
    for (int row = 0; row < s->table.rows; row++) {
        struct alone alone = alone_of(s, row);
        double layer_ms = alone.weights_ms + alone.kv_ms;
        double moves = (alone.weights_ms > 0) + (alone.kv_ms > 0);
        int layers = s->on.model.layers;
        sums_add(&sums, paper_number(&s->table, row, BLOCKING), layers * layer_ms, layers * moves);
        if (s->ahead_frac == 0)
            sums_add(&sums, paper_number(&s->table, row, OVERLAPPED), layer_ms, moves);
    }
    double determinant = sums.ss * sums.ff - sums.sf * sums.sf;
    return (struct moving){(sums.ff * sums.s - sums.sf * sums.f) / determinant,
                           (sums.ss * sums.f - sums.sf * sums.s) / determinant};
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
                        const struct moving *fitted, struct score *score)
{
    const char *src = paper_text(&s->table, row, 0), *dst = paper_text(&s->table, row, 1);
    struct overheads ours = overheads_of(s, row, fitted);
    double bound_ms = s->on.overhead_max_frac * paper_number(&s->table, row, READY);
    score->n++;
    score->blocking +=
        rows_predicted(r, paper_text(&s->table, row, BLOCKING), ours.blocking_ms,
                       blocking_goal_frac, "%s.%s-%s.blocking_ms", s->on.switches_table, src, dst);
    score->overlapped += rows_predicted(r, paper_text(&s->table, row, OVERLAPPED),
                                        ours.overlapped_ms, overlapped_goal_frac,
                                        "%s.%s-%s.overlapped_ms", s->on.switches_table, src, dst);
    score->under_bound += ours.overlapped_ms <= bound_ms;
}

/* The paper's p95 over its p50, from least to most over the directions that move something. */
static void show_spread(struct reproduction *r, const struct paper *table, int p50,
                        const char *table_name, const char *mechanism)
{
    const double nothing_ms = 0.05;
    double least = INFINITY, most = 0;
    char text[24];
    for (int row = 0; row < table->rows; row++) {
        double p50_ms = paper_number(table, row, p50);
        double ratio = paper_number(table, row, p50 + 1) / p50_ms;
        if (p50_ms > nothing_ms) {
            least = fmin(least, ratio);
            most = fmax(most, ratio);
        }
    }
    snprintf(text, sizeof text, "%.2f to %.2f", least, most);
    rows_unpredicted(r, text, "%s.%s_p95_over_p50", table_name, mechanism);
}

static void compare_table(struct reproduction *r, struct study *s, struct score *all)
{
    const char *table = s->on.switches_table;
    struct moving fitted = fit(s);
    struct score score = {0};
    for (int row = 0; row < s->table.rows; row++)
        compare_row(r, s, row, &fitted, &score);
    show_score(r, &score, table);
    rows_figure(r, fitted.stretch, NAN, true, "%s.fitted.stretch", table);
    rows_figure(r, fitted.fixed_ms, NAN, true, "%s.fitted.fixed_ms", table);
    show_spread(r, &s->table, BLOCKING, table, "blocking");
    show_spread(r, &s->table, OVERLAPPED, table, "overlapped");
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
