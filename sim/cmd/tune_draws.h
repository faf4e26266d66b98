/* SPDX-License-Identifier: Apache-2.0
 *
 * What a study's settings are tried on: each trace, once for every seed that makes a difference.
 * Loaded once, read by all workers.
 */
#ifndef SIM_CMD_TUNE_DRAWS_H
#define SIM_CMD_TUNE_DRAWS_H

#include "sim/base/digest.h"
#include "sim/cmd/load.h"
#include "sim/tune/study.h"

struct draw_options {
    struct trace_reading reading; /* its seed is the first one */
    struct trace_select select;
    int64_t seeds;
    int64_t count; /* of a generated trace: sessions, steps or documents; 0: as the preset says */
};

struct draw {
    const char *name; /* of the trace, as asked for */
    int trace;        /* from 0 */
    int64_t seed;
    struct trace loaded;
    struct engine_request *request;
};

struct draws {
    int n;
    struct draw *draw;
    int *trace;           /* of each, for struct draw_set */
    int traces, seedless; /* traces, and those that every seed leaves the same */
};

/* Load every trace ("gen:WORKLOAD" or "gen:WORKLOAD:PRESET" is drawn); `notes` gets warnings, or
 * NULL. Release it in any case. */
int draws_load(struct draws *d, const struct draw_options *o, int n, char **path, FILE *notes,
               struct err *err);
void draws_release(struct draws *d);

/* Requests of a draw when its trace is cut to 1/cut, and what they are. */
int64_t draw_requests(const struct draw *d, int cut);
struct digest draw_digest(const struct draw *d, int cut);

#endif
