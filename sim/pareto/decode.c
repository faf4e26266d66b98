/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/decode.h"

#include <assert.h>

#include "sim/base/ints.h"
#include "sim/layout/footprint.h"
#include "sim/pareto/experts.h"

static double max_f64(double a, double b)
{
    return a > b ? a : b;
}

static double min_f64(double a, double b)
{
    return a < b ? a : b;
}

void decode_set_format(struct model *m, enum number_format f)
{
    double bytes = number_format_bytes(f);
    struct weight_format w = {f, bytes};
    m->attention_weights = m->ffn_weights = m->embedding_weights = m->router_weights = w;
    m->kv.format = f;
    m->kv.latent_bytes = m->kv_lora * bytes;
    m->kv.rope_bytes = m->attention == ATTN_MLA ? m->rope_dim * bytes : 0;
    m->kv.indexer_bytes = m->indexer.heads > 0 ? m->indexer.dim * bytes / m->indexer.pool : 0;
    m->kv.scale_bytes = 0;
    m->kv.head_bytes =
        m->attention == ATTN_GQA ? (m->nope_dim + m->rope_dim + m->v_dim) * bytes : 0;
}

static double attended_tokens(const struct model *m, int64_t context)
{
    return (double)(m->indexer.heads > 0 ? min_i64(context, m->indexer.topk) : context);
}

/* Layers that compute index scores, of all: reads and work below are of the mean layer. */
static double indexed_frac(const struct model *m)
{
    return (double)m->indexer.layers / m->layers;
}

static double kv_read_bytes(const struct model *m, const struct layout *l, int64_t context)
{
    double token = m->attention == ATTN_MLA
                       ? m->kv.latent_bytes + m->kv.scale_bytes + m->kv.rope_bytes
                       : m->kv.head_bytes * m->kv_heads;
    double keys = indexed_frac(m) * m->kv.indexer_bytes * (double)context / l->kv_pos_shards;
    return attended_tokens(m, context) * token * footprint_kv_share(l) + keys;
}

/* MLA absorbed against the latent, GQA against K and V; index scores by every GPU for its
 * positions. */
static double flop_per_row(const struct model *m, const struct layout *l, int64_t context)
{
    double pair = m->attention == ATTN_MLA ? 2.0 * (m->kv_lora + m->rope_dim + m->kv_lora)
                                           : 2.0 * (m->nope_dim + m->rope_dim + m->v_dim);
    double index = m->indexer.heads > 0
                       ? indexed_frac(m) * 2.0 * m->indexer.heads * m->indexer.dim / m->indexer.pool
                       : 0;
    double heads = (double)m->heads / l->attn_head_shards;
    return (attended_tokens(m, context) * heads * pair + (double)context * index) /
           l->attn_pos_shards;
}

static double gated_bytes(const struct model *m, int64_t inter)
{
    return 3.0 * m->hidden * (double)inter * m->ffn_weights.bytes_per_param;
}

static struct decode_bytes layer_bytes(const struct model *m, const struct mapping *map,
                                       const struct layout *l, int64_t context)
{
    struct projection_bytes p = footprint_projections(m);
    int ranks = mapping_ffn_gpus(map);
    double plain = footprint_replicated_attention_bytes(m, false);
    double indexed = m->indexer.heads > 0 ? footprint_replicated_attention_bytes(m, true) : plain;
    struct decode_bytes b = {
        .kv = kv_read_bytes(m, l, context),
        .proj_in = (p.in_bytes - p.kv_in_bytes) / l->in_shards + p.kv_in_bytes / l->kv_in_shards,
        .proj_out = p.out_bytes / l->out_shards,
        .replicated = plain + indexed_frac(m) * (indexed - plain),
        .dense_ffn = gated_bytes(m, ceil_div_i64(m->dense_inter, ranks)),
    };
    if (m->moe.experts > 0) {
        int64_t shared = (int64_t)m->moe.shared * m->moe.inter;
        b.expert = gated_bytes(m, ceil_div_i64(m->moe.inter, map->tpf));
        b.shared = gated_bytes(m, ceil_div_i64(shared, ranks)) +
                   (double)m->hidden * m->moe.experts * m->router_weights.bytes_per_param;
    }
    return b;
}

