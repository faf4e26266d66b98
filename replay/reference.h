/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step should give, computed the plain way: one process, whole matrices, double throughout,
 * MLA un-absorbed. Knows nothing of ranks and layouts; the oracle for every backend.
 *
 * A layer: x += O(attention(norm(x))); x += FFN(norm(x)), norm = RMS without weights (eps 1e-6);
 * MLA's q_a output and latent are used as they are, without a norm of their own. Rotary embedding
 * on the rotary columns by global position (theta 10000, pairs (2i, 2i+1)); MLA: last rope_dim
 * columns of each head of q_b's output and of kv_a's; GQA: the whole head of q and k. Scale of
 * scores: 1/sqrt(nope + rope). Causal. FFN: down(silu(gate x) * up x); MoE: top-k by router logits
 * (ties to the lower index), weights softmax over the chosen, plus the shared expert.
 */
#ifndef REPLAY_REFERENCE_H
#define REPLAY_REFERENCE_H

#include "replay/slice.h"

/* KV of the requests so far; grows as steps run. */
struct reference;

/* Copies the slice. The model has neither sparse indexer nor linear layers: the caller refuses it
 * before. Freed with reference_free. */
struct reference *reference_new(const struct slice *s);
void reference_free(struct reference *r);
/* Drop a request's context; nothing when there is none. */
void reference_forget(struct reference *r, int64_t req);

struct reference_row {
    int64_t req, position; /* position = index in the request's context */
};

/* Rows of one request must be adjacent, of contiguous ascending positions that end its context;
 * context before them that was never computed is history (VALUE_HISTORY, rotary part as stored).
 * Positions run once more are overwritten. Writes n rows of hidden outputs after the last layer,
 * and, when `lse` is not NULL, natural-log LSE of the last layer's attention [n][heads]. */
void reference_step(struct reference *r, const struct reference_row *row, int n, double *out,
                    double *lse);

/* One stored KV row (slice_kv_width doubles) of a context that a step has run, for checking
 * caches; valid until the next step. */
const double *reference_kv(const struct reference *r, int64_t req, int layer, int64_t position);

#endif
