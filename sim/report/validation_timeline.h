/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan's predictions and its measurement as a timeline (docs/timeline.md), one above the other:
 * every step begins at the same time on both sides, when the slower one of the step before has
 * ended.
 */
#ifndef SIM_REPORT_VALIDATION_TIMELINE_H
#define SIM_REPORT_VALIDATION_TIMELINE_H

#include "sim/report/trace_events.h"
#include "sim/report/validation_about.h"

/* Write it to `path`, the file complete or not there. */
int validation_timeline(const struct validation *v, const struct validation_about *about,
                        const char *path, struct err *err);

#endif
