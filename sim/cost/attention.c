/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention proper: scores and values over a request's live context, on each rank that works on it.
 * A rank has heads / attn_head_shards heads and 1 / attn_pos_shards of the positions.
 */
#include <assert.h>

#include "sim/base/ints.h"
#include "sim/cost/cost_internal.h"

enum {
    TILE_HEADS = 64,       /* of a block of an MLA kernel */
    PART_TOKENS = 64,      /* its contexts are cut at multiples of this */
    MERGE_WARPS = 8,       /* of an SM */
    MERGE_LOADS = 4,       /* parts that a warp takes in a turn */
    LONG_TOKENS = 1 << 17, /* where reads are at their best */
};

static double min_f64(double a, double b)
{
    return a < b ? a : b;
}

static double heads_per_rank(const struct cost *c, const struct layout *l)
{
    return (double)c->model.heads / l->attn_head_shards;
}

/* FLOP of one head for one attended token: MLA against the latent (absorbed), GQA against K and V.
 */
static double pair_flop(const struct model *m)
{
    return m->attention == ATTN_MLA ? 2.0 * (m->kv_lora + m->rope_dim + m->kv_lora)
                                    : 2.0 * (m->nope_dim + m->rope_dim + m->v_dim);
}

static double indexer_pair_flop(const struct model *m)
{
    return m->indexer.heads > 0 ? 2.0 * m->indexer.heads * m->indexer.dim / m->indexer.pool : 0;
}

/* KV bytes of an attended token in one layer that a rank reads, index keys apart. */
static double read_bytes(const struct model *m, const struct layout *l)
{
    if (m->attention == ATTN_MLA)
        return m->kv.latent_bytes + m->kv.scale_bytes + m->kv.rope_bytes;
    double kv_heads = (double)m->kv_heads / l->attn_head_shards;
    return m->kv.head_bytes * (kv_heads > 1 ? kv_heads : 1);
}

/* What a row costs besides, on every rank whatever part of the positions it has. */
static double extra_tokens(const struct cost *c, const struct layout *l)
{
    return (double)c->profile->attention.row_tokens * l->attn_pos_shards;
}

static double attended(const struct cost *c, const struct layout *l, double context)
{
    const struct model *m = &c->model;
    double seen = m->indexer.heads > 0 ? min_f64(context, m->indexer.topk) : context;
    return seen + extra_tokens(c, l);
}

/* Work that each request brings whatever its context: recurrent state, read and written. */
static double state_s(const struct cost *c, const struct layout *l)
{
    return read_s(c, STAGE_ATTN_DECODE, 2 * footprint_state_bytes(&c->model, l), 1);
}

static double decode_flop_s(const struct cost *c, const struct layout *l, double context)
{
    const struct model *m = &c->model;
    double heads = heads_per_rank(c, l);
    double flop = model_kv_layers(m) * attended(c, l, context) * heads * pair_flop(m);
    double index = m->indexer.layers * context * indexer_pair_flop(m);
    return (flop_s(c, STAGE_ATTN_DECODE, m->activations, flop, heads) +
            flop_s(c, STAGE_ATTN_DECODE, m->attention_weights.format, index, m->indexer.heads)) /
           l->attn_pos_shards;
}

static double decode_kv_read_s(const struct cost *c, const struct layout *l, double context)
{
    const struct model *m = &c->model;
    double bytes = model_kv_layers(m) * attended(c, l, context) * read_bytes(m, l) +
                   m->indexer.layers * context * m->kv.indexer_bytes;
    return read_s(c, STAGE_ATTN_DECODE, bytes, context) / l->attn_pos_shards;
}

static double decode_read_s(const struct cost *c, const struct layout *l, double context)
{
    return decode_kv_read_s(c, l, context) + state_s(c, l);
}

/* Contexts at which a curve bends: profile points, the sparse limit, and one far out. */
static int knots(const struct cost *c, int64_t *tokens)
{
    const struct efficiency *e = &c->profile->stage[STAGE_ATTN_DECODE].hbm_frac;
    int64_t topk = c->model.indexer.heads > 0 ? c->model.indexer.topk : 0;
    int n = 0;
    tokens[n++] = 0;
    for (int i = 0; i < e->n; i++) {
        int64_t at = (int64_t)e->size[i];
        if (topk > tokens[n - 1] && topk < at)
            tokens[n++] = topk;
        if (at > tokens[n - 1])
            tokens[n++] = at;
    }
    if (topk > tokens[n - 1])
        tokens[n++] = topk;
    tokens[n] = tokens[n - 1] + (1 << 20);
    assert(n + 1 <= CURVE_PIECES_MAX);
    return n + 1;
}

typedef double context_fn(const struct cost *c, const struct layout *l, double context);

static void compile(const struct cost *c, const struct layout *l, context_fn *f, double scale,
                    struct curve *out)
{
    int64_t tokens[CURVE_PIECES_MAX];
    double ps[CURVE_PIECES_MAX];
    int n = knots(c, tokens);
    for (int i = 0; i < n; i++) {
        ps[i] = f(c, l, (double)tokens[i]) * scale * 1e12;
        /* A rate that rises with context may dip the time; it never falls in truth. */
        if (i > 0 && ps[i] < ps[i - 1])
            ps[i] = ps[i - 1];
    }
    curve_through(out, n, tokens, ps);
}

void attention_compile(const struct cost *c, const struct layout *l, struct attention_curves *out)
{
    compile(c, l, decode_flop_s, 1, &out->whole.flop);
    compile(c, l, decode_read_s, 1, &out->whole.read);
    for (int parts = 1; parts <= l->sub_batches; parts++) {
        /* Linear-attention layers are not cut into sub-batches. */
        context_fn *read = parts > 1 ? decode_kv_read_s : decode_read_s;
        double frac = cost_hiding_frac(c, parts);
        compile(c, l, decode_flop_s, frac, &out->hiding[parts - 1].flop);
        compile(c, l, read, frac, &out->hiding[parts - 1].read);
    }
    out->fetch_ps_per_token = round_ps(exchange_fetch_s_per_token(c, l));
}

