/* SPDX-License-Identifier: Apache-2.0
 *
 * What a switch a -> b must supply, by set difference of the blocks each rank holds (Eq. 2, 3), and
 * the primitive that supplies it. Derived from the block sets alone: no function knows a pair.
 */
#ifndef SIM_LAYOUT_MANIFEST_H
#define SIM_LAYOUT_MANIFEST_H

#include "sim/layout/footprint.h"

enum primitive {
    PRIM_KEEP,       /* every rank holds exactly what it needs */
    PRIM_DISCARD,    /* every rank needs a subset of what it holds */
    PRIM_ALL_GATHER, /* some rank misses a block; afterwards several ranks hold each block */
    PRIM_ALL_TO_ALL, /* some rank misses a block; afterwards one rank alone holds each block */
    PRIM_COUNT
};

extern const char *const primitive_names[PRIM_COUNT]; /* "keep", "discard", "all-gather", ... */

/* Projections of one kind of layer. Bytes are of the busiest rank, in a layer whose weights move. A
 * rank that receives assembles its whole destination (`repack`); one that does not uses a view of
 * what it holds. */
struct weights_move {
    enum primitive primitive;
    double layers_frac; /* share of the layers whose weights move; below 1 where some are cached */
    double recv_bytes, repack_bytes;
};

/* State of one request, as shares of the whole by [owner][rank], since who misses what depends on
 * the owner; row 0 alone when it does not. Sends divide a block evenly among its holders. */
struct request_move {
    enum primitive primitive;
    bool owner_matters;
    double recv_frac[RANKS_MAX][RANKS_MAX];
    double send_frac[RANKS_MAX][RANKS_MAX];
    double repack_frac[RANKS_MAX][RANKS_MAX]; /* what a rank that receives holds afterwards */
    /* What a rank keeps, where the layouts do not cut KV alike. */
    double regroup_frac[RANKS_MAX][RANKS_MAX];
};

struct manifest {
    int ranks;
    struct weights_move weights;        /* layers that hold KV */
    struct weights_move linear_weights; /* linear-attention layers; keep when there are none */
    struct request_move kv;
    struct request_move state; /* recurrent state of linear-attention layers */
};

/* Heap-allocated (it is large); free() it. Both layouts for the same ranks and model. */
struct manifest *manifest_new(const struct layout *from, const struct layout *to,
                              const struct model *m);

/* Bytes of one layer's KV, or one layer's recurrent state, of a batch. */
struct transfer {
    double link_bytes;    /* busiest rank, the larger of what it receives and sends */
    double recv_bytes;    /* busiest rank */
    double repack_bytes;  /* busiest rank */
    double regroup_bytes; /* busiest rank */
    double moved_bytes;   /* all ranks' receives: the volume of Eq. 2 */
};

/* `ctx_tokens[ranks]`: live tokens of each owner's requests. */
struct transfer manifest_kv_transfer(const struct manifest *mf, const struct model *m,
                                     const int64_t *ctx_tokens);

/* `requests[ranks]`: how many each owner has. Zero without linear-attention layers. */
struct transfer manifest_state_transfer(const struct manifest *mf, const struct model *m,
                                        const int64_t *requests);

/* Delta of Eq. 5: one layer's buffers in transit on the busiest rank, received weights plus
 * received KV for these tokens. */
double manifest_transit_bytes(const struct manifest *mf, const struct model *m,
                              const int64_t *ctx_tokens);

/* Eq. 5: the larger of both footprints plus the layer in transit. */
double manifest_peak_bytes(double from_bytes, double to_bytes, double transit_bytes);

#endif
