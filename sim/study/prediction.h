/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose predictions a plan holds: a plan does not name the profile that made it, but what a cost
 * model says of its steps tells.
 */
#ifndef SIM_STUDY_PREDICTION_H
#define SIM_STUDY_PREDICTION_H

#include "sim/plan/plan.h"

struct cost;

/* How many steps of the plan have the stage times, to the nanosecond, that the cost model gives.
 * None when it is of other ranks or layers; steps under a layout that it lacks do not count. */
int prediction_matches(const struct cost *c, const struct plan *p);

#endif
