/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the KV row of a position lies. A request's positions are dealt to its shards in blocks of
 * 16, round robin (Helix's staggered append; one shard is an owner with all of them). A shard
 * numbers what it holds from 0 without gaps: slots. Slot s of a request is row s % 64 of the page
 * in its page table's entry s / 64.
 */
#ifndef KERNELS_KV_PAGES_H
#define KERNELS_KV_PAGES_H

#include <stdint.h>

#ifdef __CUDACC__
#define KV_PAGES_INLINE static inline __host__ __device__
#else
#define KV_PAGES_INLINE static inline
#endif

enum { KV_PAGE_TOKENS = 64, KV_BLOCK_TOKENS = 16 };

KV_PAGES_INLINE int kv_pages_shard(int64_t position, int shards)
{
    return (int)(position / KV_BLOCK_TOKENS % shards);
}

/* The slot on the shard that holds the position. */
KV_PAGES_INLINE int64_t kv_pages_slot(int64_t position, int shards)
{
    return position / KV_BLOCK_TOKENS / shards * KV_BLOCK_TOKENS + position % KV_BLOCK_TOKENS;
}

/* The inverse. */
KV_PAGES_INLINE int64_t kv_pages_position(int64_t slot, int shard, int shards)
{
    return (slot / KV_BLOCK_TOKENS * shards + shard) * KV_BLOCK_TOKENS + slot % KV_BLOCK_TOKENS;
}

/* How many of the first `tokens` positions the shard holds. */
KV_PAGES_INLINE int64_t kv_pages_shard_tokens(int64_t tokens, int shard, int shards)
{
    const int64_t round = (int64_t)KV_BLOCK_TOKENS * shards;
    int64_t rest = tokens % round - (int64_t)shard * KV_BLOCK_TOKENS;
    if (rest < 0)
        rest = 0;
    if (rest > KV_BLOCK_TOKENS)
        rest = KV_BLOCK_TOKENS;
    return tokens / round * KV_BLOCK_TOKENS + rest;
}

/* The row of pages [page][KV_PAGE_TOKENS] for a slot of the request with this page table. */
KV_PAGES_INLINE int64_t kv_pages_row(const int32_t *table, int64_t slot)
{
    return (int64_t)table[slot / KV_PAGE_TOKENS] * KV_PAGE_TOKENS + slot % KV_PAGE_TOKENS;
}

#endif
