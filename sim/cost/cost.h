/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of one step of a group (Eq. 10 of the SPLASH paper): a sum of dependent stages, each a
 * roofline max(work / effective rate, bytes / effective bandwidth) on the busiest rank. The only
 * place, with transition.h, that guesses time. docs/model.md has every formula.
 */
#ifndef SIM_COST_COST_H
#define SIM_COST_COST_H

#include "hw/device.h"
#include "hw/profile.h"
#include "sim/cost/curve.h"
#include "sim/layout/footprint.h"
#include "sim/layout/layout.h"
#include "sim/layout/manifest.h"

/* One request's part in a step. */
struct batch_item {
    int64_t ctx_tokens; /* live context, this step's rows included; q <= ctx */
    int32_t q;          /* query rows: 1 in decode, the chunk length in prefill */
    int32_t owner;      /* rank; every request has one under every layout */
};

/* A step's batch. Decode items (q = 1, growing by one token a step) come first. */
struct batch {
    int n_decode, n; /* n - n_decode prefill chunks follow */
    const struct batch_item *item;
};

/* Stage times, `exchange` what attention does not hide of it; `step` is their sum plus what happens
 * once per step (embedding, LM head, launch).
 * Segments: exact for the next n steps while only contexts grow; n = 1 with a prefill chunk. */
struct step_cost {
    struct seg proj, attn, exchange, ffn, step;
    int64_t dense_ffn_ps; /* of one dense layer; the others share the rest of ffn */
    /* As far as HBM sets the pace: of projections and attention, of ffn, of a dense layer's. */
    int64_t hbm_ps, ffn_hbm_ps, dense_ffn_hbm_ps;
    int64_t wait_ps; /* of exchange: in layers in which another rank has more experts' work */
    int64_t rows;    /* query rows of the whole batch */
};

struct cost; /* opaque: model, cluster, profile and layouts, compiled to integer tables */

/* Compile. Copies what it needs; `p` must outlive it. Layouts were parsed for c->ranks. */
struct cost *cost_new(const struct model *m, const struct cluster *c, const struct profile *p,
                      const struct layout *layouts, int n_layouts, int page_tokens);
void cost_free(struct cost *c);
/* Go on with another profile, which must outlive it; memory does not depend on it. */
void cost_set_profile(struct cost *c, const struct profile *p);

int cost_n_layouts(const struct cost *c);
const struct layout *cost_layout(const struct cost *c, int layout);
const struct model *cost_model(const struct cost *c);
int cost_ranks(const struct cost *c);
/* Per-rank memory under a layout; the reserve holds the largest layer in transit of any switch
 * among the compiled layouts at a full pool (Delta of Eq. 5), so that Eq. 5 follows from Eq. 6 on
 * both sides. */
const struct capacity *cost_capacity(const struct cost *c, int layout);
const struct manifest *cost_manifest(const struct cost *c, int from, int to);

/* Stage times of a non-empty batch under a layout. Remembers row counts it has met: one thread at a
 * time per struct cost. */
void cost_step(const struct cost *c, int layout, const struct batch *b, struct step_cost *out);

#endif
