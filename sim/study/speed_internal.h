/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the fit to speeds share. Not for anyone outside sim/study/speed_*.
 */
#ifndef SIM_STUDY_SPEED_INTERNAL_H
#define SIM_STUDY_SPEED_INTERNAL_H

#include "sim/study/speed_fit.h"

/* A row's time by what sets it. */
struct speed_split {
    double part_s[SPEED_PARTS]; /* of SPEED_LAUNCH for 1 us a step, of others as the profile says */
    double rest_s;
};

/* Predicted under the profile that `c` has now, whose step_launch_us this is. */
struct speed_split speed_predict(const struct cost *c, const struct speeds *s,
                                 const struct speed *row, double step_launch_us);

/* All of it, with so long a launch of each step. */
double speed_split_s(const struct speed_split *split, double step_launch_us);

/* Times are linear in the parameters: rest_s + sum of value x part_s, part_s for a value of 1. */
struct speed_problem {
    const struct speeds *speeds;
    const struct speed_split *unit; /* by row */
    int without_shape;              /* -1: every row counts */
    double noise;                   /* of a row, relative: what is left unexplained */
    struct fit_param *param;        /* SPEED_PARTS */
};

double speed_predicted_s(const struct speed_split *unit, const struct fit_param *param);

/* Find values, states and sigmas. */
void speed_solve(struct speed_problem *p);

#endif
