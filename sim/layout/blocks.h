/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks that a rank holds, as a box: a set of head classes x position classes x layer classes.
 * Intersections of boxes are boxes, so the size of any set difference follows from products.
 * Fractions are of the whole state of one request (KV) or one layer (projections). Under any layout
 * every block is held by equally many ranks; the manifest relies on that.
 */
#ifndef SIM_LAYOUT_BLOCKS_H
#define SIM_LAYOUT_BLOCKS_H

#include "sim/layout/layout.h"

enum { AXIS_HEAD, AXIS_POSITION, AXIS_LAYER, AXIS_COUNT };

/* A subset of up to RANKS_MAX equal classes. */
struct axis_set {
    uint64_t bits[RANKS_MAX / 64];
};

struct blocks {
    struct axis_set axis[AXIS_COUNT];
};

/* How many classes each axis is cut into. */
struct block_grid {
    int classes[AXIS_COUNT];
};

/* The coarsest grid on which every given layout has whole classes: the least common multiples of
 * their shards. Asserts that it fits RANKS_MAX, as it does for layouts of one group. */
struct block_grid block_grid_for_kv(const struct layout *layouts, int n);
struct block_grid block_grid_for_weights(const struct layout *layouts, int n);
struct block_grid block_grid_for_state(const struct layout *layouts, int n);

/* KV blocks that `rank` holds of a request with this owner. Shard s of S on an axis: heads and
 * layers contiguous, positions round robin (class c belongs to shard c mod S), which is both CP's
 * interleaving and Helix's staggered append. Rank r of T has head shard r * S / T and position
 * shard r mod S: under Helix r / KVP and r mod KVP, so that its O shard is TP's. With more ranks
 * than KV heads, neighbours share a head. Layer classes stand for layers / S each, rounded or not.
 */
struct blocks blocks_of_kv(const struct layout *l, const struct block_grid *g, int rank, int owner);

/* Recurrent state of linear-attention layers (head axis only): whole at an owner, else 1/T, since a
 * rank with replicated projections can compute any heads. */
struct blocks blocks_of_state(const struct layout *l, const struct block_grid *g, int rank,
                              int owner);

/* Projection blocks (head axis only): Q-B and KV-B or Q; K and V of GQA; O. */
struct blocks blocks_of_in_weights(const struct layout *l, const struct block_grid *g, int rank);
struct blocks blocks_of_kv_weights(const struct layout *l, const struct block_grid *g, int rank);
struct blocks blocks_of_out_weights(const struct layout *l, const struct block_grid *g, int rank);

struct blocks blocks_and(const struct blocks *a, const struct blocks *b);
bool blocks_equal(const struct blocks *a, const struct blocks *b);
/* |b| / |all| */
double blocks_frac(const struct blocks *b, const struct block_grid *g);
/* |b \ a| / |all|: Eq. 2 and 3 of the SPLASH paper. */
double blocks_missing_frac(const struct blocks *b, const struct blocks *a,
                           const struct block_grid *g);

#endif
