/* SPDX-License-Identifier: Apache-2.0
 *
 * KV pages of one group, counted under every layout at once, so that "would the running requests
 * fit there" is a comparison (Eq. 6). A layout without owners has one pool, the same on every rank.
 */
#ifndef SIM_ENGINE_KV_H
#define SIM_ENGINE_KV_H

#include "sim/cost/cost.h"

/* A place is an owner, or in their stead the one common to layouts without owners. */
enum { KV_COMMON = RANKS_MAX, KV_PLACES };

struct kv_pool {
    int64_t used_pages[RANKS_MAX]; /* by owner; [0] alone without owners */
    int64_t pages;                 /* capacity of each */
    int64_t extra_pages;           /* of each request: recurrent state */
    int64_t page_tokens;
    int pos_shards;
    bool owned;
};

struct kv {
    int n_layouts, ranks;
    struct kv_pool pool[LAYOUT_MAX];
};

void kv_init(struct kv *kv, const struct cost *cost, int64_t page_tokens);

/* Another capacity for every pool that has any, in pages of each rank (of each owner). */
void kv_set_capacity(struct kv *kv, int64_t pages);

/* Pages of a request that holds so many tokens, on each rank that holds it. */
int64_t kv_pages_for(const struct kv_pool *p, int64_t tokens);

/* A request enters, leaves, or goes from holding `from` to holding `to` tokens. */
void kv_add(struct kv *kv, int owner, int64_t tokens);
void kv_remove(struct kv *kv, int owner, int64_t tokens);
void kv_grow(struct kv *kv, int owner, int64_t from_tokens, int64_t to_tokens);

int64_t kv_used(const struct kv *kv, int layout, int owner);
/* Is there room for one more request of so many tokens? */
bool kv_has_room(const struct kv *kv, int layout, int owner, int64_t tokens);
/* Could it ever fit, alone? */
bool kv_could_hold(const struct kv *kv, int layout, int64_t tokens);
/* Every pool within its capacity. */
bool kv_fits(const struct kv *kv, int layout);
/* Pages used of the fullest pool. */
int64_t kv_busiest(const struct kv *kv, int layout);

int kv_place(const struct kv *kv, int layout, int owner);
/* The fewest tokens that are a multiple of `tokens` and of whole pages under every layout. */
int64_t kv_block_tokens(const struct kv *kv, int64_t tokens);
/* Tokens of whole pages enter the pools of one place; negative: leave. */
void kv_add_block(struct kv *kv, int place, int64_t tokens);
/* How many blocks of so many tokens fit into what is free; 0 when more is used than there is. */
int64_t kv_room_blocks(const struct kv *kv, int layout, int owner, int64_t block_tokens);

/* Growth by one token a step of n_of_owner[owner] requests: a number of steps, maybe 0, for which
 * no layout that fits now stops fitting. */
int64_t kv_safe_steps(const struct kv *kv, const int *n_of_owner, int n_requests);

#endif
