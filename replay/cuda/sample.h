/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing a step with the oracle, on a few of its requests: what attention and the FFN of every
 * layer add to their rows, the LSE of every head, and the rows after each layer. Each layer is
 * judged by the rows that it was given.
 */
#ifndef REPLAY_CUDA_SAMPLE_H
#define REPLAY_CUDA_SAMPLE_H

#include "replay/cuda/rank.h"

/* Of the oracle's and ours, the largest seen. */
struct sample_errors {
    double attention, ffn, hidden; /* relative L2 of a row */
    double lse;                    /* absolute */
};

/* BF16 stays below these, and anything wrong is far above. */
extern const struct sample_errors sample_errors_max;

/* Chooses requests of the plan that the oracle can follow; every rank the same ones. The oracle is
 * on rank 0 alone. */
struct sample *sample_new(const struct gpu_rank *r, struct err *err);
void sample_free(struct sample *s);
void sample_forget(struct sample *s, int64_t req);
const struct sample_errors *sample_errors(const struct sample *s);

/* Which rows of the pass are compared, out of the inputs' req and position: writes their places
 * into the inputs. */
void sample_choose(struct sample *s, const struct pass *p, struct inputs *in);

/* Bring the ranks' taps together and compare on rank 0: *error is the largest relative L2 distance;
 * fails beyond sample_errors_max. Collective. */
int sample_compare(struct sample *s, struct gpu_rank *r, const struct pass *p, double *error,
                   struct err *err);

#endif
