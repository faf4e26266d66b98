/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/cost_internal.h"

#include <math.h>

#include "hw/interp.h"
#include "sim/base/ints.h"

static void add_layers(struct work *sum, double layers, struct work w)
{
    sum->all_s += layers * w.all_s;
    sum->hbm_s += layers * w.hbm_s;
}

/* Matrices applied to so many rows of the busiest rank. */
struct matrices {
    double bytes, rows;
};

static struct work product(const struct cost *c, const struct weight_format *w,
                           const struct matrices *m, int n)
{
    double work_s = 0, bytes = 0, most = 1;
    for (int i = 0; i < n; i++) {
        double params = m[i].bytes / w->bytes_per_param;
        work_s += flop_s(c, STAGE_PROJ, w->format, 2 * params * m[i].rows, m[i].rows);
        bytes += m[i].bytes;
        most = m[i].rows > most ? m[i].rows : most;
    }
    return roofline(work_s, read_s(c, STAGE_PROJ, bytes, most));
}

/* Rows that a rank pushes through the in-projections: its owned ones, its share of a prompt whose
 * rows are split as positions are among full projections, or all. */
static double in_rows(const struct cost *c, const struct layout *l, const struct row_counts *n)
{
    if (l->rows_owned || (l->kv_owned && l->in_shards == 1))
        return (double)n->owner_rows;
    if (l->in_shards == 1 && l->attn_pos_shards > 1 && !attention_is_partial(c, l))
        return (double)(ceil_div_i64(n->prefill_rows, l->ranks) + n->rows - n->prefill_rows);
    return (double)n->rows;
}

static double out_rows(const struct layout *l, const struct row_counts *n)
{
    if (l->out_shards > 1)
        return (double)n->rows;
    return l->kv_owned ? (double)n->owner_rows : (double)ceil_div_i64(n->rows, l->ranks);
}

static struct work layer_proj(const struct cost *c, const struct projection_bytes *p,
                              double small_bytes, const struct layout *l,
                              const struct row_counts *n)
{
    double in = in_rows(c, l, n);
    /* A sharded layout's rows pass the replicated matrices where they live. */
    double small = l->in_shards == 1 || l->rows_owned ? in : (double)n->rows;
    double sharded_in = l->in_shards > 1 ? (double)n->rows : in;
    struct matrices m[] = {
        {(p->in_bytes - p->kv_in_bytes) / l->in_shards, sharded_in},
        {p->kv_in_bytes / l->kv_in_shards, sharded_in},
        {small_bytes, small},
        {p->out_bytes / l->out_shards, out_rows(l, n)},
    };
    return product(c, &c->model.attention_weights, m, 4);
}

struct work rows_proj(const struct cost *c, const struct layout *l, const struct row_counts *n)
{
    const struct model *m = &c->model;
    struct projection_bytes p = footprint_projections(m);
    double kv_layers = model_kv_layers(m), indexed = m->indexer.layers;
    double small = indexed / kv_layers * footprint_replicated_attention_bytes(m, true) +
                   (1 - indexed / kv_layers) * footprint_replicated_attention_bytes(m, false);
    double cached = l->full_weights_frac;
    struct layout full = layout_of_cached(l);
    struct work sum = {launch_s(c, STAGE_PROJ, m->layers), 0};
    if (cached > 0)
        add_layers(&sum, kv_layers * cached, layer_proj(c, &p, small, &full, n));
    if (cached < 1)
        add_layers(&sum, kv_layers * (1 - cached), layer_proj(c, &p, small, l, n));
    if (m->linear.layers > 0) {
        struct projection_bytes linear = footprint_linear_projections(m);
        struct layout as_linear = layout_of_linear(l);
        add_layers(&sum, m->linear.layers, layer_proj(c, &linear, 0, &as_linear, n));
    }
    return sum;
}

/* (1 - topk/experts)^rows by squaring: an expert that no row chose. */
static double idle_expert_frac(const struct model *m, int64_t rows)
{
    double base = 1 - (double)m->moe.topk / m->moe.experts, power = 1;
    for (; rows > 0; rows >>= 1) {
        if (rows & 1)
            power *= base;
        base *= base;
    }
    return power;
}

static double gated_bytes(const struct model *m, double inter)
{
    return 3.0 * m->hidden * inter * m->ffn_weights.bytes_per_param;
}

static double gated_flop(const struct model *m, double inter, double rows)
{
    return 6.0 * m->hidden * inter * rows;
}

