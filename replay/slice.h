/* SPDX-License-Identifier: Apache-2.0
 *
 * The slice of a model that a replay runs: its real shapes, the first `layers` layers, and what
 * each matrix is. Weights are values of (matrix, row, layer, column) / sqrt(columns), in BF16.
 */
#ifndef REPLAY_SLICE_H
#define REPLAY_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/model.h"

enum matrix {
    MAT_Q_A,    /* MLA [q_lora][hidden] */
    MAT_Q_B,    /* MLA [heads * (nope + rope)][q_lora]; GQA: Q, [heads * head][hidden] */
    MAT_KV_A,   /* MLA [kv_lora + rope][hidden] */
    MAT_K_B,    /* MLA [heads * nope][kv_lora]; GQA: K, [kv_heads * head][hidden] */
    MAT_V_B,    /* MLA [heads * v][kv_lora]; GQA: V, [kv_heads * head][hidden] */
    MAT_O,      /* [hidden][heads * v] */
    MAT_GATE,   /* dense FFN, or expert 0's rows first, then expert 1's...: [inter][hidden] each */
    MAT_UP,     /* the same */
    MAT_DOWN,   /* the same with [hidden][inter] each */
    MAT_ROUTER, /* [experts][hidden] */
    MAT_SHARED_GATE, /* shared expert, like a dense FFN of shared * inter */
    MAT_SHARED_UP,
    MAT_SHARED_DOWN,
    MAT_COUNT
};

struct slice {
    struct model model;
    int layers;
    uint64_t seed;
};

/* Shape of a matrix of that layer; of one expert for MAT_GATE, MAT_UP and MAT_DOWN of MoE layers.
 * Zero for what the layer lacks. */
int slice_rows(const struct slice *s, int layer, enum matrix m);
int slice_columns(const struct slice *s, int layer, enum matrix m);

bool slice_is_moe(const struct slice *s, int layer);

/* One weight; row i of expert e is row e * slice_rows() + i. */
double slice_weight(const struct slice *s, int layer, enum matrix m, int64_t row, int column);

/* KV row of one token in one layer as stored: MLA kv_lora latent then rope_dim rotated key; GQA K
 * then V of every KV head, head by head ([kv_heads][2][head]). */
int slice_kv_width(const struct slice *s);

#endif
