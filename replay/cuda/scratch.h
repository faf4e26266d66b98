/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step works on: the arrays between its stages, in the arena at the same place on every
 * rank, and the step's inputs, which are written on the CPU and copied in one go, so that a
 * captured graph finds each step's own.
 */
#ifndef REPLAY_CUDA_SCRATCH_H
#define REPLAY_CUDA_SCRATCH_H

#include "kernels/attention.h"
#include "kernels/moe.h"
#include "replay/cuda/gpu.h"
#include "replay/cuda/oracle.h"
#include "replay/scheme.h"

/* Layers of one step are of at most two kinds: those that keep full projections (DOP-P), and the
 * others. */
enum { KINDS_MAX = 2 };

/* Numbers of one head as attention takes and gives them, and of a stored row. */
struct head_dims {
    int query, value, kv_dim, value_at;
};
struct head_dims head_dims_of(const struct model *m);

struct scratch_bounds {
    int64_t rows_max; /* of a step */
    int ranks;
    size_t plan_bytes, workspace_bytes; /* of attention, the most of any layout */
};

struct inputs {
    int64_t *position, *req;        /* [rows] */
    int64_t *slots[KINDS_MAX];      /* [rows]: seen of its request's */
    int32_t *request;               /* [rows]: row in the page tables */
    int32_t *sample_home;           /* [ORACLE_ROWS_MAX]: rows to compare that live here; else -1 */
    int32_t *sample_out[KINDS_MAX]; /* the same, those whose attention ends here */
    int32_t *sample_all;            /* the same, all */
    char *plan[KINDS_MAX][SUB_BATCHES_MAX];
};

/* Of the last step, [layers][ORACLE_ROWS_MAX] rows each. */
struct taps {
    float *hidden;             /* [hidden]: before the layer; and once more, after the last one */
    uint16_t *attention, *ffn; /* [hidden] BF16: what they add */
    float *lse;                /* [heads] */
    int32_t *experts;          /* [topk] */
};

struct scratch {
    float *x;                           /* [rows][hidden]: the hidden rows */
    uint16_t *normed, *y;               /* [rows][hidden] */
    uint16_t *y_parts;                  /* [ranks][own rows][hidden] */
    uint16_t *q_a;                      /* [rows][q_lora] */
    uint16_t *q;                        /* [rows][heads][nope + rope] */
    uint16_t *query, *query_in;         /* [rows][heads][query] */
    uint16_t *kv, *kv_in;               /* [rows][KV heads][...] */
    uint16_t *out, *parts, *whole;      /* [rows][heads][value], parts of several ranks */
    float *lse, *parts_lse, *whole_lse; /* [rows][heads] */
    uint16_t *v;                        /* [rows][heads][v] */
    uint16_t *gate_up, *act, *slot_out; /* FFN, of rows or of slots */
    uint16_t *shared;                   /* [rows][hidden] */
    float *logits;                      /* [rows][experts] */
    struct moe_routes routes;
    void *workspace;
    int rows_max;
    struct inputs device, host; /* host: pinned */
    size_t inputs_bytes;
    struct taps taps;
};

void scratch_place(struct scratch *s, struct gpu_arena *a, const struct slice *slice,
                   const struct scratch_bounds *b);
/* The pinned side, after scratch_place(). */
int scratch_open(struct scratch *s, const struct scratch_bounds *b, struct err *err);
void scratch_close(struct scratch *s);

/* Bring the step's inputs to the device; enqueued. */
int scratch_upload(const struct scratch *s, cudaStream_t stream, struct err *err);

#endif
