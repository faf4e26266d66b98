/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/arrivals.h"

#include <math.h>

#include "sim/base/units.h"

void arrivals_begin(struct arrivals *a, const struct trace_reading *reading)
{
    *a = (struct arrivals){.per_s = reading->arrivals_per_s};
    rng_stream(&a->draws, (uint64_t)reading->seed, "trace");
}

/* At most TRACE_SPAN_MAX_PS, which no trace can have. */
static int64_t draw_gap_ps(struct arrivals *a)
{
    double gap_s = -log1p(-rng_f64(&a->draws)) / a->per_s;
    return gap_s < ps_to_s(TRACE_SPAN_MAX_PS) ? ps_from_s(gap_s) : TRACE_SPAN_MAX_PS;
}

__int128 arrivals_next(struct arrivals *a)
{
    if (a->per_s > 0 && a->begun)
        a->at_ps += draw_gap_ps(a);
    a->begun = true;
    return a->at_ps;
}
