/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/cost_internal.h"

#include "sim/base/ints.h"

/* Matrices applied to so many rows of the busiest rank. */
struct matrices {
    double bytes, rows;
};

static double product_s(const struct cost *c, const struct weight_format *w,
                        const struct matrices *m, int n)
{
    double work_s = 0, bytes = 0, most = 1;
    for (int i = 0; i < n; i++) {
        double params = m[i].bytes / w->bytes_per_param;
        work_s += flop_s(c, STAGE_PROJ, w->format, 2 * params * m[i].rows, m[i].rows);
        bytes += m[i].bytes;
        most = m[i].rows > most ? m[i].rows : most;
    }
    return roofline_s(work_s, read_s(c, STAGE_PROJ, bytes, most));
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

static double layer_proj_s(const struct cost *c, const struct projection_bytes *p,
                           double small_bytes, const struct layout *l, const struct row_counts *n)
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
    return product_s(c, &c->model.attention_weights, m, 4);
}

double rows_proj_s(const struct cost *c, const struct layout *l, const struct row_counts *n)
{
    const struct model *m = &c->model;
    struct projection_bytes p = footprint_projections(m);
    double kv_layers = model_kv_layers(m), indexed = m->indexer.layers;
    double small = indexed / kv_layers * footprint_replicated_attention_bytes(m, true) +
                   (1 - indexed / kv_layers) * footprint_replicated_attention_bytes(m, false);
    double cached = l->full_weights_frac, sum = 0;
    struct layout full = layout_of_cached(l);
    if (cached > 0)
        sum += cached * layer_proj_s(c, &p, small, &full, n);
    if (cached < 1)
        sum += (1 - cached) * layer_proj_s(c, &p, small, l, n);
    sum *= kv_layers;
    if (m->linear.layers > 0) {
        struct projection_bytes linear = footprint_linear_projections(m);
        struct layout as_linear = layout_of_linear(l);
        sum += m->linear.layers * layer_proj_s(c, &linear, 0, &as_linear, n);
    }
    return sum + launch_s(c, STAGE_PROJ, m->layers);
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

static double dense_layer_s(const struct cost *c, double rows)
{
    const struct model *m = &c->model;
    double inter = (double)m->dense_inter / c->cluster.ranks;
    return roofline_s(flop_s(c, STAGE_FFN, m->ffn_weights.format, gated_flop(m, inter, rows), rows),
                      read_s(c, STAGE_FFN, gated_bytes(m, inter), rows));
}

static double moe_layer_s(const struct cost *c, const struct row_counts *n)
{
    const struct model *m = &c->model;
    double ranks = c->cluster.ranks, rows = (double)n->rows;
    double experts = m->moe.experts / ranks; /* EP: experts of a rank */
    double touched = experts * (1 - idle_expert_frac(m, n->rows));
    double routed = rows * m->moe.topk / ranks * c->profile->expert_imbalance;
    double shared = (double)m->moe.shared * m->moe.inter / ranks;
    touched *= c->profile->expert_imbalance;
    touched = touched > 1 ? touched : 1; /* some rank has the only one */
    touched = touched < experts ? touched : experts;
    double flop = gated_flop(m, m->moe.inter, routed) + gated_flop(m, shared, rows);
    double bytes = gated_bytes(m, touched * m->moe.inter + shared) +
                   (double)m->hidden * m->moe.experts * m->router_weights.bytes_per_param;
    return roofline_s(flop_s(c, STAGE_FFN, m->ffn_weights.format, flop, routed / experts),
                      read_s(c, STAGE_FFN, bytes, rows));
}

double rows_dense_ffn_s(const struct cost *c, const struct row_counts *n)
{
    return c->model.dense_layers > 0 ? dense_layer_s(c, (double)n->rows) + launch_s(c, STAGE_FFN, 1)
                                     : 0;
}

double rows_ffn_s(const struct cost *c, const struct row_counts *n)
{
    const struct model *m = &c->model;
    double sum = m->dense_layers * dense_layer_s(c, (double)n->rows);
    if (m->layers > m->dense_layers)
        sum += (m->layers - m->dense_layers) * moe_layer_s(c, n);
    return sum + launch_s(c, STAGE_FFN, m->layers);
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
