/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of each stage, where a profile keeps them, and where they may lie.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/study/fit_internal.h"

const char *const fit_stage_names[FIT_STAGE_COUNT] = {
    [FIT_PROJ] = "proj",
    [FIT_ATTN_DECODE] = "attn_decode",
    [FIT_ATTN_PREFILL] = "attn_prefill",
    [FIT_FFN] = "ffn",
    [FIT_EXCHANGE] = "exchange",
    [FIT_REST] = "rest",
    [FIT_TRANSFER] = "transfer",
    [FIT_OVERLAP] = "overlap",
};

static const enum profile_stage profile_stages[] = {
    [FIT_PROJ] = STAGE_PROJ,
    [FIT_ATTN_DECODE] = STAGE_ATTN_DECODE,
    [FIT_ATTN_PREFILL] = STAGE_ATTN_PREFILL,
    [FIT_FFN] = STAGE_FFN,
};

static const double row_knots[] = {64, 256, 1024, 4096};
enum { N_ROW_KNOTS = sizeof row_knots / sizeof *row_knots };

static const double frac_low = 0.001, frac_high = 1; /* nothing passes its data sheet */
static const double launch_high_us = 1000, imbalance_high = 16;
static const double factor_low = 0.1, factor_high = 100, regroup_start = 0.5;
static const double beside_low = 0.1, interference_low = 0.01, interference_high = 20;
static const double spill_low = 0.01;
static const double collective_reach = 30;              /* times the base, either way */
enum { TABLE_FIRST_POWER = 10, TABLE_LAST_POWER = 30 }; /* of two, bytes */

/* A stage's list under way. */
struct list {
    enum fit_stage stage;
    struct fit_param *param;
    int n;
};

static struct fit_param *add(struct list *l, enum fit_target target, double base, double low,
                             double high)
{
    assert(l->n < FIT_STAGE_PARAMS_MAX);
    struct fit_param *q = &l->param[l->n++];
    *q = (struct fit_param){
        .stage = l->stage, .target = target, .low = low, .high = high, .base = base};
    q->value = base < low ? low : base > high ? high : base;
    return q;
}

static void add_of_stage(struct list *l, enum fit_target target, const struct profile *p,
                         double size)
{
    enum profile_stage s = profile_stages[l->stage];
    const struct stage_profile *of = &p->stage[s];
    const char *name = profile_stage_names[s];
    struct fit_param *q;
    switch (target) {
    case FIT_LAUNCH:
        q = add(l, target, of->launch_us, 0, launch_high_us);
        snprintf(q->name, sizeof q->name, "%s.launch_us", name);
        break;
    case FIT_HBM: /* of a curve the value that most bytes are read at */
        q = add(l, target, of->hbm_frac.frac[of->hbm_frac.n - 1], frac_low, frac_high);
        snprintf(q->name, sizeof q->name, "%s.hbm_frac", name);
        break;
    default:
        q = add(l, target, efficiency_at(&of->flop_frac, size), frac_low, frac_high);
        snprintf(q->name, sizeof q->name, "%s.flop_frac[%g]", name, size);
    }
    q->which = (int)s;
    q->size = size;
}

/* Put these sizes in, at the values that the curve has there. `between`: what it had between the
 * first and the last of them goes. */
static void set_knots(struct efficiency *e, const double *size, int n, bool between)
{
    struct efficiency made = {0};
    int at = 0, skip = e->n + n - PROFILE_POINTS_MAX;
    for (int i = 0; i < e->n; i++) {
        double old = e->size[i];
        for (; at < n && size[at] <= old; at++) {
            made.size[made.n] = size[at];
            made.frac[made.n++] = efficiency_at(e, size[at]);
        }
        bool replaced = (at > 0 && old == size[at - 1]) || (between && at > 0 && at < n);
        if (!replaced && i >= skip) {
            made.size[made.n] = old;
            made.frac[made.n++] = e->frac[i];
        }
    }
    for (; at < n; at++) {
        made.size[made.n] = size[at];
        made.frac[made.n++] = efficiency_at(e, size[at]);
    }
    efficiency_init(&made);
    *e = made;
}

