/* SPDX-License-Identifier: Apache-2.0
 *
 * How far off the simulator was: a plan joined with its measurement, and every number that
 * `wavetank validate` reports (docs/metrics.md defines each).
 */
#ifndef SIM_STUDY_VALIDATION_H
#define SIM_STUDY_VALIDATION_H

#include "sim/study/first_runs.h"
#include "sim/study/hopb_trials.h"
#include "sim/study/layout_order.h"
#include "sim/study/step_errors.h"
#include "sim/study/switch_trials.h"

struct validation {
    struct joined joined;
    struct step_errors steady, ready; /* of steps without a switch, and of target-ready ones */
    const struct step_errors *main; /* `steady`, or `ready` when there are too few of the former */
    struct schedule_errors schedule;
    struct layout_order order;
    struct hopb_trials hopb;
    struct switch_trials trials;
    struct first_runs first_runs;
};

/* Join and count; errors as in joined_init(). Borrows both plans. Must not be moved afterwards. On
 * failure nothing is held. */
int validation_init(struct validation *v, const struct plan *plan, const char *plan_path,
                    const struct plan *measured, const char *measured_path, struct err *err);
void validation_release(struct validation *v);

#endif
