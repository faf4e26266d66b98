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

/* What a switch adds to its step, p50 over trials, in ns; NAN: not said. */
struct switch_parts {
    double waits_ns;  /* while nothing is computed */
    double first_ns;  /* of these, before the first layer; NAN unless every trial says it */
    double later_ns;  /* and the others' */
    double slowed_ns; /* measured dT less the waits: what computation takes longer beside the
                         transfer; NAN unless dT is by target-ready trials. Predicted: NAN, it is
                         with the waits */
};

/* One way of carrying out a switch. Times are nearest-rank quantiles over trials, in ns. */
struct switch_way {
    int n;                   /* trials */
    int n_matched;           /* those with target-ready trials of their batch */
    double step_ns;          /* T, p50 */
    double dt_ns, dt_p95_ns; /* measured dT */
    double pred_ns;          /* predicted dT, p50 */
    bool resolved;           /* dT is above 0 and not below three times the noise */
    double error;            /* predicted / measured - 1; NAN unless resolved */
    struct switch_parts measured, predicted;
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
    double noise_p50_ns, noise_p95_ns; /* of the directions that have one; NAN without */
};

/* Every direction with a switch that is not `free`. Trials are of the same batch when contexts
 * differ by at most 5%. The noise is the median, over 200 random halvings of the target-ready
 * trials, of the distance between the medians of the halves; it takes 4 trials of one batch and
 * depends on the seed. */
void switch_trials_init(struct switch_trials *t, const struct joined *j, uint64_t seed);
void switch_trials_release(struct switch_trials *t);

/* Whether more is said of a way that was tried than all that it adds. */
bool switch_way_has_parts(const struct switch_way *w);
/* Whether that is so of any. */
bool switch_trials_have_parts(const struct switch_trials *t);

/* What overlap can hide of a transfer when all layers move alike: all but the first's. */
double switch_trials_hidden_max(int layers);

#endif
