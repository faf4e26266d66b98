/* SPDX-License-Identifier: Apache-2.0
 *
 * What the coming step computes: one row for every decoding request, then prefill chunks in order
 * of admission while the token budget lasts. Layouts whose ranks own requests prefill side by side,
 * each owner from its even share of the budget; the others share it.
 */
#include "sim/base/mem.h"
#include "sim/engine/group.h"

struct budget {
    int64_t left[RANKS_MAX]; /* [0] alone when shared */
    bool owned;
};

static void budget_init(struct budget *b, const struct group *g, bool owned)
{
    int64_t total = g->engine->config->token_budget;
    int ranks = g->kv.ranks;
    b->owned = owned;
    if (!owned) {
        b->left[0] = total - (int64_t)g->n_decode;
        return;
    }
    for (int r = 0; r < ranks; r++)
        b->left[r] = (total + ranks - 1) / ranks;
    for (size_t i = 0; i < g->n_decode; i++)
        b->left[g->item[i].owner]--;
}

static void add_chunk(struct group *g, uint32_t req, int64_t q)
{
    const struct flight *f = &g->engine->flight[req];
    size_t i = g->n_chunks++, at = g->n_decode + i;
    g->chunk = xgrow(g->chunk, &g->cap_chunk, i + 1, sizeof *g->chunk);
    g->item = xgrow(g->item, &g->cap_item, at + 1, sizeof *g->item);
    g->item_req = xgrow(g->item_req, &g->cap_item_req, at + 1, sizeof *g->item_req);
    g->chunk[i] = (struct chunk){req, (int32_t)q};
    g->item[at] = (struct batch_item){f->kv_tokens + q, (int32_t)q, f->held.owner};
    g->item_req[at] = req;
}

int64_t group_build(struct group *g, bool owned)
{
    struct budget budget;
    int64_t rows = (int64_t)g->n_decode;
    g->n_chunks = 0;
    if (g->n_prefill == 0)
        return rows;
    budget_init(&budget, g, owned);
    for (size_t i = 0; i < g->n_prefill; i++) {
        const struct flight *f = &g->engine->flight[g->prefill[i]];
        int64_t *left = &budget.left[owned ? f->held.owner : 0];
        int64_t todo = f->prefill_tokens - f->kv_tokens;
        int64_t q = todo < *left ? todo : *left;
        if (q <= 0 && !owned)
            break;
        if (q <= 0)
            continue;
        *left -= q;
        rows += q;
        add_chunk(g, g->prefill[i], q);
    }
    return rows;
}

struct batch group_batch(const struct group *g)
{
    return (struct batch){
        .n_decode = (int)g->n_decode,
        .n = (int)(g->n_decode + g->n_chunks),
        .item = g->item,
    };
}

void group_live_tokens(const struct group *g, int64_t *ctx_tokens)
{
    for (int r = 0; r < g->kv.ranks; r++)
        ctx_tokens[r] = g->leaving_tokens[r];
    for (size_t i = 0; i < g->n_decode; i++)
        ctx_tokens[g->item[i].owner] +=
            g->item[i].ctx_tokens - 1 - g->engine->flight[g->item_req[i]].held.shared_tokens;
    for (size_t i = 0; i < g->n_prefill; i++) {
        const struct flight *f = &g->engine->flight[g->prefill[i]];
        ctx_tokens[f->held.owner] += f->kv_tokens - f->held.shared_tokens;
    }
}
