/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of one rank: a pool of one region per layer and one more, so that a switch can bring
 * one layer at a time into the region that the layer before has left. Page tables say where the
 * requests' pages are; they alone change when a layer changes its region, so that captured graphs
 * stay valid. A request's pages on a rank are one extent, at the same place in every region; every
 * rank knows the extents of all.
 */
#ifndef REPLAY_CUDA_CACHE_H
#define REPLAY_CUDA_CACHE_H

#include "replay/cuda/gpu.h"
#include "replay/driver.h"
#include "replay/moves.h"

struct cache_request {
    int64_t req; /* -1: the place is free */
    int owner;
    int64_t tokens, tokens_max;
    int64_t pages[RANKS_MAX], pages_bytes[RANKS_MAX]; /* extent in a region; 0 bytes: none */
};

struct cache {
    const struct slice *slice; /* borrowed */
    int rank, ranks;
    struct layout layout;
    int requests_max;
    int64_t table_pages, region_bytes;
    struct cache_request *request; /* [requests_max], by their row in the tables */
    int *region;                   /* [layers] */
    int spare;
    char *pool;          /* device [layers + 1][region_bytes] */
    int32_t *table;      /* device [layers][requests_max][table_pages] */
    int32_t *table_host; /* the same, pinned */
    uint64_t *sum;       /* device, for checksums */
};

/* Sized for a plan: for the requests that live at once, under the layouts of each step. */
int cache_init(struct cache *c, const struct driver_job *job, const struct layout *l, int rank,
               struct err *err);
void cache_release(struct cache *c);
void cache_place(struct cache *c, struct gpu_arena *a);

/* Row of a request in the tables, -1 when there is none. */
int cache_find(const struct cache *c, int64_t req);

/* A new request whose first tokens are history, which is generated on the device; returns its row,
 * or -1 when the pages do not suffice. */
int cache_add(struct cache *c, int64_t req, int owner, int64_t history_tokens, int64_t tokens_max,
              struct err *err);
void cache_remove(struct cache *c, int index);

/* This rank's entries for one layer and the shard that they follow. */
const int32_t *cache_table(const struct cache *c, int layer);

/* Bring the tables to the device; enqueued on stream. */
int cache_upload(const struct cache *c, cudaStream_t stream, struct err *err);

/* A change of layout: where everything was, and the boxes of one layer. The cache itself is already
 * under the new layout when this returns, extents and regions included; its numbers are not. */
struct cache_switch {
    struct boxes boxes;
    int *region_before;           /* [layers] */
    struct cache_request *before; /* [requests_max] */
};
int cache_switch_begin(struct cache *c, const struct layout *to, struct cache_switch *sw,
                       struct err *err);
void cache_switch_end(struct cache_switch *sw);

/* The region of a layer, now and before. */
char *cache_region(const struct cache *c, int region);

/* The sum over all ranks of what they hold is this times the requests' contents; mod 2^64. */
int cache_copies(const struct cache *c);

/* Checksum of this rank's part of all requests in all layers; waits for the device. */
int cache_checksum(const struct cache *c, uint64_t *sum, struct err *err);

/* 0xFF over everything that no request has; enqueued on stream. */
int cache_poison_free(const struct cache *c, cudaStream_t stream, struct err *err);

#endif
