/* SPDX-License-Identifier: Apache-2.0
 *
 * Mooncake traces (kvcache-ai/Mooncake, FAST25-release/traces) and the dialects of its format that
 * Dynamo, AIPerf and genai-perf read: JSON Lines, one request each, with a hash for every block of
 * the prompt. Rows of one session may wait for one another, and any row for others by name.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/arrivals.h"
#include "traces/chain.h"
#include "traces/hashes.h"
#include "traces/named_waits.h"
#include "traces/reader.h"

enum { ABSENT = -1 };

/* What a line says; times are ABSENT where it does not. */
struct request {
    __int128 at_ps, delay_ps;
    int64_t input_tokens, output_tokens;
    char id[ROW_LABEL_BYTES], session[ROW_LABEL_BYTES]; /* "": none */
    json_t *wait_for;                                   /* NULL: none */
};

struct session {
    struct chain chain;
    size_t turns;
    bool first_delays, last_delays, delays; /* those turns have a delay; any has */
    __int128 last_delay_ps;                 /* of the last turn or ABSENT */
};

/* How long a turn waits, by either meaning of "delay"; ABSENT: the file does not say. */
struct wait {
    size_t request;
    int64_t before_ps, after_ps;
};

struct reading {
    struct trace *t;
    const struct trace_reading *how;
    struct block_sizes sizes;
    struct names ids; /* of sessions */
    struct session *session;
    size_t cap_sessions;
    struct wait *wait;
    size_t n_waits, cap_waits;
    struct named_waits by_name;
    struct arrivals starts;
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' &&
           (strstr(h->line, "\"input_length\"") || strstr(h->line, "\"hash_ids\"") ||
            (strstr(h->line, "\"input_tokens\"") && strstr(h->line, "\"output_tokens\"")));
}

static int read_delay(const struct row *r, __int128 *delay_ps, struct err *err)
{
    __int128 delay = ABSENT, tool = ABSENT;
    if (row_time(r, "delay|delay_ms", ROW_MS, false, &delay, err) < 0 ||
        row_time(r, "tool_wait_ms", ROW_MS, false, &tool, err) < 0)
        return -1;
    if (delay != ABSENT && tool != ABSENT)
        delay += tool;
    else if (tool != ABSENT)
        delay = tool;
    if (delay >= TRACE_SPAN_MAX_PS)
        return row_fail(r, err, "waits 100 days or more; is the time in milliseconds?");
    *delay_ps = delay;
    return 0;
}

static int read_wait_for(const struct row *r, json_t **wait_for, struct err *err)
{
    char buf[ROW_LABEL_BYTES];
    json_t *names = NULL, *name;
    size_t i;
    if (row_array(r, "wait_for", false, &names, err) < 0)
        return -1;
    json_array_foreach (names, i, name)
        if (row_label_of(name, buf) == NULL)
            return row_fail(r, err, "\"wait_for\"[%zu]: expected the request_id of a row", i);
    *wait_for = json_array_size(names) > 0 ? names : NULL;
    return 0;
}

/* AIPerf's sessions may leave out the turns before. */
static int refuse_deltas(const struct row *r, struct err *err)
{
    char mode[ROW_LABEL_BYTES];
    if (row_label(r, "message_mode", false, mode, err) < 0)
        return -1;
    if (strcmp(mode, "delta") == 0)
        return row_fail(r, err, "\"message_mode\": only rows with the whole prompt are read");
    return 0;
}

static int read_row(const struct row *r, struct request *q, struct err *err)
{
    *q = (struct request){.at_ps = ABSENT, .delay_ps = ABSENT};
    if (row_time(r, "timestamp|created_time", ROW_MS, false, &q->at_ps, err) < 0 ||
        row_tokens(r, "input_length|input_tokens", true, &q->input_tokens, err) < 0 ||
        row_tokens(r, "output_length|output_tokens", true, &q->output_tokens, err) < 0 ||
        read_delay(r, &q->delay_ps, err) < 0 || read_wait_for(r, &q->wait_for, err) < 0 ||
        row_label(r, "session_id", false, q->session, err) < 0 ||
        row_label(r, "request_id", q->wait_for != NULL, q->id, err) < 0)
        return -1;
    return refuse_deltas(r, err);
}

