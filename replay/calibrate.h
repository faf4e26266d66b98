/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring a machine: its collectives are timed and a grid of steps is replayed, and a profile is
 * fitted to what was measured.
 * The plans and the fit are wavetank's (`wavetank plan grid`, `plan switches`, `fit`), run as
 * programs: a replay knows nothing of costs. What has been measured stays in a work folder, so that
 * a calibration that was cut goes on where it was.
 */
#ifndef REPLAY_CALIBRATE_H
#define REPLAY_CALIBRATE_H

#include "sim/base/err.h"

struct calibrate {
    const char *model, *cluster;
    const char *profile; /* to write */
    const char *work;    /* folder; NULL: the profile's path and ".work" */
    const char *grid; /* plan to measure; NULL: wavetank makes a grid and switches, in the folder */
    /* Replay a plan into a file of measured lines, keeping what was measured when it fails. */
    int (*replay)(void *arg, const char *plan, const char *measured, struct err *err);
    /* Measure collectives by themselves into a table. NULL: they are fitted to steps alone. */
    int (*collectives)(void *arg, const char *table, struct err *err);
    void *arg;
};

/* Leaves the work folder. Run again with the same one, it measures what is missing and fits anew.
 */
int calibrate_run(const struct calibrate *c, struct err *err);

#endif