/* The stage with most of the layers that have experts. */
static double stage_weights_bytes(const struct decode_plan *p)
{
    const struct model *m = p->machine->model;
    const struct decode_bytes *b = &p->bytes;
    int64_t layers = ceil_div_i64(m->layers, p->mapping.pp);
    int64_t routed = min_i64(layers, m->layers - m->dense_layers);
    double experts = (double)ceil_div_i64(m->moe.experts, p->mapping.ep);
    double embeddings = 2.0 * m->vocab * m->hidden * m->embedding_weights.bytes_per_param;
    return (double)layers * (b->proj_in + b->proj_out + b->replicated) +
           (double)(layers - routed) * b->dense_ffn +
           (double)routed * (experts * b->expert + b->shared) +
           embeddings / mapping_ffn_gpus(&p->mapping);
}

static double kv_stored_bytes(const struct decode_plan *p, const struct layout *l)
{
    const struct model *m = p->machine->model;
    double layers = (double)ceil_div_i64(m->layers, p->mapping.pp);
    double tokens = (double)ceil_div_i64(p->context_tokens, l->kv_pos_shards);
    return layers * tokens * model_kv_bytes_per_token_layer(m) / l->kv_head_shards;
}

void decode_plan_init(struct decode_plan *p, const struct decode_machine *machine,
                      const struct mapping *mapping, int64_t context_tokens)
{
    const struct model *m = machine->model;
    const struct cluster *c = machine->cluster;
    struct layout l = mapping_layout(mapping, m);
    int value = m->attention == ATTN_MLA ? m->kv_lora : m->v_dim;
    assert(m->linear.layers == 0);
    *p = (struct decode_plan){
        .machine = machine,
        .mapping = *mapping,
        .context_tokens = context_tokens,
        .out_shards = l.out_shards,
        .bytes = layer_bytes(m, mapping, &l, context_tokens),
        .flop_per_row = flop_per_row(m, &l, context_tokens),
        .partial_bytes =
            (double)m->heads / mapping->tpa * (value * number_format_bytes(m->activations) + 4.0),
    };
    p->weights_bytes = stage_weights_bytes(p);
    p->kv_request_bytes = kv_stored_bytes(p, &l);
    double left = c->memory_frac * c->device.memory_bytes - c->reserve_bytes - p->weights_bytes;
    p->max_batch = left > 0 ? mapping->dp * (int64_t)(left / p->kv_request_bytes) : 0;
}

static double read_s(const struct decode_machine *d, enum profile_stage stage, double bytes,
                     double size)
{
    double frac = d->profile ? efficiency_at(&d->profile->stage[stage].hbm_frac, size) : 1;
    return bytes / (d->cluster->device.hbm_gb_per_s * 1e9 * frac);
}

static double flop_s(const struct decode_machine *d, enum profile_stage stage,
                     enum number_format format, double flop, double size)
{
    double frac = d->profile ? efficiency_at(&d->profile->stage[stage].flop_frac, size) : 1;
    return flop / (device_tflops(&d->cluster->device, format) * 1e12 * frac);
}

static double launch_s(const struct decode_machine *d, enum profile_stage stage)
{
    return d->profile ? d->profile->stage[stage].launch_us * 1e-6 : 0;
}

/* Bytes as nccl-tests count them: hw/collective.h. */
static double collective(const struct decode_machine *d, enum collective op, int ranks,
                         double bytes)
{
    if (ranks <= 1 || bytes <= 0)
        return 0;
    if (d->profile == NULL) {
        double wire = bytes * (ranks - 1) / ranks * (op == COLL_ALL_REDUCE ? 2 : 1);
        return d->collective_us * 1e-6 + wire / (d->link_gb_per_s * 1e9);
    }
    const struct collective_table *t = &d->profile->collectives;
    double all = collective_s(t, op, ranks, bytes);
    double slower = d->cluster->device.link_gb_per_s / d->link_gb_per_s;
    if (slower == 1)
        return all;
    double latency = collective_latency_s(t, op, ranks);
    return latency + (all - latency) * slower;
}

/* What is seen of a collective on what a product of `compute_s` makes. Where the mapping overlaps,
 * the product is cut by columns, which repeats no read, into as many parts as are best. */
static double seen_s(const struct decode_plan *p, double compute_s, enum collective op, int ranks,
                     double bytes)
{
    double best = collective(p->machine, op, ranks, bytes);
    for (int n = 2; mapping_overlaps(&p->mapping) && n <= SUB_BATCHES_MAX; n *= 2) {
        double part = collective(p->machine, op, ranks, bytes / n);
        best = min_f64(best, part + (n - 1) * max_f64(0, part - compute_s / n));
    }
    return best;
}

/* One layer of a micro-batch, being summed. */
struct layer {
    const struct decode_plan *plan;
    const struct decode_machine *machine;
    const struct model *model;
    int64_t rows, replica_rows; /* of a stage; of its busiest replica */
    double row_bytes;           /* of a hidden row */
};