static struct session *find_session(struct reading *m, const char *name)
{
    size_t number = (size_t)names_number(&m->ids, name), before = m->cap_sessions;
    m->session = xgrow(m->session, &m->cap_sessions, number + 1, sizeof *m->session);
    memset(m->session + before, 0, (m->cap_sessions - before) * sizeof *m->session);
    return &m->session[number];
}

/* A session without a start gets one of a Poisson process. */
static int start(struct reading *m, const struct row *r, const struct request *q,
                 __int128 *start_ps, struct err *err)
{
    if (q->at_ps == ABSENT && m->how->arrivals_per_s <= 0)
        return row_fail(r, err,
                        "no key \"timestamp\": nothing says when session \"%.60s\" begins "
                        "(--arrivals X draws it)",
                        q->session);
    m->t->noted[NOTE_DRAWN] += q->at_ps == ABSENT;
    *start_ps = q->at_ps == ABSENT ? arrivals_next(&m->starts) : q->at_ps;
    return 0;
}

static void add_wait(struct reading *m, const struct request *q, const struct session *s)
{
    m->wait = xgrow(m->wait, &m->cap_waits, m->n_waits + 1, sizeof *m->wait);
    m->wait[m->n_waits++] = (struct wait){
        .request = m->t->n - 1,
        .before_ps = (int64_t)q->delay_ps,
        .after_ps = (int64_t)s->last_delay_ps,
    };
}

/* A turn waits when it or the one before it has a delay, or when it has no time of its own. */
static int add_turn(struct reading *m, const struct row *r, const struct request *q,
                    struct err *err)
{
    struct session *s = find_session(m, q->session);
    bool first = s->turns == 0 && !s->chain.begun;
    if (first && start(m, r, q, &s->chain.start_ps, err) < 0)
        return -1;
    if (!first && q->at_ps != ABSENT && q->delay_ps == ABSENT && !s->last_delays)
        s->chain = (struct chain){.start_ps = q->at_ps};
    struct turn turn = {0, q->input_tokens, q->output_tokens, row_line(r)};
    int added = chain_add(m->t, &s->chain, &turn, err);
    if (added > 0 && m->t->request[m->t->n - 1].n_after > 0)
        add_wait(m, q, s);
    s->turns++;
    s->last_delays = q->delay_ps != ABSENT;
    s->delays |= s->last_delays;
    s->first_delays = first ? s->last_delays : s->first_delays;
    s->last_delay_ps = q->delay_ps;
    return added;
}

/* One that waits by name. Should all of these be missing, it comes at its own time. */
static int add_waiting(struct reading *m, const struct row *r, const struct request *q,
                       struct err *err)
{
    int64_t delay_ps = q->delay_ps == ABSENT ? 0 : (int64_t)q->delay_ps;
    int added =
        q->at_ps == ABSENT
            ? trace_add_waiting(m->t, delay_ps, q->input_tokens, q->output_tokens, row_line(r), err)
            : trace_add(m->t, q->at_ps, q->input_tokens, q->output_tokens, row_line(r), err);
    if (added <= 0)
        return added;
    m->t->request[m->t->n - 1].delay_ps = delay_ps;
    if (q->session[0] != '\0') {
        struct session *s = find_session(m, q->session);
        s->chain = (struct chain){.begun = true, .last = m->t->n - 1};
        s->last_delay_ps = ABSENT;
    }
    return added;
}

static int add_single(struct reading *m, const struct row *r, const struct request *q,
                      struct err *err)
{
    if (q->delay_ps != ABSENT)
        return row_fail(r, err, "\"delay\": no \"session_id\" says which turn is the one before");
    if (q->at_ps == ABSENT)
        return row_fail(r, err, "no key \"timestamp\"");
    return trace_add(m->t, q->at_ps, q->input_tokens, q->output_tokens, row_line(r), err);
}

