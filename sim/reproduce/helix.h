/* SPDX-License-Identifier: Apache-2.0
 *
 * The Helix paper's search (arXiv 2507.07120), with what the paper does not say as assumptions that
 * can be varied one at a time. What it says: GB200, 1 to 64 GPUs of one node, FP4 throughout, 10^6
 * tokens of context, TP, PP, EP with attention by request and Helix.
 */
#ifndef SIM_REPRODUCE_HELIX_H
#define SIM_REPRODUCE_HELIX_H

#include "sim/pareto/gain.h"

enum { HELIX_R1, HELIX_405B, HELIX_MODELS };

extern const char *const helix_model_ids[HELIX_MODELS]; /* "r1", "405b" */

enum { FROM_TP_PP_EP, FROM_TP_PP, WITH_MEDHA, WITH_DPA, HELIX_BASELINES };

/* All of one type, so that one table varies any; choices count from 0. */
struct helix_setting {
    double collective_us;   /* fixed time of a collective */
    double layer_us;        /* of a layer beside what is costed */
    double exchange_row_us; /* of a request in the exchange, besides: HOP-B can hide it */
    double link_gb_per_s, flop_frac, hbm_frac, memory_frac;
    double exchanged_bytes; /* of a value in exchanged rows: 2, 1, 0.5 */
    double even_experts;    /* 1: every group reads the mean's number */
    double every_batch;     /* 0: powers of two */
    double every_gpus;      /* 0: powers of two */
    double baseline;        /* FROM_TP_PP_EP, ... */
    double context_tokens;
};

/* What is used where nothing is said. */
extern const struct helix_setting helix_setting;

struct helix_data {
    struct model model[HELIX_MODELS]; /* in FP4 */
    struct cluster cluster;
};

int helix_load(struct helix_data *d, struct err *err);

/* One model searched. Release it; do not copy it, since it points into itself. */
struct helix_case {
    struct model model;
    struct cluster cluster;
    struct decode_machine machine;
    int64_t context_tokens;
    struct frontier baseline, medha;       /* the latter of the kvp family; none for MLA */
    struct frontier helix, helix_lockstep; /* Helix's own, with sub-batches and without */
    int64_t configs;
};

void helix_search(struct helix_case *c, const struct helix_data *d, int model,
                  const struct helix_setting *s);
void helix_case_release(struct helix_case *c);

/* What figures 5 to 7 say of a model. */
enum {
    HELIX_CONCURRENCY,   /* the largest, at equal TTL */
    HELIX_INTERACTIVITY, /* R1: the largest, at equal throughput; 405B: of the fastest of each */
    HELIX_HOPB,          /* share of tokens/s/user lost without it, at most: over the points of
                            Helix's frontier, the same mapping and batch in lockstep */
    HELIX_FIGURES
};

/* "r1.concurrency", as in hw/papers/helix/stated.csv. */
extern const char *const helix_figure_ids[HELIX_MODELS][HELIX_FIGURES];

struct helix_gains {
    struct gain gain; /* of the baseline's mappings and Helix's over the baseline's */
    double figure[HELIX_FIGURES];
    double hopb_median_frac;
};

void helix_gains(const struct helix_case *c, int model, struct helix_gains *g);

/* Both frontiers' union, released by the caller. */
void helix_union(const struct helix_case *c, struct frontier *f);

#endif