/* Query-key pairs of q rows that end a context of s: causal, at most topk a row when sparse. */
static double causal_pairs(double s, double q)
{
    return q * s - q * (q - 1) / 2;
}

static double attended_pairs(const struct model *m, double s, double q)
{
    double topk = m->indexer.topk;
    if (m->indexer.heads == 0 || s <= topk)
        return causal_pairs(s, q);
    double below = s - q < topk ? topk - (s - q) : 0; /* rows that see fewer than topk */
    return (below > 0 ? causal_pairs(topk, below) : 0) + (q - below) * topk;
}

bool attention_is_partial(const struct cost *c, const struct layout *l)
{
    return c->profile->attention.positions == POSITIONS_PARTIAL && l->attn_pos_shards > 1 &&
           l->kv_layer_shards == 1;
}

double attention_combine_s(const struct cost *c, const struct layout *l, const struct row_counts *n)
{
    if (!attention_is_partial(c, l))
        return 0;
    double layers = model_kv_layers(&c->model);
    double bytes = (double)n->rows * exchange_partial_bytes(c, l) * (1 + 1.0 / l->attn_pos_shards);
    return layers * (1e-6 * c->profile->attention.combine_us +
                     read_s(c, STAGE_ATTN_DECODE, bytes, LONG_TOKENS));
}

double attention_launch_s(const struct cost *c, const struct row_counts *n)
{
    double layers = model_kv_layers(&c->model);
    double decode = n->rows > n->prefill_rows ? launch_s(c, STAGE_ATTN_DECODE, layers) : 0;
    double prefill = n->prefill_rows > 0 ? launch_s(c, STAGE_ATTN_PREFILL, layers) : 0;
    return decode > prefill ? decode : prefill;
}

/* Work is dealt out evenly, whoever's context it is: a part's is the tokens over the parts and a
 * block more. Few rows are merged by all warps of a block, more by one warp each. */
struct seg attention_merge(const struct cost *c, const struct layout *l, const struct dealt *d)
{
    const struct attention_profile *a = &c->profile->attention;
    int64_t heads = c->model.heads / l->attn_head_shards, sms = c->cluster.device.sms;
    int64_t parts = sms / ceil_div_i64(heads, TILE_HEADS);
    if (a->merge_us <= 0 || parts < 2 || d->rows == 0 || c->model.attention != ATTN_MLA ||
        c->model.indexer.heads > 0)
        return seg_const(0);
    int64_t at_once = d->rows * heads <= sms ? MERGE_WARPS : 1;
    int64_t more = l->attn_pos_shards * (parts * PART_TOKENS + d->rows * a->row_tokens);
    struct seg longest = {d->longest_tokens, 1, SEG_FOREVER};
    struct seg all = {at_once * (d->tokens + more), at_once * d->rows, SEG_FOREVER};
    int64_t pieces = parts * longest.a_ps / all.a_ps;
    int64_t turns = at_once > 1 ? 0 : d->rows * heads * MERGE_LOADS / (sms * MERGE_WARPS);
    int64_t ps = round_ps(1e-6 * a->merge_us * model_kv_layers(&c->model));
    struct seg merge = seg_const(pieces > 0 ? (pieces + turns) * ps : 0);
    merge.n = min_i64(seg_same_order(all, pieces, longest, parts),
                      seg_same_order(all, pieces + 1, longest, parts));
    return merge;
}

/* Blocks read one context side by side, each all of it: what half of L2 holds (each half serves its
 * own SMs) is read from HBM once, the rest again and again. */
static double spill(const struct cost *c, const struct layout *l, double context)
{
    double bytes = context * read_bytes(&c->model, l) / l->attn_pos_shards;
    double held = bytes > 0 ? c->cluster.device.l2_bytes / 2 / bytes : 1;
    return 1 + c->profile->attention.spill_frac * (held < 1 ? 1 - held : 0);
}

void attention_chunk_s(const struct cost *c, const struct layout *l, const struct batch_item *i,
                       double *flop, double *read)
{
    const struct model *m = &c->model;
    double s = (double)i->ctx_tokens, q = i->q, heads = heads_per_rank(c, l);
    double kv_layers = model_kv_layers(m);
    bool expands = m->attention == ATTN_MLA && m->indexer.heads == 0 &&
                   c->profile->attention.mla_prefill == MLA_EXPANDED;
    double pair = expands ? 2.0 * (m->nope_dim + m->rope_dim + m->v_dim) : pair_flop(m);
    double pairs = attended_pairs(m, s, q) + q * extra_tokens(c, l);
    double work = kv_layers * pairs * heads * pair * spill(c, l, s);
    if (expands) /* K and V of the whole context, again in every chunk */
        work += kv_layers * 2.0 * s * m->kv_lora * heads * (m->nope_dim + m->v_dim);
    double index = m->indexer.layers * causal_pairs(s, q) * indexer_pair_flop(m);
    *flop = (flop_s(c, STAGE_ATTN_PREFILL, m->activations, work, q) +
             flop_s(c, STAGE_ATTN_PREFILL, m->attention_weights.format, index, q)) /
            l->attn_pos_shards;
    double bytes = s * (kv_layers * read_bytes(m, l) + m->indexer.layers * m->kv.indexer_bytes);
    *read = read_s(c, STAGE_ATTN_PREFILL, bytes, s) / l->attn_pos_shards + state_s(c, l);
}