static int add_name(struct reading *m, const struct row *r, const struct request *q, bool added,
                    struct err *err)
{
    char buf[ROW_LABEL_BYTES];
    json_t *name;
    size_t i;
    struct named_waits_node node = {.request = added ? (int64_t)m->t->n - 1 : ABSENT,
                                    .timed = q->at_ps != ABSENT,
                                    .line = row_line(r)};
    if (named_waits_begin(&m->by_name, m->t, q->id, &node, err) < 0)
        return -1;
    json_array_foreach (q->wait_for, i, name)
        named_waits_add(&m->by_name, row_label_of(name, buf));
    return 0;
}

static int add_row(void *reading, const struct row *r, struct err *err)
{
    struct reading *m = reading;
    struct request q;
    if (read_row(r, &q, err) < 0)
        return -1;
    int added = q.wait_for != NULL     ? add_waiting(m, r, &q, err)
                : q.session[0] != '\0' ? add_turn(m, r, &q, err)
                                       : add_single(m, r, &q, err);
    if (added < 0 || hashes_check(r, &m->sizes, q.input_tokens, err) < 0)
        return -1;
    if (added > 0)
        hashes_add(m->t, r, &m->sizes);
    if (added > 0 && q.session[0] != '\0')
        trace_set_session(m->t, q.session);
    return q.id[0] != '\0' ? add_name(m, r, &q, added > 0, err) : 0;
}

/* AIPerf's first turn has no delay, since it waits for none; genai-perf's last one, since none
 * waits for it. Sessions with a delay on both or on neither tell nothing. */
static int tell_delay(const struct reading *m, enum trace_delay *delay, struct err *err)
{
    const char *before = NULL, *after = NULL;
    bool open = false;
    for (size_t i = 0; i < m->ids.n; i++) {
        const struct session *s = &m->session[i];
        if (s->last_delays && !s->first_delays)
            before = m->ids.name[i];
        else if (s->first_delays && !s->last_delays)
            after = m->ids.name[i];
        else
            open |= s->delays && s->turns > 1;
    }
    if (before != NULL && after != NULL)
        return err_set(err,
                       "%s: \"delay\": missing on the first turn of session \"%.60s\", as if it "
                       "were before a turn, but on the last of \"%.60s\", as if after: say which "
                       "with --delay",
                       m->t->path, before, after);
    if (open && before == NULL && after == NULL)
        m->t->noted[NOTE_DELAY] += (int64_t)m->n_waits;
    *delay = after != NULL ? DELAY_AFTER : DELAY_BEFORE;
    return 0;
}

static int set_waits(struct reading *m, struct err *err)
{
    enum trace_delay delay = (enum trace_delay)m->how->delay;
    if (delay == DELAY_TOLD && tell_delay(m, &delay, err) < 0)
        return -1;
    for (size_t i = 0; i < m->n_waits; i++) {
        const struct wait *w = &m->wait[i];
        int64_t ps = delay == DELAY_AFTER ? w->after_ps : w->before_ps;
        m->t->noted[NOTE_NO_TIME] += ps == ABSENT;
        m->t->request[w->request].delay_ps = ps == ABSENT ? 0 : ps;
    }
    return 0;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *how,
                     struct err *err)
{
    static const struct block_sizes usual = {2, {512, 16}};
    struct reading m = {.t = t, .how = how, .sizes = block_sizes_begin(t, how, usual)};
    arrivals_begin(&m.starts, how);
    int rc = row_each(l, add_row, &m, err);
    if (rc == 0 && (set_waits(&m, err) < 0 || named_waits_resolve(&m.by_name, t, err) < 0))
        rc = -1;
    names_release(&m.ids);
    free(m.session);
    free(m.wait);
    named_waits_release(&m.by_name);
    return rc;
}

const struct trace_reader reader_mooncake = {
    .name = "mooncake",
    .what = "JSON Lines: timestamp (ms), input_length, output_length, hash_ids; sessions, waits",
    .detect = detect,
    .read = read_rows,
};
