/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/turns.h"

#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

struct turn *turns_find(struct turns *s, const char *chain)
{
    size_t n = s->chain.n, i = (size_t)names_number(&s->chain, chain);
    s->turn = xgrow(s->turn, &s->cap, s->chain.n, sizeof *s->turn);
    if (i == n)
        s->turn[i] = (struct turn){0};
    return &s->turn[i];
}

__int128 turn_start(struct trace *t, struct turn *turn, struct arrivals *starts)
{
    if (!turn->has_start) {
        turn->start_ps = arrivals_next(starts);
        t->noted[starts->per_s > 0 ? NOTE_DRAWN : NOTE_NO_START]++;
    }
    turn->has_start = true;
    return turn->start_ps;
}

void turn_share(struct trace *t, struct turn_row *row, const struct turn *turn,
                int64_t shared_tokens)
{
    int64_t there = turn->kept ? turn->input_tokens + turn->output_tokens : 0;
    if (shared_tokens > row->input_tokens)
        t->noted[NOTE_CACHED_CUT]++;
    else if (shared_tokens > there)
        t->noted[NOTE_NEW_PREFIX]++;
    row->shared_with = turn->request;
    row->shared_tokens = turn->kept ? min_i64(shared_tokens, turn->input_tokens) : 0;
}

/* At most what trace_add_waiting() refuses. */
static int64_t add_waits(int64_t wait_ps, __int128 more_ps)
{
    return more_ps < TRACE_SPAN_MAX_PS - wait_ps ? wait_ps + (int64_t)more_ps : TRACE_SPAN_MAX_PS;
}

void turn_skip(struct turn *turn, const struct turn_row *row)
{
    turn->begun = true;
    turn->number = row->number;
    if (turn->kept)
        turn->wait_ps = add_waits(turn->wait_ps, row->wait_ps);
    turn->wait_ps = add_waits(turn->wait_ps, row->wait_after_ps);
}

static int add(struct trace *t, const struct turn *turn, const struct turn_row *row,
               struct err *err)
{
    if (!turn->kept || row->own_time)
        return trace_add(t, row->arrival_ps + (turn->kept ? 0 : turn->wait_ps), row->input_tokens,
                         row->output_tokens, row->line, err);
    int added = trace_add_waiting(t, add_waits(turn->wait_ps, row->wait_ps), row->input_tokens,
                                  row->output_tokens, row->line, err);
    if (added > 0)
        trace_wait_for(t, turn->request);
    return added;
}

static void keep(struct trace *t, struct turn *turn, const struct turn_row *row)
{
    t->noted[NOTE_SHRUNK] += turn->kept && row->input_tokens < turn->input_tokens;
    if (*row->session != '\0')
        trace_set_session(t, row->session);
    if (t->block_tokens > 0)
        trace_share_prompt(t, row->shared_with, row->shared_tokens);
    turn->begun = turn->kept = true;
    turn->number = row->number;
    turn->request = t->n - 1;
    turn->input_tokens = row->input_tokens;
    turn->output_tokens = row->output_tokens;
    turn->wait_ps = add_waits(0, row->wait_after_ps);
}

int turn_add(struct trace *t, struct turn *turn, const struct turn_row *row, struct err *err)
{
    if (turn->begun && row->number <= turn->number)
        return err_at(err, t->path, row->line,
                      "turn %lld of session \"%.60s\" comes after its turn %lld; sort the file by "
                      "session and turn",
                      (long long)row->number, row->session, (long long)turn->number);
    int added = add(t, turn, row, err);
    if (added > 0)
        keep(t, turn, row);
    else if (added == 0)
        turn_skip(turn, row);
    return added;
}

void turns_release(struct turns *s)
{
    names_release(&s->chain);
    free(s->turn);
    *s = (struct turns){0};
}
