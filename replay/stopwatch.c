/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/stopwatch.h"

#include <stddef.h>

#include "sim/base/progress.h"

void stopwatch_start(struct stopwatch *w)
{
    *w = (struct stopwatch){.since_ns = wall_ns()};
}

enum stage stopwatch_enter(struct stopwatch *w, enum stage s)
{
    if (w == NULL)
        return ON_OTHER;
    uint64_t now_ns = wall_ns();
    enum stage before = w->now;
    w->ns[before] += (int64_t)(now_ns - w->since_ns);
    w->now = s;
    w->since_ns = now_ns;
    return before;
}
