/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as a timeline (docs/timeline.md): requests, and for every group its steps, their parts,
 * switches, queue, batch and KV, written while the run goes on.
 */
#ifndef SIM_REPORT_TIMELINE_H
#define SIM_REPORT_TIMELINE_H

#include "sim/base/opt.h"
#include "sim/engine/engine.h"
#include "sim/report/timeline_steps.h"

struct timeline_options {
    const char *path;       /* NULL: no timeline */
    int64_t from_ps, to_ps; /* draw what touches this part of the run; to_ps = 0: to its end */
};

/* Rows for a command's option table; `base` is the offset of a struct timeline_options. */
/* clang-format off */
#define TIMELINE_OPTS(base)                                                                        \
    {"timeline", 0, OPT_STR, (base) + offsetof(struct timeline_options, path), "FILE", NULL, 0, 0, \
     NULL, "write the run of the one policy as a timeline for Perfetto (.json or .json.gz)"},      \
    {"timeline-from", 0, OPT_TIME, (base) + offsetof(struct timeline_options, from_ps),            \
     "TIME", "0s", 0, 0, NULL, "draw what goes on from TIME of the run on only"},                  \
    {"timeline-to", 0, OPT_TIME, (base) + offsetof(struct timeline_options, to_ps),                \
     "TIME", "0s", 0, 0, NULL, "and up to TIME only (0: to its end)"}
/* clang-format on */

enum { TIMELINE_COUNTERS = 3 };

struct timeline {
    const struct timeline_options *options;
    const struct layout *layout;
    struct trace_events events;
    int n_groups;
    struct timeline_drawn {
        struct timeline_group tracks;
        int64_t counted[TIMELINE_COUNTERS][2]; /* what was last written; -1: nothing */
    } * group;
};

/* What a run is of; borrowed. */
struct timeline_about {
    const char *version, *model, *cluster, *policy;
};

/* Refuses more runs than one, a part of it that is empty, and one asked for without a timeline. */
int timeline_check(const struct timeline_options *o, bool is_one_run, struct err *err);

/* Open the file and name the tracks of a run's groups; nothing without a path. `o` and the layouts
 * are borrowed until the close. */
int timeline_open(struct timeline *t, const struct timeline_options *o,
                  const struct timeline_about *about, const struct engine_config *config,
                  const struct layout *layouts, struct err *err);
/* An engine_observer's span(); `timeline` is the struct timeline. */
void timeline_span(void *timeline, const struct span_record *r);
/* After the run: draw its requests and put the file in its place; nothing where none is open. */
int timeline_close(struct timeline *t, const struct engine_request *request,
                   const struct run_result *result, struct err *err);
/* Does nothing after a close, or where nothing was opened. */
void timeline_abort(struct timeline *t);

#endif
