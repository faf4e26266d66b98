/* SPDX-License-Identifier: Apache-2.0
 *
 * Time and memory of one decode step under a mapping: the DRAM reads of the Helix paper's Appendix
 * A (arXiv 2507.07120), rooflined against the arithmetic, and the exchanges between them. Analytic,
 * in seconds as doubles. docs/pareto.md has every formula.
 */
#ifndef SIM_PARETO_DECODE_H
#define SIM_PARETO_DECODE_H

#include <stdbool.h>

#include "hw/device.h"
#include "hw/profile.h"
#include "sim/pareto/mapping.h"
#include "sim/pareto/pipeline.h"

/* Everything is borrowed. */
struct decode_machine {
    const struct model *model; /* without linear-attention layers */
    const struct cluster *cluster;
    const struct profile *profile; /* NULL: peaks are reached and collectives move their bytes at
                                      link_gb_per_s after collective_us */
    enum number_format arithmetic; /* of attention; products use their weights' */
    double link_gb_per_s;          /* with a profile, its collectives' size-dependent part is scaled
                                      by the device's over this */
    double collective_us;
    double exchange_row_us; /* of each row of partial outputs, besides: Fig. 3's exchange is that of
                               one request times their number */
    double layer_us;        /* without a profile: of a layer, beside all that is costed */
    bool even_experts;      /* groups read the mean's number of experts, not the busiest's */
};

/* Store all weights and KV of a model in one format, without scales. */
void decode_set_format(struct model *m, enum number_format f);

/* On the busiest GPU, in one layer. */
struct decode_bytes {
    double kv;         /* read for one request of a replica: B x this is T_KV's numerator */
    double proj_in;    /* Q, K, V (MLA: Q-B, KV-B) */
    double proj_out;   /* O */
    double replicated; /* Q-A, KV-A, indexer, norms */
    double dense_ffn;
    double expert; /* of one expert on one GPU */
    double shared; /* shared experts and router */
};

/* What does not depend on the batch. */
struct decode_plan {
    const struct decode_machine *machine;
    struct mapping mapping;
    int64_t context_tokens;
    int out_shards; /* O is cut so many ways */
    struct decode_bytes bytes;
    int64_t max_batch;       /* requests that fit; 0: the weights do not */
    double weights_bytes;    /* of a GPU */
    double kv_request_bytes; /* on a GPU, of one request that its replica has */
    double flop_per_row;     /* of attention, a layer, on one GPU */
    double partial_bytes;    /* of one row's partial outputs with their FP32 log-sum-exp */
};

void decode_plan_init(struct decode_plan *p, const struct decode_machine *machine,
                      const struct mapping *mapping, int64_t context_tokens);

/* All layers. TTL is their sum. */
struct decode_step {
    double proj_s, attn_s, ffn_s;
    double exchange_s; /* of partial outputs, what attention does not hide */
    double reduce_s;   /* after O and around the FFN, what products do not hide */
    double once_s;     /* head, launches, hops between stages */
    double ttl_s;
};

/* 1 <= batch: requests in flight, in equal micro-batches over the stages; hopb >= 1 sub-batches
 * (as many as a replica has rows, at most). */
void decode_step(const struct decode_plan *p, int64_t batch, int hopb, struct decode_step *out);

/* What no number of sub-batches can beat, from the step with one: nothing of the exchange seen. */
double decode_ttl_floor_s(const struct decode_step *lockstep);

/* The sub-batches of one layer's attention. Returns how many. */
int decode_parts(const struct decode_plan *p, int64_t batch, int hopb,
                 struct pipeline_part part[SUB_BATCHES_MAX]);

#endif
