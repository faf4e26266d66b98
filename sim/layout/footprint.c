/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/layout/footprint.h"

#include <assert.h>

#include "sim/base/ints.h"

static double bf16_bytes(double params)
{
    return params * number_format_bytes(FMT_BF16);
}

static struct projection_bytes mla_projections(const struct model *m, double per_param)
{
    double q_b = (double)m->q_lora * (m->nope_dim + m->rope_dim);
    double kv_b = (double)m->kv_lora * (m->nope_dim + m->v_dim);
    double o = (double)m->hidden * m->v_dim;
    return (struct projection_bytes){.in_bytes = m->heads * (q_b + kv_b) * per_param,
                                     .out_bytes = m->heads * o * per_param};
}

static struct projection_bytes gqa_projections(const struct model *m, double per_param)
{
    double q = (double)m->hidden * m->heads * (m->nope_dim + m->rope_dim);
    double kv = (double)m->hidden * m->kv_heads * (m->nope_dim + m->rope_dim + m->v_dim);
    double o = (double)m->hidden * m->heads * m->v_dim;
    return (struct projection_bytes){.in_bytes = (q + kv) * per_param,
                                     .kv_in_bytes = kv * per_param,
                                     .out_bytes = o * per_param};
}

struct projection_bytes footprint_projections(const struct model *m)
{
    double per_param = m->attention_weights.bytes_per_param;
    return m->attention == ATTN_MLA ? mla_projections(m, per_param) : gqa_projections(m, per_param);
}

struct projection_bytes footprint_linear_projections(const struct model *m)
{
    double per_param = m->attention_weights.bytes_per_param;
    double width = (double)m->linear.heads * m->linear.dim;
    double qkv = 3 * m->hidden * width;
    double gates = 2 * m->linear.dim * width; /* second factors of the decay and output gates */
    double beta = (double)m->hidden * m->linear.heads;
    return (struct projection_bytes){.in_bytes = (qkv + gates + beta) * per_param,
                                     .out_bytes = width * m->hidden * per_param};
}

double footprint_layer_weights_bytes(const struct projection_bytes *p, const struct layout *l)
{
    double sharded = (p->in_bytes - p->kv_in_bytes) / l->in_shards +
                     p->kv_in_bytes / l->kv_in_shards + p->out_bytes / l->out_shards;
    double full = p->in_bytes + p->out_bytes;
    return l->full_weights_frac * full + (1 - l->full_weights_frac) * sharded;
}

double footprint_weights_bytes(const struct model *m, const struct layout *l)
{
    struct projection_bytes attention = footprint_projections(m);
    struct projection_bytes linear = footprint_linear_projections(m);
    struct layout of_linear = layout_of_linear(l);
    return model_kv_layers(m) * footprint_layer_weights_bytes(&attention, l) +
           m->linear.layers * footprint_layer_weights_bytes(&linear, &of_linear);
}

static double indexer_bytes(const struct model *m)
{
    double keys = (double)m->indexer.dim * m->hidden;
    double queries = (double)m->indexer.heads * m->indexer.dim * m->q_lora;
    double head_weights = (double)m->indexer.heads * m->hidden;
    double key_norm = 2 * m->indexer.dim; /* weight and bias */
    return (keys + queries) * m->attention_weights.bytes_per_param +
           bf16_bytes(head_weights + key_norm);
}

double footprint_replicated_attention_bytes(const struct model *m, bool has_indexer)
{
    double low_rank =
        m->attention == ATTN_MLA ? (double)m->hidden * (m->q_lora + m->kv_lora + m->rope_dim) : 0;
    double norms = 2 * m->hidden + m->q_lora + m->kv_lora;
    return low_rank * m->attention_weights.bytes_per_param + bf16_bytes(norms) +
           (has_indexer ? indexer_bytes(m) : 0);
}

static double replicated_linear_bytes(const struct model *m)
{
    double gates = 2.0 * m->hidden * m->linear.dim; /* first factors of the two gates */
    return gates * m->attention_weights.bytes_per_param + bf16_bytes(2 * m->hidden);
}

