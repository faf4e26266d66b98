/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle from inside: its memory, and one step inside one layer. Everything runs on the default
 * stream. The first failure is kept in err; what follows it goes on and means nothing, until the
 * layer ends.
 */
#ifndef REPLAY_CUDA_ORACLE_PASS_H
#define REPLAY_CUDA_ORACLE_PASS_H

#include <stddef.h>

#include "kernels/exact.h"
#include "replay/cuda/oracle.h"

/* KV of a request: never moved, so that growing needs no room for two. */
struct oracle_context {
    int64_t req, tokens;
    int chunks;
    double *chunk[EXACT_CHUNKS_MAX]; /* [layers][EXACT_CHUNK_ROWS][slice_kv_width] */
};

/* Device memory for the rows of a step; nothing where the model lacks what it is for. */
struct oracle_buffers {
    double *x;         /* [n][hidden]: on its way through the layers */
    double *normed;    /* [n][hidden]: what attention or the FFN works on */
    double *added;     /* [n][hidden]: what it adds to x */
    double *q_a;       /* [n][q_lora] */
    double *q;         /* [n][heads][nope + rope] */
    double *kv;        /* [n][slice_kv_width]: MLA as stored; GQA all keys, then all values */
    double *query;     /* [n][heads][kv_lora + rope]: MLA's absorbed queries */
    double *latent;    /* [n][heads][kv_lora]: MLA's attention before V_B */
    double *o;         /* [n][heads][v] */
    double *lse;       /* [n][heads] */
    double *gate, *up; /* [n][inter] */
    double *logit;     /* [n][experts] */
    double *chosen;    /* [n][hidden]: rows that chose an expert */
    double *expert;    /* [n][hidden]: what it makes of them */
    double *workspace; /* of products */
};

struct oracle {
    const struct slice *slice;
    const double *lead; /* rows that the layers start from; NULL: what those before gave */
    struct oracle_context *context;
    size_t n, cap;
    double *memory; /* that the buffers lie in */
    struct oracle_buffers at;
    double *score; /* [heads][score_tokens], of one row */
    int64_t score_tokens;
};

struct oracle_pass {
    struct oracle *o;
    const struct reference_row *row;
    int n, layer;
    struct err *err;
};

/* normed -> added, lse; stores the rows' KV. */
void oracle_attention(const struct oracle_pass *p);

/* normed -> added. experts: of this layer, as for oracle_step(). */
void oracle_ffn(const struct oracle_pass *p, const int32_t *experts, double tie);

/* The context of a row; those of a step all exist. */
const struct oracle_context *oracle_context_of(const struct oracle_pass *p, int i);
/* Where a context's KV of one token lies. */
double *oracle_kv(const struct oracle *o, const struct oracle_context *c, int layer, int64_t token);

/* y [n][rows of the matrix] = matrix x, x [n][columns]; of one expert where there are several. */
void oracle_project(const struct oracle_pass *p, enum matrix m, int expert, int64_t n,
                    const double *x, double *y);
struct exact_values oracle_weights(const struct oracle_pass *p, enum matrix m);

/* n numbers, to or from the device or on it. */
void oracle_copy(struct err *err, double *to, const double *from, int64_t n);
/* Take note of what a call returned. */
void oracle_try(struct err *err, cudaError_t e, const char *what);

#endif
