/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/prefix.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

/* A block at one place. Those that nobody uses are in a ring around their place's head. */
struct prefix_node {
    uint64_t hash;
    uint32_t users;
    int32_t place;
    uint32_t older, newer; /* in the ring; NONE while used */
    uint32_t copy;         /* at the common place the block's first copy; of a copy the next */
    uint32_t next;         /* at the common place the next in the bucket; of a spare the next */
};

enum { NONE, HEADS, FIRST_NODE = HEADS + KV_PLACES };

void prefix_init(struct prefix *p, struct kv *kv, int64_t block_tokens)
{
    *p = (struct prefix){.block_tokens = block_tokens, .kv = kv};
    if (block_tokens == 0)
        return;
    p->n_buckets = 1024;
    p->bucket = xcalloc(p->n_buckets, sizeof *p->bucket);
    p->node = xgrow(NULL, &p->cap_nodes, FIRST_NODE, sizeof *p->node);
    p->n_nodes = FIRST_NODE;
    p->node[NONE] = (struct prefix_node){0};
    for (uint32_t head = HEADS; head < FIRST_NODE; head++)
        p->node[head] = (struct prefix_node){.older = head, .newer = head};
}

void prefix_release(struct prefix *p)
{
    free(p->node);
    free(p->bucket);
    *p = (struct prefix){0};
}

void prefix_copy(struct prefix *to, const struct prefix *from, struct kv *kv)
{
    *to = *from;
    to->kv = kv;
    to->node = xmemdup(from->node, from->cap_nodes, sizeof *from->node);
    to->bucket = xmemdup(from->bucket, from->n_buckets, sizeof *from->bucket);
}

static uint32_t *bucket_of(const struct prefix *p, uint64_t hash)
{
    /* Fibonacci hashing: some traces number their blocks from 0. */
    uint64_t mixed = hash * 0x9e3779b97f4a7c15;
    return &p->bucket[(mixed >> 32) & (p->n_buckets - 1)];
}

static uint32_t find(const struct prefix *p, int place, uint64_t hash)
{
    uint32_t at = *bucket_of(p, hash);
    while (at != NONE && p->node[at].hash != hash)
        at = p->node[at].next;
    while (at != NONE && p->node[at].place != place)
        at = p->node[at].copy;
    return at;
}

static uint32_t new_node(struct prefix *p, int place, uint64_t hash)
{
    uint32_t at = p->spare;
    if (at != NONE) {
        p->spare = p->node[at].next;
    } else {
        p->node = xgrow(p->node, &p->cap_nodes, p->n_nodes + 1, sizeof *p->node);
        at = (uint32_t)p->n_nodes++;
    }
    p->node[at] = (struct prefix_node){.hash = hash, .place = place};
    return at;
}

static void free_node(struct prefix *p, uint32_t at)
{
    p->node[at].next = p->spare;
    p->spare = at;
}

static void widen(struct prefix *p)
{
    if (p->n_blocks < p->n_buckets)
        return;
    size_t n = p->n_buckets;
    uint32_t *old = p->bucket;
    p->n_buckets *= 2;
    p->bucket = xcalloc(p->n_buckets, sizeof *p->bucket);
    for (size_t i = 0; i < n; i++)
        for (uint32_t at = old[i], next; at != NONE; at = next) {
            uint32_t *bucket = bucket_of(p, p->node[at].hash);
            next = p->node[at].next;
            p->node[at].next = *bucket;
            *bucket = at;
        }
    free(old);
}

static uint32_t new_block(struct prefix *p, uint64_t hash)
{
    widen(p);
    uint32_t at = new_node(p, KV_COMMON, hash), *bucket = bucket_of(p, hash);
    p->node[at].next = *bucket;
    *bucket = at;
    p->n_blocks++;
    return at;
}

static uint32_t new_copy(struct prefix *p, uint32_t block, int owner)
{
    uint32_t at = new_node(p, owner, p->node[block].hash), last = block;
    while (p->node[last].copy != NONE)
        last = p->node[last].copy;
    p->node[last].copy = at;
    p->n_first[owner] += last == block;
    return at;
}

static void unlink_idle(struct prefix *p, uint32_t at)
{
    struct prefix_node *n = &p->node[at];
    p->node[n->older].newer = n->newer;
    p->node[n->newer].older = n->older;
    n->older = n->newer = NONE;
    p->n_idle[n->place]--;
}

static void link_newest(struct prefix *p, uint32_t at)
{
    struct prefix_node *n = &p->node[at];
    uint32_t head = HEADS + (uint32_t)n->place;
    n->older = p->node[head].older;
    n->newer = head;
    p->node[n->older].newer = p->node[head].older = at;
    p->n_idle[n->place]++;
}

/* A ring's head lies between its newest node and its oldest. */
static uint32_t oldest(const struct prefix *p, int place)
{
    return p->node[HEADS + place].newer;
}

