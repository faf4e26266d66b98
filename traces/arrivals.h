/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrivals for what has none in its file: a Poisson process of the rate that the user asks for
 * (stream "trace"), or all at time 0 where no rate is given.
 */
#ifndef TRACES_ARRIVALS_H
#define TRACES_ARRIVALS_H

#include "sim/base/rng.h"
#include "traces/trace.h"

struct arrivals {
    double per_s; /* 0: all at 0 */
    bool begun;
    __int128 at_ps; /* the last one */
    struct rng draws;
};

void arrivals_begin(struct arrivals *a, const struct trace_reading *reading);
/* The next one; the first is at 0. Exponential gaps: -ln(1 - u) / rate. */
__int128 arrivals_next(struct arrivals *a);

#endif
