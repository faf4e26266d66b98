/* SPDX-License-Identifier: Apache-2.0
 *
 * TraceLab's round_trace.jsonl (uw-syfi/TraceLab): JSON Lines, one call of a coding agent each.
 * A round begins when its last input is there (of tools that ran side by side, the last result) and
 * ends with the last of what the model said; the next one waits for that end.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/chain.h"
#include "traces/hashes.h"
#include "traces/reader.h"

enum { BLOCK_TOKENS = 64, UNKNOWN = -1 };

struct session {
    struct chain chain;
    int64_t last_index;
    __int128 end_ps; /* of its last round, or UNKNOWN */
};

struct rounds {
    struct trace *t;
    struct names ids;
    struct session *session;
    size_t cap;
};

/* When things happened in a round, or UNKNOWN. */
struct span {
    __int128 first_ps, ready_ps, end_ps;
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && strstr(h->line, "\"round_index\"") &&
           strstr(h->line, "\"input_tokens_total\"");
}

static struct session *find_session(struct rounds *s, const char *name)
{
    size_t n = s->ids.n, number = (size_t)names_number(&s->ids, name);
    s->session = xgrow(s->session, &s->cap, number + 1, sizeof *s->session);
    if (number == n)
        s->session[number] = (struct session){.last_index = UNKNOWN, .end_ps = UNKNOWN};
    return &s->session[number];
}

static int add_event(struct span *span, const struct row *event, struct err *err)
{
    char type[ROW_LABEL_BYTES];
    __int128 at_ps = UNKNOWN;
    if (row_label(event, "event_type", true, type, err) < 0 ||
        row_calendar(event, "timestamp", true, &at_ps, err) < 0)
        return -1;
    bool input = strcmp(type, "user_message") == 0 || strcmp(type, "tool_result") == 0;
    __int128 *last_ps = input ? &span->ready_ps : &span->end_ps;
    if (*last_ps < at_ps)
        *last_ps = at_ps;
    if (span->first_ps == UNKNOWN || at_ps < span->first_ps)
        span->first_ps = at_ps;
    return 0;
}

static int read_span(const struct row *r, struct span *span, struct err *err)
{
    json_t *events = NULL;
    struct row event;
    *span = (struct span){UNKNOWN, UNKNOWN, UNKNOWN};
    if (row_array(r, "timing_events", false, &events, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(events); i++)
        if (row_inside(&event, r, "timing_events", i, err) < 0 || add_event(span, &event, err) < 0)
            return -1;
    return 0;
}

static int check_order(const struct row *r, struct session *s, struct err *err)
{
    int64_t index = 0;
    if (row_whole(r, "round_index", true, &index, err) < 0)
        return -1;
    if (index <= s->last_index)
        return row_fail(r, err, "\"round_index\": %lld does not come after %lld of its session",
                        (long long)index, (long long)s->last_index);
    s->last_index = index;
    return 0;
}

static int set_start(const struct row *r, struct session *s, const struct span *span,
                     struct err *err)
{
    s->chain.start_ps = span->ready_ps != UNKNOWN ? span->ready_ps : span->first_ps;
    if (s->chain.start_ps == UNKNOWN)
        return row_fail(r, err, "no timing_events: nothing says when its session begins");
    return 0;
}

/* From the end of the round before until all that this one needs was there. */
static __int128 wait_of(struct trace *t, const struct session *s, const struct span *span)
{
    bool known = s->end_ps != UNKNOWN && span->ready_ps != UNKNOWN;
    bool back = known && span->ready_ps < s->end_ps;
    t->noted[NOTE_NO_TIME] += !known;
    t->noted[NOTE_WENT_BACK] += back;
    return known && !back ? span->ready_ps - s->end_ps : 0;
}

static int add_round(struct trace *t, const struct row *r, struct session *s, struct turn *turn,
                     int64_t prefix, struct err *err)
{
    struct span span;
    bool first = !s->chain.begun;
    size_t before = s->chain.last;
    if (read_span(r, &span, err) < 0 || (first && set_start(r, s, &span, err) < 0))
        return -1;
    if (!first && turn->input_tokens > 0 && turn->output_tokens > 0)
        turn->wait_ps = wait_of(t, s, &span);
    int added = chain_add(t, &s->chain, turn, err);
    if (added <= 0)
        return added;
    s->end_ps = span.end_ps;
    t->noted[NOTE_CACHED_CUT] += prefix > turn->input_tokens;
    trace_share_prompt(t, before, first ? 0 : prefix);
    return added;
}

static int add_row(void *rounds, const struct row *r, struct err *err)
{
    struct rounds *s = rounds;
    struct turn turn = {.line = row_line(r)};
    char name[ROW_LABEL_BYTES];
    int64_t prefix = 0;
    if (row_label(r, "session_id", true, name, err) < 0 ||
        row_tokens(r, "input_tokens_total", true, &turn.input_tokens, err) < 0 ||
        row_tokens(r, "output_tokens", true, &turn.output_tokens, err) < 0 ||
        row_tokens(r, "prefix_tokens", false, &prefix, err) < 0 ||
        hashes_limit(r, turn.input_tokens, err) < 0)
        return -1;
    if (prefix < 0)
        return row_fail(r, err, "\"prefix_tokens\" is negative (%lld)", (long long)prefix);
    struct session *session = find_session(s, name);
    if (check_order(r, session, err) < 0)
        return -1;
    int added = add_round(s->t, r, session, &turn, prefix, err);
    if (added > 0)
        trace_set_session(s->t, name);
    return added;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    struct rounds s = {.t = t};
    (void)reading;
    t->block_tokens = BLOCK_TOKENS;
    t->calendar = true;
    int rc = row_each(l, add_row, &s, err);
    names_release(&s.ids);
    free(s.session);
    return rc;
}

const struct trace_reader reader_tracelab_rounds = {
    .name = "tracelab-rounds",
    .what = "JSON Lines: session_id, round_index, input_tokens_total, output_tokens, timing_events",
    .detect = detect,
    .read = read_rows,
};
