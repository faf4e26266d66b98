/* SPDX-License-Identifier: Apache-2.0
 *
 * How good settings are over several draws (a trace and a seed): on each draw, by how much the
 * objective is above that of the best setting there, as a share of it; then the mean, in which
 * every trace counts alike. A setting that completes fewer requests than another ranks behind it
 * and sets no mark.
 */
#ifndef SIM_TUNE_SCORES_H
#define SIM_TUNE_SCORES_H

#include "sim/tune/formula.h"

/* The draws of a study. */
struct draw_set {
    int n;
    const int *trace; /* of each, from 0; those of a trace lie side by side */
};

struct scores {
    int64_t n; /* settings */
    int draws;
    double *weight;     /* of each draw; they sum to 1 */
    double *value;      /* objective, [setting * draws + draw]; NAN where it has none */
    double *above_frac; /* the same over the draw's best; where that is 0, the difference */
    double *mean_frac;  /* of each setting; NAN: it did not run, or cannot be the best */
    double *completed;  /* requests of each setting, over all draws; -1: it did not run */
};

/* `run` is [setting * draws + draw]; `in` says which settings ran. */
void scores_make(struct scores *s, const struct formula *objective, const struct draw_set *draws,
                 const struct metrics *run, const bool *in, int64_t n);
void scores_release(struct scores *s);

/* The settings that ran, best first; ties by number. Returns how many; to be freed. */
int64_t scores_order(const struct scores *s, int64_t **order);
/* The mean objective of a setting, each trace counting alike. */
double scores_objective(const struct scores *s, int64_t setting);

#endif
