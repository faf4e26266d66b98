/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a step's first run is slower than its later ones: right after a switch, where a layout's
 * captured work runs for the first time in a while, and elsewhere. Only of steps without a switch
 * whose measurement says how long the first of several repeats took.
 */
#ifndef SIM_STUDY_FIRST_RUNS_H
#define SIM_STUDY_FIRST_RUNS_H

#include "sim/study/joined.h"

/* First run / median run - 1, quantiles of the signed values; NAN without any. */
struct first_run {
    int n;
    double p50, p95;
};

struct first_runs {
    struct first_run after_switch; /* the step before switched, by any mechanism, to its layout */
    struct first_run others;
};

void first_runs_init(struct first_runs *f, const struct joined *j);

#endif
