/* SPDX-License-Identifier: Apache-2.0
 *
 * How requests use the prefix cache. A block can be used once the chunk that computes its end has
 * landed. A prompt is looked up at admission and again at each step until its last chunk, since
 * what another request computes meanwhile need not be computed twice. At least one token of a
 * prompt is computed, as its last row makes the next token.
 */
#include "sim/base/ints.h"
#include "sim/engine/group.h"

/* A hash stands for all that is before it, so that a block's last hash stands for the block. */
static uint64_t block_hash(const struct group *g, uint32_t req, int64_t block)
{
    int64_t hashes = g->prefix.block_tokens / g->engine->block_tokens;
    return g->engine->hash[g->engine->request[req].hash_at + (size_t)((block + 1) * hashes - 1)];
}

/* Whole blocks in the first `tokens` of the prompt. */
static int64_t blocks_in(const struct group *g, uint32_t req, int64_t tokens)
{
    const struct engine_request *r = &g->engine->request[req];
    tokens = min_i64(tokens, r->input_tokens);
    return min_i64(tokens, r->n_hashes * g->engine->block_tokens) / g->prefix.block_tokens;
}

/* The run of blocks from the first on that count, those that the request uses already included. */
static int64_t run_tokens(const struct group *g, uint32_t req, int place,
                          bool (*counts)(const struct prefix *p, int place, uint64_t hash))
{
    const struct flight *f = &g->engine->flight[req];
    if (g->prefix.block_tokens == 0 || f->kv_elsewhere) /* that brings all of its KV */
        return 0;
    int64_t all = g->engine->request[req].input_tokens + f->made_tokens;
    int64_t end = blocks_in(g, req, all - 1), n = f->held.shared_tokens / g->prefix.block_tokens;
    while (n < end && counts(&g->prefix, place, block_hash(g, req, n)))
        n++;
    return n * g->prefix.block_tokens;
}

int64_t group_cached_tokens(const struct group *g, uint32_t req, int place)
{
    return run_tokens(g, req, place, prefix_has);
}

int64_t group_used_tokens(const struct group *g, uint32_t req, int place)
{
    return run_tokens(g, req, place, prefix_is_used);
}

static void take_next(struct group *g, uint32_t req)
{
    struct flight *f = &g->engine->flight[req];
    int64_t block = f->held.shared_tokens / g->prefix.block_tokens;
    prefix_take(&g->prefix, f->held.owner, block_hash(g, req, block));
    f->held.shared_tokens += g->prefix.block_tokens;
}

void group_reuse(struct group *g, uint32_t req)
{
    struct flight *f = &g->engine->flight[req];
    struct request_result *result = &g->engine->out->request[req];
    int64_t cached = group_cached_tokens(g, req, kv_place(&g->kv, g->layout, f->held.owner));
    if (cached <= f->kv_tokens)
        return;
    while (f->held.shared_tokens < cached)
        take_next(g, req);
    if (result->preemptions == 0)
        result->cached_tokens += cached - f->kv_tokens;
    f->kv_tokens = cached;
}

void group_share(struct group *g, uint32_t req)
{
    const struct flight *f = &g->engine->flight[req];
    if (g->prefix.block_tokens == 0)
        return;
    int64_t end = blocks_in(g, req, f->kv_tokens) * g->prefix.block_tokens;
    while (f->held.shared_tokens < end)
        take_next(g, req);
}

void group_unshare(struct group *g, uint32_t req, struct held *h)
{
    while (h->shared_tokens > 0) {
        h->shared_tokens -= g->prefix.block_tokens;
        prefix_drop(&g->prefix, h->owner,
                    block_hash(g, req, h->shared_tokens / g->prefix.block_tokens));
    }
}
