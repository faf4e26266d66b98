/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed-loop sessions whose turns stand in a file one after another, maybe among those of other
 * sessions: each turn waits for the one before it. A turn that is skipped hands on what it waits
 * for, and its wait.
 */
#ifndef TRACES_TURNS_H
#define TRACES_TURNS_H

#include "traces/arrivals.h"
#include "traces/trace.h"

/* Of one chain of turns: what was read of it so far. */
struct turn {
    bool begun;
    int64_t number;       /* of the last turn */
    bool kept;            /* one of them, and what follows is of the last that was */
    size_t request;       /* by number of addition */
    int64_t input_tokens; /* of its prompt */
    int64_t output_tokens;
    int64_t wait_ps; /* that turns behind it left */
    bool has_start;
    __int128 start_ps; /* of turn_start() */
};

/* Zero-initialise. */
struct turns {
    struct names chain;
    struct turn *turn;
    size_t cap;
};

struct turn_row {
    const char *session; /* "": none */
    int64_t number;      /* ascending in its chain */
    __int128 arrival_ps; /* where no turn of the chain was kept before it, or it has its own time */
    bool own_time;
    __int128 wait_ps; /* else: from the end of the last that was, besides what others left */
    __int128 wait_after_ps;
    int64_t input_tokens, output_tokens;
    size_t shared_with; /* trace_share_prompt(), where the trace has block_tokens */
    int64_t shared_tokens;
    long line;
};

/* The chain of this name, empty when it is new. Good until the next call. */
struct turn *turns_find(struct turns *s, const char *chain);
/* When the chain begins, where the file does not say: drawn when first asked for, and noted. */
__int128 turn_start(struct trace *t, struct turn *turn, struct arrivals *starts);
/* Share the beginning of the row's prompt with that of the chain's last request, as far as it goes:
 * what is of its answer has no blocks to share. More than the row's prompt, or than prompt and
 * answer before, is noted. */
void turn_share(struct trace *t, struct turn_row *row, const struct turn *turn,
                int64_t shared_tokens);
/* Add the row, which the chain then ends in. Notes a prompt shorter than the one before. Returns
 * what trace_add() does; an error when it is not in order. */
int turn_add(struct trace *t, struct turn *turn, const struct turn_row *row, struct err *err);
/* Leave the row out. */
void turn_skip(struct turn *turn, const struct turn_row *row);
void turns_release(struct turns *s);

#endif
