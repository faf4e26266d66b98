/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives of a step, by what the layout's fields leave apart: heads from owners (dop),
 * positions from rows (cp, helix), O's partial sums (sharded O), and rows from the FFN.
 * Sizes are counted as nccl-tests count them (hw/collective.h).
 */
#include "sim/cost/cost_internal.h"

static void add_among(struct exchange_sums *to, const struct cost *c, double layers,
                      enum collective op, int ranks, double bytes)
{
    const struct collective_table *t = &c->profile->collectives;
    if (bytes <= 0 || ranks < 2 || layers <= 0)
        return;
    double latency = collective_latency_s(t, op, ranks);
    double whole = collective_s(t, op, ranks, bytes);
    to->latency_s += layers * latency;
    to->link_s += layers * (whole > latency ? whole - latency : 0);
}

static void add(struct exchange_sums *to, const struct cost *c, double layers, enum collective op,
                double bytes)
{
    add_among(to, c, layers, op, c->cluster.ranks, bytes);
}

static double act_bytes(const struct cost *c)
{
    return number_format_bytes(c->model.activations);
}

/* Width of a query row of one head as attention takes it, and of what attention gives back. */
static double query_width(const struct model *m)
{
    return m->attention == ATTN_MLA ? m->kv_lora + m->rope_dim : m->nope_dim + m->rope_dim;
}

static double value_width(const struct model *m)
{
    return m->attention == ATTN_MLA ? m->kv_lora : m->v_dim;
}

static double heads_per_rank(const struct cost *c, const struct layout *l)
{
    return (double)c->model.heads / l->attn_head_shards;
}

double exchange_partial_bytes(const struct cost *c, const struct layout *l)
{
    return heads_per_rank(c, l) * (value_width(&c->model) * act_bytes(c) + 4);
}

/* Rows that every rank would own if all had as many as the busiest owner, which sends or receives
 * for all of its own while the others wait; where rows are not owned, ranks have even shares. */
static double met_rows(const struct layout *l, const struct row_counts *n)
{
    double even = (double)n->rows, most = (double)n->owner_rows * l->ranks;
    return (l->rows_owned || l->kv_owned) && most > even ? most : even;
}

/* Eq. 4, both ways. */
static void add_owner_exchange(struct exchange_sums *to, const struct cost *c,
                               const struct layout *l, const struct row_counts *n, double layers)
{
    const struct model *m = &c->model;
    if (!l->kv_owned || l->in_shards == 1)
        return;
    double rows = met_rows(l, n), row_heads = rows / l->ranks * m->heads * act_bytes(c);
    add(to, c, layers, COLL_ALL_TO_ALL, row_heads * query_width(m));
    add(to, c, layers, COLL_ALL_TO_ALL, row_heads * value_width(m));
    if (l->rows_owned) {
        double width = m->attention == ATTN_MLA ? m->q_lora : m->hidden;
        add(to, c, layers, COLL_ALL_GATHER, rows * width * act_bytes(c));
    }
}

/* Rows' partial outputs to the ranks that combine them, all at once or by sub-batches. */
static void add_partials(struct exchange_sums *to, const struct cost *c, const struct layout *l,
                         double rows, int parts, double layers)
{
    double bytes = rows * exchange_partial_bytes(c, l);
    struct exchange_sums part = {0};
    add_among(parts > 1 ? &part : to, c, layers, COLL_ALL_TO_ALL, l->attn_pos_shards,
              bytes / parts);
    to->part_s += part.latency_s + part.link_s;
}

/* Rows that several ranks attend over parts of the context, decode's (where results are partial, a
 * prompt's too): where hidden rows are split, each rank first gathers them all (where O's results
 * are, afterwards); the parts are combined. */
static void add_combine(struct exchange_sums *to, const struct cost *c, const struct layout *l,
                        const struct row_counts *n, double layers)
{
    int64_t apart = attention_is_partial(c, l) ? 0 : n->prefill_rows;
    double rows = (double)(n->rows - apart);
    if (l->attn_pos_shards == 1)
        return;
    if (l->out_shards == 1)
        add(to, c, layers, COLL_ALL_GATHER, rows * c->model.hidden * act_bytes(c));
    if (l->kv_layer_shards == 1)
        add_partials(to, c, l, rows, cost_sub_batches(l, n->rows, n->prefill_rows), layers);
}

static void add_layer(struct exchange_sums *to, const struct cost *c, const struct layout *l,
                      const struct row_counts *n, double layers)
{
    add_owner_exchange(to, c, l, n, layers);
    add_combine(to, c, l, n, layers);
    double rows = l->rows_owned ? met_rows(l, n) : (double)n->rows;
    double hidden = rows * c->model.hidden * act_bytes(c);
    if (l->out_shards > 1)
        add(to, c, layers, l->rows_owned ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, hidden);
    if (attention_is_partial(c, l) || (l->out_shards > 1 && !l->rows_owned)) {
        add(to, c, layers, COLL_ALL_REDUCE, hidden);
    } else {
        add(to, c, layers, COLL_ALL_GATHER, hidden);
        add(to, c, layers, COLL_REDUCE_SCATTER, hidden);
    }
}

struct exchange_sums exchange_sum(const struct cost *c, const struct layout *l,
                                  const struct row_counts *n)
{
    struct exchange_sums sums = {0};
    double kv_layers = model_kv_layers(&c->model), cached = l->full_weights_frac;
    struct layout full = layout_of_cached(l), as_linear = layout_of_linear(l);
    add_layer(&sums, c, &full, n, kv_layers * cached);
    add_layer(&sums, c, l, n, kv_layers * (1 - cached));
    as_linear.attn_pos_shards = 1; /* recurrent layers have no positions to combine */
    add_layer(&sums, c, &as_linear, n, c->model.linear.layers);
    return sums;
}

double exchange_chunks_s(const struct cost *c, const struct layout *l, int64_t ctx_tokens,
                         int64_t rows)
{
    const struct model *m = &c->model;
    if (l->attn_pos_shards == 1 || rows == 0 || attention_is_partial(c, l))
        return 0;
    struct exchange_sums gather = {0}, partial = {0};
    double layers = model_kv_layers(m);
    double context_bytes = (double)ctx_tokens * model_kv_bytes_per_token_layer(m);
    int ranks = l->attn_pos_shards;
    add_among(&gather, c, layers, COLL_ALL_GATHER, ranks, context_bytes / l->kv_head_shards);
    if (l->kv_layer_shards > 1)
        return gather.latency_s + gather.link_s;
    double queries = (double)rows * heads_per_rank(c, l) * query_width(m) * act_bytes(c);
    if (l->in_shards == 1) /* rows were split by position too; with cut projections all have them */
        add_among(&partial, c, layers, COLL_ALL_GATHER, ranks, queries);
    add_among(&partial, c, layers, COLL_ALL_TO_ALL, ranks,
              (double)rows * exchange_partial_bytes(c, l));
    double a = gather.latency_s + gather.link_s, b = partial.latency_s + partial.link_s;
    return a < b ? a : b;
}

/* By layer, whoever holds a layer sends its KV to all others before it is needed: per token, at the
 * bandwidth of a large gather. */
double exchange_fetch_s_per_token(const struct cost *c, const struct layout *l)
{
    const double large_bytes = 256 << 20;
    if (l->kv_layer_shards == 1)
        return 0;
    double s = collective_s(&c->profile->collectives, COLL_ALL_GATHER, l->ranks, large_bytes);
    return s / large_bytes * model_kv_bytes_per_token(&c->model);
}