static struct work dense_layer(const struct cost *c, double rows)
{
    const struct model *m = &c->model;
    double inter = (double)m->dense_inter / c->cluster.ranks;
    return roofline(flop_s(c, STAGE_FFN, m->ffn_weights.format, gated_flop(m, inter, rows), rows),
                    read_s(c, STAGE_FFN, gated_bytes(m, inter), rows));
}

/* By how many standard deviations the largest of so many normal variates exceeds the mean,
 * expected; by powers of two, from 1 to 128. */
static const double normal_max[] = {0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946};
enum { N_NORMAL_MAX = sizeof normal_max / sizeof *normal_max };

/* Of `all` experts, `drawn` at random, or `draws` times so many: what the rank with the most gets.
 * What the ranks get sums up, so they are correlated by -1 / (ranks - 1). `spread` times the
 * deviation: 1 in one layer, 1 / sqrt(n) in the mean of n whose routings have nothing in common. */
static double busiest_share(double all, double drawn, double draws, int ranks, double spread)
{
    if (ranks == 1)
        return draws * drawn;
    double frac = 1.0 / ranks, at = interp_log2(ranks);
    int below = at < N_NORMAL_MAX - 2 ? (int)at : N_NORMAL_MAX - 2;
    double deviations =
        normal_max[below] + (at - below) * (normal_max[below + 1] - normal_max[below]);
    double variance = draws * drawn * frac * (1 - frac) * (all - drawn) / (all - 1);
    return draws * drawn * frac + spread * deviations * sqrt(variance / (1 - frac));
}

static struct work moe_layer(const struct cost *c, const struct row_counts *n, double spread)
{
    const struct model *m = &c->model;
    int ranks = c->cluster.ranks;
    double rows = (double)n->rows, all = m->moe.experts, skew = c->profile->expert_imbalance;
    double experts = all / ranks; /* EP: experts of a rank */
    double chosen = all * (1 - idle_expert_frac(m, n->rows));
    double routed = skew * busiest_share(all, m->moe.topk, rows, ranks, spread);
    double touched = skew * busiest_share(all, chosen, 1, ranks, spread);
    double shared = (double)m->moe.shared * m->moe.inter / ranks;
    touched = touched > 1 ? touched : 1; /* some rank has the only one */
    touched = touched < experts ? touched : experts;
    double flop = gated_flop(m, m->moe.inter, routed) + gated_flop(m, shared, rows);
    double bytes = gated_bytes(m, touched * m->moe.inter + shared) +
                   (double)m->hidden * m->moe.experts * m->router_weights.bytes_per_param;
    return roofline(flop_s(c, STAGE_FFN, m->ffn_weights.format, flop, routed / experts),
                    read_s(c, STAGE_FFN, bytes, rows));
}

struct work rows_dense_ffn(const struct cost *c, const struct row_counts *n)
{
    struct work one = {0};
    if (c->model.dense_layers > 0) {
        one = dense_layer(c, (double)n->rows);
        one.all_s += launch_s(c, STAGE_FFN, 1);
    }
    return one;
}

struct work rows_ffn(const struct cost *c, const struct row_counts *n, double *wait_s)
{
    const struct model *m = &c->model;
    int routed = m->layers - m->dense_layers;
    struct work sum = {launch_s(c, STAGE_FFN, m->layers), 0};
    add_layers(&sum, m->dense_layers, dense_layer(c, (double)n->rows));
    *wait_s = 0;
    if (routed > 0) {
        struct work mean = moe_layer(c, n, 1 / sqrt(routed));
        double more_s = routed > 1 ? moe_layer(c, n, 1).all_s - mean.all_s : 0;
        add_layers(&sum, routed, mean);
        *wait_s = more_s > 0 ? routed * more_s : 0; /* more rows may be more efficient */
    }
    return sum;
}

double rows_once_s(const struct cost *c, const struct row_counts *n)
{
    const struct model *m = &c->model;
    double params = (double)m->hidden * m->vocab / c->cluster.ranks;
    double rows = (double)n->sampled_rows;
    double head =
        roofline_s(flop_s(c, STAGE_HEAD, m->embedding_weights.format, 2 * params * rows, rows),
                   read_s(c, STAGE_HEAD, params * m->embedding_weights.bytes_per_param, rows));
    double embedded = (double)n->rows * m->hidden * number_format_bytes(m->activations);
    return head + read_s(c, STAGE_HEAD, 2 * embedded, rows) +
           1e-6 * (m->layers * c->profile->layer_launch_us + c->profile->step_launch_us);
}