static struct layer layer_of(const struct decode_plan *p, int64_t batch)
{
    const struct model *m = p->machine->model;
    int64_t rows = ceil_div_i64(batch, p->mapping.pp);
    return (struct layer){p,
                          p->machine,
                          m,
                          rows,
                          ceil_div_i64(rows, p->mapping.dp),
                          m->hidden * number_format_bytes(m->activations)};
}

static double product_s(const struct layer *y, double bytes)
{
    const struct weight_format *w = &y->model->attention_weights;
    double rows = (double)y->replica_rows, flop = 2 * bytes / w->bytes_per_param * rows;
    return max_f64(flop_s(y->machine, STAGE_PROJ, w->format, flop, rows),
                   read_s(y->machine, STAGE_PROJ, bytes, rows));
}

static double attend_s(const struct layer *y, double rows)
{
    const struct decode_plan *p = y->plan;
    double heads = (double)y->model->heads / p->mapping.tpa;
    double tokens = (double)p->context_tokens / p->mapping.kvp;
    double flop = flop_s(y->machine, STAGE_ATTN_DECODE, y->machine->arithmetic,
                         p->flop_per_row * rows, heads);
    return launch_s(y->machine, STAGE_ATTN_DECODE) +
           max_f64(flop, read_s(y->machine, STAGE_ATTN_DECODE, p->bytes.kv * rows, tokens));
}

/* Helix: all-to-all over query heads. Medha: the fixed group gets the others' partial outputs. */
static double partials_s(const struct layer *y, double rows)
{
    const struct mapping *map = &y->plan->mapping;
    double bytes = rows * y->plan->partial_bytes;
    double sent = map->family == FAMILY_KVP
                      ? collective(y->machine, COLL_ALL_GATHER, map->kvp, bytes * map->kvp)
                      : collective(y->machine, COLL_ALL_TO_ALL, map->kvp, bytes);
    return map->kvp > 1 ? sent + rows * y->machine->exchange_row_us * 1e-6 : sent;
}

static int cut(const struct layer *y, int hopb, struct pipeline_part *part)
{
    int n = (int)min_i64(hopb, y->replica_rows);
    int64_t least = y->replica_rows / n, more = y->replica_rows % n;
    for (int i = 0; i < n; i++) {
        double rows = (double)(least + (i < more));
        part[i] = (struct pipeline_part){attend_s(y, rows), partials_s(y, rows)};
    }
    return n;
}

/* A whole, attended to in parts, may differ from their sum in its last bits. */
double decode_ttl_floor_s(const struct decode_step *lockstep)
{
    return (lockstep->ttl_s - lockstep->exchange_s) * (1 - 1e-9);
}

int decode_parts(const struct decode_plan *p, int64_t batch, int hopb,
                 struct pipeline_part part[SUB_BATCHES_MAX])
{
    struct layer y = layer_of(p, batch);
    return cut(&y, hopb, part);
}

static double dense_ffn_s(const struct layer *y)
{
    const struct weight_format *w = &y->model->ffn_weights;
    double rows = (double)y->rows, bytes = y->plan->bytes.dense_ffn;
    return launch_s(y->machine, STAGE_FFN) +
           max_f64(flop_s(y->machine, STAGE_FFN, w->format, 2 * bytes / w->bytes_per_param * rows,
                          rows),
                   read_s(y->machine, STAGE_FFN, bytes, rows));
}

/* Reads of the busiest group's experts; work of a mean one's, since where work sets the pace rows
 * are many and groups nearly alike. */
static double moe_ffn_s(const struct layer *y)
{
    const struct model *m = y->model;
    const struct decode_bytes *b = &y->plan->bytes;
    const struct weight_format *w = &m->ffn_weights;
    int ep = y->plan->mapping.ep;
    double rows = (double)y->rows;
    double skew = ep > 1 && y->machine->profile ? y->machine->profile->expert_imbalance : 1;
    double read = y->machine->even_experts
                      ? experts_chosen(m->moe.experts, m->moe.topk, y->rows) / ep
                      : experts_busiest(m->moe.experts, m->moe.topk, y->rows, ep);
    double touched = min_f64(skew * read, (double)ceil_div_i64(m->moe.experts, ep));
    double routed = skew * rows * m->moe.topk / ep;
    double flop = 2 / w->bytes_per_param * (b->expert * routed + b->shared * rows);
    double per_expert = routed * ep / m->moe.experts;
    return launch_s(y->machine, STAGE_FFN) +
           max_f64(flop_s(y->machine, STAGE_FFN, w->format, flop, per_expert),
                   read_s(y->machine, STAGE_FFN, touched * b->expert + b->shared, rows));
}

