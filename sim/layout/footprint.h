/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes per rank under a layout: weights, KV of a token, capacity in pages (Eq. 1, 6), and the
 * sizes of the projections whose placement changes (Eq. 9).
 */
#ifndef SIM_LAYOUT_FOOTPRINT_H
#define SIM_LAYOUT_FOOTPRINT_H

#include "hw/device.h"
#include "sim/layout/layout.h"

/* One layer's matrices whose placement changes, whole, in bytes of the stored format. */
struct projection_bytes {
    double in_bytes;    /* Q-B and KV-B; GQA: Q, K and V; linear: Q, K, V, gates, beta */
    double kv_in_bytes; /* the K and V of GQA within in_bytes: cut by KV head, K ways at most */
    double out_bytes;   /* O */
};

/* Eq. 9 for a layer that holds KV. */
struct projection_bytes footprint_projections(const struct model *m);
/* The same for a linear-attention (KDA) layer; its convolutions and norms are left out. */
struct projection_bytes footprint_linear_projections(const struct model *m);

/* One layer's projections on one rank: in / in_shards + out / out_shards, K and V duplicated beyond
 * K shards; the mean over layers where some keep full projections. */
double footprint_layer_weights_bytes(const struct projection_bytes *p, const struct layout *l);

/* Projections of all layers on one rank. */
double footprint_weights_bytes(const struct model *m, const struct layout *l);

/* What every layout replicates in a layer that holds KV: Q-A, KV-A, norms, and the indexer where
 * the layer computes one. Norms and the indexer's head weights are BF16. */
double footprint_replicated_attention_bytes(const struct model *m, bool has_indexer);

/* All weights outside the moving projections, per rank (M0 of Eq. 6): replicated attention and
 * router; dense FFN, shared and routed experts, embedding and LM head over `ranks`. */
double footprint_common_bytes(const struct model *m, int ranks);

/* The share of one request's KV that a holder keeps: 1 for tp on MLA, 1/min(T, K) on GQA, 1 for an
 * owner, 1/T for cp. By layer, 1/T is the mean: capacity_of() charges whole layers. */
double footprint_kv_share(const struct layout *l);

/* Recurrent state of one request on one holder: whole at an owner, else split by head, T ways. */
double footprint_state_bytes(const struct model *m, const struct layout *l);

/* Memory of one rank under a layout. A page holds `page_tokens` tokens as that rank stores them: a
 * cp rank's page has positions of its own shard only; by layer, ceil(layers / T) layers of each. */
struct capacity {
    double budget_bytes;  /* memory_frac x device memory */
    double common_bytes;  /* M0 */
    double weights_bytes; /* W */
    double reserve_bytes; /* R: graphs, scratch, and the layer in transit */
    double page_bytes;    /* one page on one rank */
    double state_bytes;   /* recurrent state of one request on a holder, beside its pages */
    int64_t pages;        /* floor of what is left; 0 when weights alone do not fit */
};

/* `transit_bytes`: the largest layer buffer of any allowed switch (Delta of Eq. 5), 0 without. */
struct capacity capacity_of(const struct model *m, const struct cluster *c, const struct layout *l,
                            int page_tokens, double transit_bytes);

/* Tokens that a holder stores of a context of `tokens`: ceil(tokens / position shards). */
int64_t capacity_rank_tokens(const struct layout *l, int64_t tokens);
/* Pages that each holder needs for it. */
int64_t capacity_pages_for(const struct layout *l, int64_t tokens, int page_tokens);

/* The longest context of B >= 1 equal requests that fits (Eq. 1; the busiest owner holds
 * ceil(B/T)). */
int64_t capacity_max_context(const struct capacity *cap, const struct layout *l, int batch,
                             int page_tokens);

/* Table 2: busiest-rank load of B equal requests. `weights` is a share of W_A, the others count one
 * request's KV or attention work. */
struct loads {
    double weights, kv_stored, kv_read, attention_work;
};
struct loads footprint_loads(const struct model *m, const struct layout *l, int batch);

#endif
