/* SPDX-License-Identifier: Apache-2.0
 *
 * One group on a timeline: a process with a track for its steps, one for each part of them, and one
 * for switches. Parts are drawn one behind the other, each the sum over the layers (and over the
 * steps that a slice stands for), though in truth layers take turns.
 */
#ifndef SIM_REPORT_TIMELINE_STEPS_H
#define SIM_REPORT_TIMELINE_STEPS_H

#include "sim/report/trace_events.h"
#include "sim/study/joined.h"

struct timeline_group {
    struct trace_events *out;
    int pid;
    bool ran; /* a slice was drawn; the last one: */
    int64_t start_ps, end_ps;
};

struct timeline_span {
    const char *layout, *from; /* from: NULL without a switch */
    const char *mechanism;     /* of the switch */
    int64_t start_ps, end_ps;
    int64_t exposed_ps; /* of it, at its start: what the switch added */
    int64_t part_ps[PART_COUNT];
    const char *args; /* of the slice, as a JSON object */
};

/* Name the process and its tracks; `out` is borrowed. */
void timeline_group_begin(struct timeline_group *g, struct trace_events *out, int pid,
                          const char *name);
/* Draw one, which begins no earlier than the last one ended. */
void timeline_group_draw(struct timeline_group *g, const struct timeline_span *s);

#endif
