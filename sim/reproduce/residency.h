/* SPDX-License-Identifier: Apache-2.0
 *
 * The longest nominal input L at which 99% of random cohorts stay resident (appendix B): inputs
 * uniform in [L/2, L], outputs in [512, 1024], both reserved whole; owners round robin.
 */
#ifndef SIM_REPRODUCE_RESIDENCY_H
#define SIM_REPRODUCE_RESIDENCY_H

#include <stdint.h>

#include "sim/layout/layout.h"

enum { COHORTS = 200000, COHORT_RANKS = 8 };

struct cohorts {
    int batch;        /* requests of a cohort */
    double *input_at; /* where in its range an input is, the same for every L */
    int16_t *output_tokens;
};

/* Drawn with PCG64(20260922): all inputs, then all outputs. */
void cohorts_init(struct cohorts *c, int batch);
void cohorts_release(struct cohorts *c);

/* With room for so many tokens on each rank; the layout is for COHORT_RANKS. */
int64_t cohorts_longest_input(const struct cohorts *c, const struct layout *l, double rank_tokens);

#endif
