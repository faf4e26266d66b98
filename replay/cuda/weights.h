/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's weights on its GPU, BF16. What a switch moves (Q-B, K-B, V-B, O) lies by head, each head
 * in one piece, in arrays of all heads of which those not held are poison; so a range of heads is
 * one piece too, and what arrives is in place. The rank's share of the FFN never moves.
 */
#ifndef REPLAY_CUDA_WEIGHTS_H
#define REPLAY_CUDA_WEIGHTS_H

#include <stdint.h>

#include "replay/cuda/gpu.h"
#include "replay/slice.h"
#include "sim/layout/layout.h"

/* One layer's: [n][k] as slice.h says, row by row, but MAT_O is [heads * v][hidden]; MAT_GATE holds
 * gate and up of this rank, [2 * inter][hidden] (of each expert in turn), and MAT_UP is NULL; the
 * shared expert likewise. NULL: the layer has none. */
struct weights_layer {
    uint16_t *at[MAT_COUNT];
};

struct weights {
    const struct slice *slice; /* borrowed */
    int rank, ranks;
    struct weights_layer *layer;
};

void weights_init(struct weights *w, const struct slice *s, int rank, int ranks);
void weights_release(struct weights *w);

/* Take room in the arena. */
void weights_place(struct weights *w, struct gpu_arena *a);

/* Generate the FFN's, and what is held under `l`, on the device; waits. */
int weights_fill(const struct weights *w, const struct layout *l, struct err *err);

/* Poison what is not held under `l`; enqueued on stream. */
int weights_retire(const struct weights *w, const struct layout *l, cudaStream_t stream,
                   struct err *err);

/* Bytes of one head of a matrix that is cut by head. */
int64_t weights_head_bytes(const struct weights *w, int layer, enum matrix m);

/* This rank's rows between gate and down: of a dense FFN or the shared expert (MAT_GATE or
 * MAT_SHARED_GATE), of one expert for MoE's MAT_GATE. */
int weights_inter(const struct weights *w, int layer, enum matrix gate);

#endif
