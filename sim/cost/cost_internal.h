/* SPDX-License-Identifier: Apache-2.0
 *
 * What cost.c compiles and its stages share. Not for anyone outside sim/cost.
 */
#ifndef SIM_COST_COST_INTERNAL_H
#define SIM_COST_COST_INTERNAL_H

#include "sim/cost/cost.h"

/* Row counts of a batch: all that the stages besides attention depend on. */
struct row_counts {
    int64_t rows, prefill_rows; /* of the whole batch */
    int64_t owner_rows;         /* of the busiest owner */
    int64_t sampled_rows;       /* one per request */
};

/* A time, and how much of it is reading at the pace of HBM. */
struct work {
    double all_s, hbm_s;
};

/* Their times, summed over layers; `hbm`: as far as HBM sets the pace. */
struct row_times {
    int64_t proj_ps, ffn_ps, dense_ffn_ps, once_ps;
    int64_t proj_hbm_ps, ffn_hbm_ps, dense_ffn_hbm_ps;
    int64_t latency_ps, link_ps; /* of the collectives: delta and R of Eq. 10 */
    int64_t wait_ps;             /* for ranks with more experts' work in a layer */
    int64_t part_ps;             /* one sub-batch's exchange, when there are several */
};

struct row_memo {
    struct row_counts counts;
    int profile; /* under which profile, counted from 1 */
    struct row_times times;
};

struct roofline_curves {
    struct curve flop, read;
};

/* Attention of one decode row on each rank that works on it, as functions of its context. */
struct attention_curves {
    struct roofline_curves whole;
    struct roofline_curves hiding[SUB_BATCHES_MAX]; /* times cost_hiding_frac(1, 2, ...) */
    int64_t fetch_ps_per_token; /* link time of KV that no rank computing on it holds (by layer) */
};

/* What the SMs of a rank share out: query rows and the tokens that they see. */
struct dealt {
    int64_t rows, tokens, longest_tokens;
};

struct layout_cost {
    struct layout layout;
    struct capacity capacity;
    struct attention_curves attention;
    struct row_memo
        *memo; /* direct-mapped cache of row_times; a cache only, so const callers write it */
};

struct cost {
    struct model model;
    struct cluster cluster;
    const struct profile *profile;
    int n_profiles; /* it has had so many */
    int n_layouts, page_tokens;
    struct layout_cost layout[LAYOUT_MAX];
    struct manifest *manifest[LAYOUT_MAX][LAYOUT_MAX];
};

/* Roofline of work done at a share of peak against bytes at a share of bandwidth, in seconds. */
double roofline_s(double flop_s, double read_s);
struct work roofline(double flop_s, double read_s);
/* Seconds of `flop` in a stage whose efficiency is looked up at `size`; 0 flop is 0. */
double flop_s(const struct cost *c, enum profile_stage stage, enum number_format format,
              double flop, double size);
double read_s(const struct cost *c, enum profile_stage stage, double bytes, double size);
/* What no size changes in a stage, over so many layers. */
double launch_s(const struct cost *c, enum profile_stage stage, double layers);
int64_t round_ps(double seconds);

/* Sub-batches that a step's attention is cut into: 1 unless it only decodes. */
int cost_sub_batches(const struct layout *l, int64_t rows, int64_t prefill_rows);
/* Share of attention beside which exchange goes on: eta in lockstep, or one of several sub-batches.
 */
double cost_hiding_frac(const struct cost *c, int sub_batches);

/* rows.c: projections, FFN, and what happens once a step. */
struct work rows_proj(const struct cost *c, const struct layout *l, const struct row_counts *n);
/* Of the rank that has most to do over all layers, and what it waits, before the exchange that
 * follows, in those in which another has more. */
struct work rows_ffn(const struct cost *c, const struct row_counts *n, double *wait_s);
struct work rows_dense_ffn(const struct cost *c, const struct row_counts *n); /* of one layer */
double rows_once_s(const struct cost *c, const struct row_counts *n);

/* exchange.c: the collectives of all layers whose sizes depend on row counts. Of several
 * sub-batches, `part_s` has one's exchange, latency included, and the others nothing. */
struct exchange_sums {
    double latency_s, link_s, part_s;
};
struct exchange_sums exchange_sum(const struct cost *c, const struct layout *l,
                                  const struct row_counts *n);
/* One row's partial outputs with their FP32 log-sum-exp. */
double exchange_partial_bytes(const struct cost *c, const struct layout *l);
/* The same for position-sharded attention of a step's prefill chunks, where rows are split: their
 * contexts' KV gathered, or their query rows gathered and partial outputs exchanged, whichever is
 * cheaper. */
double exchange_chunks_s(const struct cost *c, const struct layout *l, int64_t ctx_tokens,
                         int64_t rows);
/* Link time of one context token under storage by layer, all layers. */
double exchange_fetch_s_per_token(const struct cost *c, const struct layout *l);

/* attention.c */
void attention_compile(const struct cost *c, const struct layout *l, struct attention_curves *out);
/* One chunk on each rank that works on it: roofline terms in seconds, all layers. */
void attention_chunk_s(const struct cost *c, const struct layout *l, const struct batch_item *i,
                       double *flop, double *read);
/* A kernel's fixed time in all layers of a step with such rows; one serves decode and prefill. */
double attention_launch_s(const struct cost *c, const struct row_counts *n);
/* Combining the ranks' partial results, all layers: every rank's of its heads and rows are read,
 * one is written. */
double attention_combine_s(const struct cost *c, const struct layout *l,
                           const struct row_counts *n);
/* Merging the parts of the row that is cut most, all layers. */
struct seg attention_merge(const struct cost *c, const struct layout *l, const struct dealt *d);
/* Whether ranks attend over parts of the positions and all have all rows. */
bool attention_is_partial(const struct cost *c, const struct layout *l);

#endif
