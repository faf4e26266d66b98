/* SPDX-License-Identifier: Apache-2.0
 *
 * What switches cost, measured as in the three-way trials of the SPLASH paper (section 5.5): dT is
 * the time T of a step with a switch inside, less the time of the same step target-ready. Without
 * target-ready trials of the same batch, dT is what the replay itself saw the switch add.
 */
#ifndef SIM_STUDY_SWITCH_TRIALS_H
#define SIM_STUDY_SWITCH_TRIALS_H

#include <stdint.h>

#include "sim/study/joined.h"

/* One way of carrying out a switch. Times are nearest-rank quantiles over trials, in ns. */
struct switch_way {
    int n;                   /* trials */
    int n_matched;           /* those with target-ready trials of their batch */
    double step_ns;          /* T, p50 */
    double dt_ns, dt_p95_ns; /* measured dT */
    double pred_ns;          /* predicted dT, p50 */
    bool resolved;           /* dT is above 0 and not below the noise */
    double error;            /* predicted / measured - 1; NAN unless resolved */
};

struct switch_direction {
    int from, to;    /* layouts of the join */
    int n_ready;     /* target-ready trials of a batch that was tried */
    double ready_ns; /* their p50; NAN without */
    double noise_ns; /* A/A: what dT is between target-ready steps; NAN when there are too few */
    struct switch_way way[MECH_COUNT]; /* n = 0: not tried */
    /* 1 - overlapped dT / blocking dT, at most 1: measured and predicted; NAN if unknown */
    double hidden_frac, pred_hidden_frac;
};

struct switch_trials {
    struct switch_direction *direction; /* by from, then to, in order of appearance */
    int n;
};

/* Every direction with a switch that is not `free`. Trials are of the same batch when contexts
 * differ by at most 5%. The noise is the median, over 200 random halvings of the target-ready
 * trials, of the distance between the medians of the halves; it takes 4 trials of one batch and
 * depends on the seed. */
void switch_trials_init(struct switch_trials *t, const struct joined *j, uint64_t seed);
void switch_trials_release(struct switch_trials *t);

#endif
