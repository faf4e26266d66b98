/* SPDX-License-Identifier: Apache-2.0
 *
 * Fitting a profile to a table of speeds. A row's time is a sum of stages, each as long as the base
 * profile says times a factor that all rows share, and a fixed time of each step; so few numbers
 * say little, they are held near the base by priors (docs/calibration.md).
 */
#ifndef SIM_STUDY_SPEED_FIT_H
#define SIM_STUDY_SPEED_FIT_H

#include "sim/study/fit.h"
#include "sim/study/speeds.h"

enum speed_part {
    SPEED_PROJ, /* time over the base's */
    SPEED_ATTN_PREFILL,
    SPEED_ATTN_DECODE,
    SPEED_FFN,
    SPEED_EXCHANGE,
    SPEED_LAUNCH, /* step_launch_us */
    SPEED_PARTS
};

struct speed_fit {
    struct profile profile; /* what was fitted; its name is the base's until the caller sets it */
    bool fits_collectives;  /* its collectives are not the base's */
    struct fit_param param[SPEED_PARTS]; /* `which` is the part; stage and target say nothing */
    double noise; /* of a row's time, relative: rms of what is left unexplained, within limits */
    /* By layout; the last is all of them. */
    struct fit_errors errors[LAYOUT_MAX + 1];
    /* Each shape by a fit that did not see it; empty when there is one shape alone. */
    struct fit_errors held_out[LAYOUT_MAX + 1];
    /* How much longer than the fastest layout the one takes that such a fit says is fastest: mean
     * of the shapes that were measured under several. */
    double regret;
    int regret_shapes;
};

/* Same table, same bytes. */
void speed_fit_run(struct speed_fit *f, const struct speeds *s, const struct profile *base);
void speed_fit_release(struct speed_fit *f);

/* What the profile's "source" says. Free each line and the array. */
char **speed_fit_sources(const struct speed_fit *f, const struct speeds *s,
                         const struct profile *base, int *n);

#endif
