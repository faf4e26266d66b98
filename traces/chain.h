/* SPDX-License-Identifier: Apache-2.0
 *
 * The turns of a session, each of which waits for the one before it (a closed loop).
 */
#ifndef TRACES_CHAIN_H
#define TRACES_CHAIN_H

#include "traces/trace.h"

/* Zero-initialise but for start_ps. */
struct chain {
    __int128 start_ps; /* when its first turn comes, by the file's clock */
    bool begun;        /* a turn was added */
    size_t last;       /* that turn, by number of addition */
};

struct turn {
    __int128 wait_ps; /* from the end of the turn before; of the first one ignored */
    int64_t input_tokens, output_tokens;
    long line;
};

/* Add the next turn. Turns that are skipped leave the chain as it is: the next one waits for what
 * they waited for. Notes a prompt that is shorter than the one before. Returns as trace_add(). */
int chain_add(struct trace *t, struct chain *c, const struct turn *turn, struct err *err);

#endif
