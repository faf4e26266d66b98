/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank on its GPU: what the parts of the CUDA backend share.
 */
#ifndef REPLAY_CUDA_RANK_H
#define REPLAY_CUDA_RANK_H

#include "replay/cuda/cache.h"
#include "replay/cuda/gemm.h"
#include "replay/cuda/link.h"
#include "replay/cuda/marks.h"
#include "replay/cuda/scratch.h"
#include "replay/cuda/weights.h"
#include "sim/base/rng.h"

/* What one kind of layer exchanges; NULL: nothing. */
struct exchanges {
    struct link_exchange *rows_in; /* normed rows, to every rank, before the projections */
    struct link_exchange *kv, *query;
    struct link_exchange *out[SUB_BATCHES_MAX]; /* results and LSE, one part of the rows each */
    struct link_exchange *rows_out;             /* after O: each rank's rows to all */
    struct link_exchange *sums_out;             /* or partial sums to the owners */
    struct link_exchange *ffn_in, *ffn_out;     /* normed rows to all, partial sums to owners */
};

/* One layer captured. Complete in itself: what it forks joins before it ends. */
struct layer_graph {
    cudaGraphExec_t exec;
    struct marks marks;
};

/* A step of one shape under one layout, made ready to run many times. */
struct pass {
    struct layout layout;
    struct scheme_rows rows;
    int parts; /* sub-batches of attention */
    int n_kinds;
    struct scheme scheme[KINDS_MAX];
    struct exchanges exchanges[KINDS_MAX];
    struct attention_bounds bounds[KINDS_MAX];
    bool is_warm;              /* has run before */
    struct layer_graph *graph; /* [n_graphs], every layer's; NULL: not captured */
    int n_graphs;
};

struct gpu_rank {
    const struct driver_job *job;
    const struct slice *slice;
    struct comm *comm;
    struct layout layout;
    struct link *link;
    struct gpu_arena arena;
    struct gemm_context *gemm;
    struct weights weights;
    struct cache cache;
    struct scratch scratch;
    cudaStream_t stream, side; /* computation; what runs beside it */
    cudaEvent_t forked, joined[SUB_BATCHES_MAX];
    struct rng delays;
    struct pass **pass;
    size_t n_passes, cap_passes;
    struct marks marks;    /* of the last step */
    struct sample *sample; /* what is compared with the oracle; NULL: nothing */
    size_t scratch_at;     /* where in the arena what a step works on begins */
    struct pass *last;     /* of the last step */
    int64_t switch_bytes_sent;
    int n_switches_checked;
    bool failed;
};

/* The pass for these rows under the layout in force, made on first use, captured on request; NULL
 * on failure. `cut`: attention goes by the layout's sub-batches. */
struct pass *pass_find(struct gpu_rank *r, const struct scheme_rows *rows, bool cut,
                       struct err *err);
void pass_free(struct pass *p);
/* The kind of a layer. */
int pass_kind(const struct pass *p, const struct slice *s, int layer);

/* Rows of attention's part of a pass. */
struct scheme_range pass_part(const struct pass *p, int kind, int part);

/* Enqueue one layer of the step on r->stream, after what was enqueued there. */
int layer_enqueue(struct gpu_rank *r, struct pass *p, int layer, struct marks *marks,
                  struct err *err);
int ffn_enqueue(struct gpu_rank *r, struct pass *p, int layer, struct marks *marks,
                struct err *err);

/* The rows to compare as they are before this layer, or after the last one. */
int rank_tap_hidden(struct gpu_rank *r, int layer, struct err *err);

/* An exchange on the stream, or on the side stream beside it, after a random wait where that was
 * asked for; NULL is nothing. */
int rank_exchange(struct gpu_rank *r, const struct link_exchange *e, struct err *err);
int rank_exchange_beside(struct gpu_rank *r, const struct link_exchange *e, struct err *err);
int rank_all_reduce(struct gpu_rank *r, uint16_t *x, int64_t n, struct err *err);
int rank_product(struct gpu_rank *r, const struct gemm *m, struct err *err);

/* A switch, weights and KV: begin() decides what goes where and puts the cache under the new
 * layout; layer() enqueues one layer's transfers on a stream; end() retires what was left. */
struct relocation;
struct relocation *relocation_begin(struct gpu_rank *r, const struct layout *to, struct err *err);
/* Whether anything goes anywhere, on any rank. */
bool relocation_moves(const struct gpu_rank *r, const struct relocation *m);
int relocation_layer(struct gpu_rank *r, const struct relocation *m, int layer,
                     enum link_channel channel, cudaStream_t stream, struct err *err);
int relocation_end(struct gpu_rank *r, struct relocation *m, struct err *err);

#endif