/* Medha: hidden rows go from the fixed group to the others, timed as a gather of as many bytes. */
static double broadcast_s(const struct layer *y)
{
    const struct mapping *map = &y->plan->mapping;
    return map->family == FAMILY_KVP
               ? collective(y->machine, COLL_ALL_GATHER, map->kvp, (double)y->rows * y->row_bytes)
               : 0;
}

/* Rows that are everywhere are reduced after the FFN. Rows with their replica are gathered before
 * it and reduce-scattered after it; or, among experts, sent to each chosen one and back, whichever
 * is cheaper. Only what follows the last product, a third of the FFN, can go beside it. */
static double ffn_exchange_s(const struct layer *y, double ffn_s, bool routed)
{
    const struct decode_plan *p = y->plan;
    const struct mapping *map = &p->mapping;
    int ranks = mapping_ffn_gpus(map);
    double bytes = (double)y->rows * y->row_bytes, last_s = ffn_s / 3;
    if (map->dp == 1)
        return seen_s(p, last_s, COLL_ALL_REDUCE, ranks, bytes) + broadcast_s(y);
    double gathered = collective(y->machine, COLL_ALL_GATHER, ranks, bytes) +
                      seen_s(p, last_s, COLL_REDUCE_SCATTER, ranks, bytes);
    if (!routed || map->ep == 1)
        return gathered;
    double copies = (double)min_i64(y->model->moe.topk, map->ep) * map->tpf;
    double own = bytes / ranks * copies;
    double sent = collective(y->machine, COLL_ALL_TO_ALL, ranks, own) +
                  seen_s(p, last_s, COLL_ALL_TO_ALL, ranks, own);
    return min_f64(gathered, sent);
}

static double once_s(const struct layer *y)
{
    const struct model *m = y->model;
    const struct profile *profile = y->machine->profile;
    const struct mapping *map = &y->plan->mapping;
    double rows = (double)y->rows;
    double params = (double)m->hidden * m->vocab / mapping_ffn_gpus(map);
    double head = max_f64(
        flop_s(y->machine, STAGE_HEAD, m->embedding_weights.format, 2 * params * rows, rows),
        read_s(y->machine, STAGE_HEAD, params * m->embedding_weights.bytes_per_param, rows));
    double hop = collective(y->machine, COLL_ALL_TO_ALL, 2, 2 * rows * y->row_bytes);
    double layer_us = profile ? profile->layer_launch_us : y->machine->layer_us;
    double launches = (m->layers * layer_us + (profile ? profile->step_launch_us : 0)) * 1e-6;
    return head + launches + (map->pp - 1) * hop;
}

void decode_step(const struct decode_plan *p, int64_t batch, int hopb, struct decode_step *out)
{
    const struct model *m = p->machine->model;
    struct layer y = layer_of(p, batch);
    struct pipeline_part part[SUB_BATCHES_MAX];
    /* In a steady flow the longest stage sets the pace of all. */
    double uneven =
        (double)(p->mapping.pp * ceil_div_i64(m->layers, p->mapping.pp)) / (double)m->layers;
    double layers = m->layers * uneven, dense = m->dense_layers * uneven, routed = layers - dense;
    double attn = 0;
    int n = cut(&y, hopb, part);
    for (int i = 0; i < n; i++)
        attn += part[i].compute_s;

    double in = product_s(&y, p->bytes.proj_in + p->bytes.replicated);
    double o = product_s(&y, p->bytes.proj_out);
    double reduce =
        seen_s(p, o, COLL_ALL_REDUCE, p->out_shards, (double)y.replica_rows * y.row_bytes);
    out->proj_s = layers * (in + o + launch_s(y.machine, STAGE_PROJ));
    out->attn_s = layers * attn;
    out->exchange_s = layers * (pipeline_end_s(part, n, NULL) - attn);
    out->ffn_s = 0;
    out->reduce_s = layers * reduce;
    if (dense > 0) {
        double ffn = dense_ffn_s(&y);
        out->ffn_s += dense * ffn;
        out->reduce_s += dense * ffn_exchange_s(&y, ffn, false);
    }
    if (m->moe.experts > 0) {
        double ffn = moe_ffn_s(&y);
        out->ffn_s += routed * ffn;
        out->reduce_s += routed * ffn_exchange_s(&y, ffn, true);
    }
    out->once_s = once_s(&y);
    out->ttl_s =
        out->proj_s + out->attn_s + out->exchange_s + out->reduce_s + out->ffn_s + out->once_s;
}