static void take(struct prefix *p, uint32_t at)
{
    struct prefix_node *n = &p->node[at];
    if (n->users++ > 0) {
        kv_add_block(p->kv, n->place, -p->block_tokens);
        return;
    }
    if (n->older != NONE)
        unlink_idle(p, at);
    p->n_used[n->place]++;
}

static void drop(struct prefix *p, uint32_t at)
{
    struct prefix_node *n = &p->node[at];
    assert(at != NONE && n->users > 0);
    if (--n->users > 0)
        return;
    kv_add_block(p->kv, n->place, -p->block_tokens);
    p->n_used[n->place]--;
    link_newest(p, at);
}

bool prefix_has(const struct prefix *p, int place, uint64_t hash)
{
    return find(p, place, hash) != NONE;
}

bool prefix_is_used(const struct prefix *p, int place, uint64_t hash)
{
    return p->node[find(p, place, hash)].users > 0;
}

void prefix_take(struct prefix *p, int owner, uint64_t hash)
{
    uint32_t block = find(p, KV_COMMON, hash);
    if (block == NONE)
        block = new_block(p, hash);
    uint32_t copy = find(p, owner, hash);
    if (copy == NONE)
        copy = new_copy(p, block, owner);
    take(p, block);
    take(p, copy);
}

void prefix_drop(struct prefix *p, int owner, uint64_t hash)
{
    drop(p, find(p, owner, hash));
    drop(p, find(p, KV_COMMON, hash));
}

static void remove_block(struct prefix *p, uint32_t block)
{
    uint32_t *link = bucket_of(p, p->node[block].hash);
    while (*link != block)
        link = &p->node[*link].next;
    *link = p->node[block].next;
    unlink_idle(p, block);
    free_node(p, block);
    p->n_blocks--;
}

static void remove_copy(struct prefix *p, uint32_t block, uint32_t copy)
{
    const struct prefix_node *n = &p->node[copy];
    uint32_t *link = &p->node[block].copy;
    if (*link == copy) {
        p->n_first[n->place]--;
        if (n->copy != NONE)
            p->n_first[p->node[n->copy].place]++;
    }
    while (*link != copy)
        link = &p->node[*link].copy;
    *link = n->copy;
    unlink_idle(p, copy);
    free_node(p, copy);
}

/* From a place with owners one copy goes, from the common place all copies with the block. */
static void evict(struct prefix *p, uint32_t at)
{
    uint32_t block = find(p, KV_COMMON, p->node[at].hash);
    assert(p->node[at].users == 0);
    if (at != block)
        remove_copy(p, block, at);
    while (at == block && p->node[block].copy != NONE)
        remove_copy(p, block, p->node[block].copy);
    if (p->node[block].copy == NONE)
        remove_block(p, block);
    p->evicted++;
}

/* Blocks that nobody uses and for which there is no room. */
static int64_t excess(const struct prefix *p, int layout, int owner)
{
    int64_t room = kv_room_blocks(p->kv, layout, owner, p->block_tokens);
    return max_i64(p->n_idle[kv_place(p->kv, layout, owner)] - room, 0);
}

static int n_pools(const struct prefix *p, int layout)
{
    return p->kv->pool[layout].owned ? p->kv->ranks : 1;
}

void prefix_trim(struct prefix *p, int layout)
{
    for (int owner = 0; owner < n_pools(p, layout); owner++)
        for (int64_t n = excess(p, layout, owner); n > 0; n--)
            evict(p, oldest(p, kv_place(p->kv, layout, owner)));
}

void prefix_clear(struct prefix *p)
{
    assert(p->n_used[KV_COMMON] == 0);
    while (p->n_idle[KV_COMMON] > 0)
        evict(p, oldest(p, KV_COMMON));
}

static void add_blocks(const struct prefix *p, int to, int64_t *tokens)
{
    for (int owner = 0; owner < p->kv->ranks; owner++)
        tokens[owner] += p->n_first[owner] * p->block_tokens;
    uint32_t at = oldest(p, KV_COMMON);
    for (int64_t n = excess(p, to, 0); n > 0; n--, at = p->node[at].newer)
        tokens[p->node[p->node[at].copy].place] -= p->block_tokens;
}

static void add_copies(const struct prefix *p, int to, int64_t *tokens)
{
    for (int owner = 0; owner < p->kv->ranks; owner++) {
        int64_t blocks = p->n_used[owner] + p->n_idle[owner] - excess(p, to, owner);
        tokens[owner] += blocks * p->block_tokens;
    }
}

void prefix_add_tokens(const struct prefix *p, int to, int64_t *tokens)
{
    if (p->kv->pool[to].owned)
        add_copies(p, to, tokens);
    else
        add_blocks(p, to, tokens);
}
