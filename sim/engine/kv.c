/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/kv.h"

#include <assert.h>
#include <string.h>

#include "sim/base/ints.h"

void kv_init(struct kv *kv, const struct cost *cost, int64_t page_tokens)
{
    memset(kv, 0, sizeof *kv);
    kv->n_layouts = cost_n_layouts(cost);
    kv->ranks = cost_ranks(cost);
    for (int l = 0; l < kv->n_layouts; l++) {
        const struct layout *layout = cost_layout(cost, l);
        const struct capacity *capacity = cost_capacity(cost, l);
        kv->pool[l] = (struct kv_pool){
            .pages = capacity->pages,
            .extra_pages = capacity->state_bytes > 0
                               ? (int64_t)(capacity->state_bytes / capacity->page_bytes) + 1
                               : 0,
            .page_tokens = page_tokens,
            .pos_shards = layout->kv_pos_shards,
            .owned = layout->kv_owned,
        };
    }
}

void kv_set_capacity(struct kv *kv, int64_t pages)
{
    for (int l = 0; l < kv->n_layouts; l++)
        if (kv->pool[l].pages > 0)
            kv->pool[l].pages = pages;
}

int64_t kv_pages_for(const struct kv_pool *p, int64_t tokens)
{
    return ceil_div_i64(ceil_div_i64(tokens, p->pos_shards), p->page_tokens) + p->extra_pages;
}

void kv_add(struct kv *kv, int owner, int64_t tokens)
{
    for (int l = 0; l < kv->n_layouts; l++)
        kv->pool[l].used_pages[kv->pool[l].owned ? owner : 0] += kv_pages_for(&kv->pool[l], tokens);
}

void kv_remove(struct kv *kv, int owner, int64_t tokens)
{
    for (int l = 0; l < kv->n_layouts; l++) {
        int64_t *used = &kv->pool[l].used_pages[kv->pool[l].owned ? owner : 0];
        *used -= kv_pages_for(&kv->pool[l], tokens);
        assert(*used >= 0);
    }
}

void kv_grow(struct kv *kv, int owner, int64_t from_tokens, int64_t to_tokens)
{
    for (int l = 0; l < kv->n_layouts; l++)
        kv->pool[l].used_pages[kv->pool[l].owned ? owner : 0] +=
            kv_pages_for(&kv->pool[l], to_tokens) - kv_pages_for(&kv->pool[l], from_tokens);
}

int64_t kv_used(const struct kv *kv, int layout, int owner)
{
    const struct kv_pool *p = &kv->pool[layout];
    return p->used_pages[p->owned ? owner : 0];
}

bool kv_has_room(const struct kv *kv, int layout, int owner, int64_t tokens)
{
    const struct kv_pool *p = &kv->pool[layout];
    return kv_used(kv, layout, owner) + kv_pages_for(p, tokens) <= p->pages;
}

bool kv_could_hold(const struct kv *kv, int layout, int64_t tokens)
{
    return kv_pages_for(&kv->pool[layout], tokens) <= kv->pool[layout].pages;
}

int64_t kv_busiest(const struct kv *kv, int layout)
{
    const struct kv_pool *p = &kv->pool[layout];
    int64_t most = p->used_pages[0];
    for (int r = 1; p->owned && r < kv->ranks; r++)
        most = p->used_pages[r] > most ? p->used_pages[r] : most;
    return most;
}

bool kv_fits(const struct kv *kv, int layout)
{
    return kv_busiest(kv, layout) <= kv->pool[layout].pages;
}

int kv_place(const struct kv *kv, int layout, int owner)
{
    return kv->pool[layout].owned ? owner : KV_COMMON;
}

static int64_t tokens_of_page(const struct kv_pool *p)
{
    return p->page_tokens * p->pos_shards;
}

int64_t kv_block_tokens(const struct kv *kv, int64_t tokens)
{
    for (int l = 0; l < kv->n_layouts; l++)
        tokens = lcm_i64(tokens, tokens_of_page(&kv->pool[l]));
    return tokens;
}

void kv_add_block(struct kv *kv, int place, int64_t tokens)
{
    for (int l = 0; l < kv->n_layouts; l++) {
        struct kv_pool *p = &kv->pool[l];
        if (p->owned != (place != KV_COMMON))
            continue;
        assert(tokens % tokens_of_page(p) == 0);
        p->used_pages[p->owned ? place : 0] += tokens / tokens_of_page(p);
    }
}

int64_t kv_room_blocks(const struct kv *kv, int layout, int owner, int64_t block_tokens)
{
    const struct kv_pool *p = &kv->pool[layout];
    int64_t free_pages = max_i64(p->pages - kv_used(kv, layout, owner), 0);
    return free_pages / (block_tokens / tokens_of_page(p));
}

static int64_t pool_safe_steps(const struct kv_pool *p, int owner, int n)
{
    /* g tokens more cost a request at most ceil(g / page) pages on a rank. */
    int64_t free_pages = p->pages - p->used_pages[owner];
    return n == 0 ? SEG_FOREVER : free_pages / n * p->page_tokens * p->pos_shards;
}

int64_t kv_safe_steps(const struct kv *kv, const int *n_of_owner, int n_requests)
{
    int64_t safe = SEG_FOREVER;
    for (int l = 0; l < kv->n_layouts; l++) {
        const struct kv_pool *p = &kv->pool[l];
        if (!kv_fits(kv, l))
            continue;
        for (int r = 0; r < (p->owned ? kv->ranks : 1); r++) {
            int64_t steps = pool_safe_steps(p, r, p->owned ? n_of_owner[r] : n_requests);
            safe = steps < safe ? steps : safe;
        }
    }
    return safe;
}
