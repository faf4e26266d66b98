/* SPDX-License-Identifier: Apache-2.0
 *
 * What a study says: the order of its settings, those as good as the best (the flat region), what
 * each option matters, and how sure the recommendation is.
 */
#ifndef SIM_TUNE_FINDINGS_H
#define SIM_TUNE_FINDINGS_H

#include "sim/tune/study.h"

/* Settings whose mean is within so much of the best's are as good. */
#define FINDINGS_FLAT_FRAC 0.01

enum { FINDINGS_RESAMPLES = 1000, FINDINGS_CONTENDERS_MAX = 1000 };

/* Of one option, from all settings (the first rung): NAN where there is nothing to compare. */
struct axis_effect {
    double
        mean_frac; /* between its worst and best value, each the mean over the settings with it */
    double alone_frac;         /* the same with the other options as recommended */
    int flat_first, flat_last; /* of its values: least and greatest place in the flat region */
};

struct findings {
    const struct study *study;
    struct scores first, last; /* of the first and the last rung */
    int64_t *order;            /* settings of the last rung, best first */
    int64_t n;
    int64_t best; /* the recommendation; -1: no setting has a value */
    bool *flat;   /* by setting */
    int64_t n_flat;
    struct axis_effect effect[GRID_AXES_MAX];
    double confidence_frac; /* of resamples, see below; NAN when every trace has one draw */
};

/* Weigh a study that has run. Bootstrap: draws are drawn again, with replacement, within each
 * trace, and confidence_frac is the share of resamples in which the recommendation is within
 * FINDINGS_FLAT_FRAC of the best of the first FINDINGS_CONTENDERS_MAX settings. */
void findings_make(struct findings *f, const struct study *s, uint64_t seed);
void findings_release(struct findings *f);

/* The two options with most effect that have more than one value, the stronger first; -1 where
 * there is none. */
void findings_axes(const struct findings *f, int axis[2]);

#endif