static int64_t step_rows(const struct fit_step *s)
{
    int64_t rows = 0;
    for (int i = 0; i < s->batch.n; i++)
        rows += s->item[i].q;
    return rows;
}

static int64_t longest_chunk(const struct fit_step *s)
{
    int64_t most = 0;
    for (int i = s->batch.n_decode; i < s->batch.n; i++)
        most = s->item[i].q > most ? s->item[i].q : most;
    return most;
}

/* Knots up to the first that no step is beyond. */
static int knots_in_reach(const struct fit_data *d, int64_t (*size_of)(const struct fit_step *))
{
    int64_t most = 0;
    int n = 1;
    for (size_t i = 0; i < d->n; i++) {
        int64_t size = d->step[i].from < 0 ? size_of(&d->step[i]) : 0;
        most = size > most ? size : most;
    }
    while (n < N_ROW_KNOTS && row_knots[n - 1] < (double)most)
        n++;
    return n;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Heads that a rank of each layout attends with. */
static int heads_seen(const struct fit_data *d, double heads[LAYOUT_MAX])
{
    int n = 0;
    for (int l = 0; l < d->n_layouts; l++) {
        double here = (double)d->model->heads / d->layout[l].attn_head_shards;
        int k = 0;
        while (k < n && heads[k] != here)
            k++;
        if (k == n)
            heads[n++] = here;
    }
    qsort(heads, (size_t)n, sizeof *heads, ascending);
    return n;
}

static void add_named(struct list *l, enum fit_target target, const char *name, double base,
                      double low, double high)
{
    struct fit_param *q = add(l, target, base, low, high);
    snprintf(q->name, sizeof q->name, "%s", name);
}

static void list_stage(struct list *l, const struct fit_data *d, struct profile *p)
{
    struct efficiency *flop = &p->stage[profile_stages[l->stage]].flop_frac;
    bool prefill = l->stage == FIT_ATTN_PREFILL;
    double heads[LAYOUT_MAX] = {0};
    const double *knot = row_knots;
    int n;
    if (l->stage == FIT_ATTN_DECODE) {
        knot = heads;
        n = heads_seen(d, heads);
    } else {
        n = knots_in_reach(d, prefill ? longest_chunk : step_rows);
    }
    set_knots(flop, knot, n, l->stage != FIT_ATTN_DECODE);
    add_of_stage(l, FIT_LAUNCH, p, 0);
    if (!prefill)
        add_of_stage(l, FIT_HBM, p, 0);
    for (int i = 0; i < n; i++)
        add_of_stage(l, FIT_FLOP, p, knot[i]);
    const struct attention_profile *a = &p->attention;
    if (l->stage == FIT_ATTN_DECODE) {
        add_named(l, FIT_MERGE, "attention.merge_us", a->merge_us, 0, launch_high_us);
        add_named(l, FIT_COMBINE, "attention.combine_us", a->combine_us, 0, launch_high_us);
    }
    if (prefill && d->cluster->device.l2_bytes > 0)
        add_named(l, FIT_SPILL, "attention.spill_frac", a->spill_frac, spill_low, 1);
}

/* The same curve at powers of two. */
static void resample(struct collective_table *t, enum collective op, int i)
{
    struct collective_curve *c = &t->curve[op][i], made = {.ranks = c->ranks};
    size_t cap = 0;
    for (int power = TABLE_FIRST_POWER; power <= TABLE_LAST_POWER; power++) {
        double bytes = (double)(1LL << power), us = 1e6 * collective_s(t, op, c->ranks, bytes);
        made.point = xgrow(made.point, &cap, (size_t)made.n + 1, sizeof *made.point);
        made.point[made.n++] = (struct collective_point){bytes, us};
        made.latency_us = made.n == 1 || us < made.latency_us ? us : made.latency_us;
    }
    free(c->point);
    *c = made;
}

static void add_collective(struct list *l, enum fit_target target, int op, double base)
{
    struct fit_param *q = add(l, target, base, base / collective_reach, base * collective_reach);
    snprintf(q->name, sizeof q->name, "%s.%s", collective_names[op],
             target == FIT_LATENCY ? "latency_us" : "gb_per_s");
    q->which = op;
}

/* Measured by itself, a collective has its growth from there: steps add what it costs among them.
 */
static void list_exchange(struct list *l, const struct fit_data *d, struct profile *p)
{
    const double most_bytes = (double)(1LL << TABLE_LAST_POWER);
    struct collective_table *t = &p->collectives;
    int ranks = d->cluster->ranks;
    for (int op = 0; op < COLL_COUNT && ranks > 1; op++) {
        for (int i = 0; i < t->n[op]; i++)
            resample(t, op, i);
        double latency_us = 1e6 * collective_latency_s(t, op, ranks);
        double growth_us = 1e6 * collective_s(t, op, ranks, most_bytes) - latency_us;
        add_collective(l, FIT_LATENCY, op, latency_us);
        add_collective(l, FIT_BANDWIDTH, op, most_bytes / fmax(growth_us, 1) / 1e3);
        if (collective_has(&d->collectives, (enum collective)op, ranks))
            l->param[l->n - 1].state = FIT_SET;
    }
}

static void list_rest(struct list *l, const struct profile *p)
{
    add_named(l, FIT_LAYER_LAUNCH, "layer_launch_us", p->layer_launch_us, 0, launch_high_us);
    /* Steps of one number of layers cannot tell the two apart, and a replay does nothing once a
     * step. */
    add_named(l, FIT_STEP_LAUNCH, "step_launch_us", p->step_launch_us, 0, 0);
    l->param[l->n - 1].state = FIT_SET;
}

static void list_transfer(struct list *l, const struct profile *p)
{
    add_named(l, FIT_WEIGHTS_FACTOR, "transfer.weights_factor", p->transfer.weights_factor,
              factor_low, factor_high);
    add_named(l, FIT_KV_FACTOR, "transfer.kv_factor", p->transfer.kv_factor, factor_low,
              factor_high);
    add_named(l, FIT_REGROUP, "transfer.regroup_hbm_frac", p->transfer.regroup_hbm_frac, frac_low,
              frac_high);
    if (p->transfer.regroup_hbm_frac <= 0)
        l->param[l->n - 1].value = regroup_start;
    /* A replay brings everything straight to its place. */
    add_named(l, FIT_REPACK, "transfer.repack_hbm_frac", p->transfer.repack_hbm_frac, 0, 0);
    l->param[l->n - 1].state = FIT_SET;
}

static void list_overlap(struct list *l, const struct profile *p)
{
    add_named(l, FIT_BESIDE, "transfer.beside_frac", p->transfer.beside_frac, beside_low, 1);
    add_named(l, FIT_LINK_INTERFERENCE, "transfer.link_interference", p->transfer.link_interference,
              interference_low, interference_high);
    add_named(l, FIT_REGROUP_INTERFERENCE, "transfer.regroup_interference",
              p->transfer.regroup_interference, interference_low, interference_high);
}

int fit_params(enum fit_stage stage, const struct fit_data *d, struct profile *p,
               struct fit_param *out)
{
    struct list l = {.stage = stage, .param = out};
    switch (stage) {
    case FIT_EXCHANGE: list_exchange(&l, d, p); break;
    case FIT_REST: list_rest(&l, p); break;
    case FIT_TRANSFER: list_transfer(&l, p); break;
    case FIT_OVERLAP: list_overlap(&l, p); break;
    default: list_stage(&l, d, p);
    }
    if (stage == FIT_FFN && d->model->moe.experts > 0)
        add_named(&l, FIT_IMBALANCE, "expert_imbalance", p->expert_imbalance, 1, imbalance_high);
    return l.n;
}
