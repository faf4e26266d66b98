/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefix cache of one group: prompt blocks whose KV outlives the requests that computed them.
 *
 * Like kv.h it counts under every layout at once. A block is at the common place, for layouts
 * without owners, and at each owner that computed or used it, for layouts with owners: so a switch
 * to a layout without owners merges the copies, and one to a layout with owners gives each owner
 * its own back. Only the places of the layout in force have to fit in memory.
 *
 * A block that running requests use takes pages as theirs do, once at a place however many use it.
 * What nobody uses waits in what they leave free, and goes when that shrinks: the one let go
 * longest ago first. A request lets go of its last block first, so that a prompt's blocks leave
 * from its end, and what a place has of a prompt is always its beginning.
 */
#ifndef SIM_ENGINE_PREFIX_H
#define SIM_ENGINE_PREFIX_H

#include "sim/engine/kv.h"

struct prefix_node;

struct prefix {
    int64_t block_tokens; /* 0: no cache, and nothing else may be called but release */
    struct kv *kv;        /* borrowed: its counts follow */
    struct prefix_node *node;
    size_t n_nodes, cap_nodes;
    uint32_t spare;   /* first of the nodes given back */
    uint32_t *bucket; /* blocks by hash */
    size_t n_buckets, n_blocks;
    int64_t n_idle[KV_PLACES];  /* blocks that nobody uses */
    int64_t n_used[KV_PLACES];  /* and those that somebody uses */
    int64_t n_first[RANKS_MAX]; /* blocks of which this owner has the oldest copy */
    int64_t evicted;
};

/* block_tokens of 0: no cache. Else of whole pages under every layout (kv_block_tokens). */
void prefix_init(struct prefix *p, struct kv *kv, int64_t block_tokens);
void prefix_release(struct prefix *p);
/* The copy counts in a KV of its own. */
void prefix_copy(struct prefix *to, const struct prefix *from, struct kv *kv);

/* Is the block at a place (an owner or KV_COMMON); does a running request use it there? */
bool prefix_has(const struct prefix *p, int place, uint64_t hash);
bool prefix_is_used(const struct prefix *p, int place, uint64_t hash);

/* A request of this owner holds the block's tokens in pages of its own, and from now on uses the
 * block, at its owner and at the common place: the pages become the block's where nobody used it,
 * and are free where somebody did. */
void prefix_take(struct prefix *p, int owner, uint64_t hash);
/* It lets go of the block, which stays as long as there is room. */
void prefix_drop(struct prefix *p, int owner, uint64_t hash);

/* Evict what has no room under this layout beside what running requests hold. */
void prefix_trim(struct prefix *p, int layout);
/* Evict everything; nobody may use any of it. */
void prefix_clear(struct prefix *p);

/* Add, by owner, the tokens of the blocks that a switch to this layout takes along: what fits
 * there, each copy where ranks own requests, each block once (with the owner of its oldest copy)
 * where they do not. */
void prefix_add_tokens(const struct prefix *p, int to, int64_t *tokens);

#endif
