/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a rank's time goes: one stage is on at a time, entering one ends the one before.
 */
#ifndef REPLAY_STOPWATCH_H
#define REPLAY_STOPWATCH_H

#include <stdint.h>

enum stage { ON_OTHER, ON_PROJ, ON_ATTN, ON_EXCHANGE, ON_FFN, ON_SWITCH, ON_COUNT };

struct stopwatch {
    int64_t ns[ON_COUNT];
    enum stage now;
    uint64_t since_ns;
};

/* Zero all and enter ON_OTHER. */
void stopwatch_start(struct stopwatch *w);
/* Returns the stage before, to go back to. NULL is nothing. */
enum stage stopwatch_enter(struct stopwatch *w, enum stage s);

#endif
