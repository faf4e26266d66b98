/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives of a machine by themselves, size by size, as a step of a replay does them: a
 * table that hw/collective.h reads. Knows nothing of GPUs.
 */
#ifndef REPLAY_COLLECTIVES_H
#define REPLAY_COLLECTIVES_H

#include "replay/backend.h"

/* Of each operation every power of two of bytes, as hw/collective.h counts them; where ranks do not
 * divide it into multiples of 16, the next below that they do. A time is the median over so many
 * graphs of so many calls in a row. */
enum {
    COLLECTIVES_FIRST_POWER = 10,
    COLLECTIVES_LAST_POWER = 28,
    COLLECTIVES_REPEATS = 15,
    COLLECTIVES_CALLS = 16
};

struct collectives {
    const struct backend *backend;
    struct backend_options options;
    struct plan_origin origin; /* for the table's first line */
    int ranks, port;
    double stall_s;
};

/* Measure them into a file, which is there once it is complete. Refuses a single rank, and a
 * backend whose exchanges say nothing of a network. Must be called as launch_run() must. */
int collectives_run(const struct collectives *c, const char *path, struct err *err);

#endif