static double ffn_bytes(const struct model *m, int ranks)
{
    double gated = 3.0 * m->hidden * m->ffn_weights.bytes_per_param; /* per unit of inner width */
    double moe_layers = m->layers - m->dense_layers;
    double experts = (double)(m->moe.experts + m->moe.shared) * m->moe.inter;
    double router = (double)m->hidden * m->moe.experts * m->router_weights.bytes_per_param;
    return m->dense_layers * gated * m->dense_inter / ranks +
           moe_layers * (gated * experts / ranks + router);
}

double footprint_common_bytes(const struct model *m, int ranks)
{
    int kv_layers = model_kv_layers(m);
    double attention =
        m->indexer.layers * footprint_replicated_attention_bytes(m, true) +
        (kv_layers - m->indexer.layers) * footprint_replicated_attention_bytes(m, false) +
        m->linear.layers * replicated_linear_bytes(m);
    double embeddings = 2.0 * m->vocab * m->hidden * m->embedding_weights.bytes_per_param;
    return attention + ffn_bytes(m, ranks) + embeddings / ranks;
}

double footprint_kv_share(const struct layout *l)
{
    return 1.0 / (l->kv_head_shards * l->kv_pos_shards * l->kv_layer_shards);
}

double footprint_state_bytes(const struct model *m, const struct layout *l)
{
    double whole = (double)m->linear.layers * (double)m->linear.state_bytes_per_layer;
    return l->kv_owned ? whole : whole / l->ranks;
}

struct capacity capacity_of(const struct model *m, const struct cluster *c, const struct layout *l,
                            int page_tokens, double transit_bytes)
{
    int64_t layers_held = ceil_div_i64(model_kv_layers(m), l->kv_layer_shards);
    double layer_bytes = model_kv_bytes_per_token_layer(m) / l->kv_head_shards;
    struct capacity cap = {
        .budget_bytes = c->memory_frac * c->device.memory_bytes,
        .common_bytes = footprint_common_bytes(m, l->ranks),
        .weights_bytes = footprint_weights_bytes(m, l),
        .reserve_bytes = c->reserve_bytes + transit_bytes,
        .page_bytes = page_tokens * layer_bytes * (double)layers_held,
        .state_bytes = footprint_state_bytes(m, l),
    };
    double left = cap.budget_bytes - cap.common_bytes - cap.weights_bytes - cap.reserve_bytes;
    cap.pages = left > 0 ? (int64_t)(left / cap.page_bytes) : 0;
    return cap;
}

int64_t capacity_rank_tokens(const struct layout *l, int64_t tokens)
{
    return ceil_div_i64(tokens, l->kv_pos_shards);
}

int64_t capacity_pages_for(const struct layout *l, int64_t tokens, int page_tokens)
{
    return ceil_div_i64(capacity_rank_tokens(l, tokens), page_tokens);
}

/* Requests on the busiest holder. */
static int64_t held_requests(const struct layout *l, int batch)
{
    return l->kv_owned ? ceil_div_i64(batch, l->ranks) : batch;
}

int64_t capacity_max_context(const struct capacity *cap, const struct layout *l, int batch,
                             int page_tokens)
{
    assert(batch >= 1);
    int64_t held = held_requests(l, batch);
    double state_pages = (double)held * cap->state_bytes / cap->page_bytes;
    double left = (double)cap->pages - state_pages;
    int64_t pages_each = left > 0 ? (int64_t)(left / (double)held) : 0;
    return pages_each * page_tokens * l->kv_pos_shards;
}

struct loads footprint_loads(const struct model *m, const struct layout *l, int batch)
{
    struct layout whole = layout_of_cached(l);
    double held = (double)held_requests(l, batch);
    return (struct loads){
        .weights = footprint_weights_bytes(m, l) / footprint_weights_bytes(m, &whole),
        .kv_stored = held * footprint_kv_share(l),
        .kv_read = held / (l->kv_head_shards * l->attn_pos_shards),
        .attention_work = held / (l->attn_head_shards * l->attn_pos_shards),
    };
}
