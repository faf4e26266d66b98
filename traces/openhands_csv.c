/* SPDX-License-Identifier: Apache-2.0
 *
 * Model calls of OpenHands runs (All-Hands-AI/OpenHands), a CSV row each: the calls of an instance
 * wait for one another. What the agent did in between took the time that X_tools.csv beside
 * X_calls.csv says, an action before the first call and one after each.
 */
#include <stdlib.h>

#include "sim/base/mem.h"
#include "traces/arrivals.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"
#include "traces/turns.h"

enum { BLOCK_TOKENS = 64 };
enum { INSTANCE, CALL, INPUT, OUTPUT, CACHED, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [INSTANCE] = {"instance", NULL, CSV_REQUIRED},
    [CALL] = {"call", field_tokens, CSV_REQUIRED},
    [INPUT] = {"prompt_tokens", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"completion_tokens", field_tokens, CSV_REQUIRED},
    [CACHED] = {"cache_read_tokens", field_tokens, CSV_REQUIRED},
};

enum { TOOL_INSTANCE, TOOL_LATENCY, TOOL_COLUMNS };

static const struct csv_column tool_columns[TOOL_COLUMNS] = {
    [TOOL_INSTANCE] = {"instance", NULL, CSV_REQUIRED},
    [TOOL_LATENCY] = {"latency_s", field_seconds_ps, CSV_REQUIRED},
};

struct action {
    __int128 latency_ps;
    size_t next; /* of the same instance; actions count from 1, 0: none */
};

/* What was done between calls, a queue for each instance. */
struct tools {
    struct names instance;
    struct queue {
        size_t first, last;
    } * queue;
    size_t cap_queue;
    struct action *action;
    size_t n, cap;
};

struct state {
    struct turns turns;
    struct arrivals starts;
    struct tools tools;
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[INSTANCE].names) &&
           csv_has_column(h->line, columns[CACHED].names);
}

static struct queue *find_queue(struct tools *s, const char *instance)
{
    size_t n = s->instance.n, i = (size_t)names_number(&s->instance, instance);
    s->queue = xgrow(s->queue, &s->cap_queue, s->instance.n, sizeof *s->queue);
    if (i == n)
        s->queue[i] = (struct queue){0};
    return &s->queue[i];
}

static int add_action(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    (void)t;
    struct tools *s = state;
    const char *instance;
    __int128 latency_ps = 0;
    if (csv_get_text(row, TOOL_INSTANCE, &instance, err) < 0 ||
        csv_get(row, TOOL_LATENCY, &latency_ps, err) < 0)
        return -1;
    struct queue *q = find_queue(s, instance);
    size_t i = ++s->n;
    s->action = xgrow(s->action, &s->cap, i + 1, sizeof *s->action);
    s->action[i] = (struct action){.latency_ps = latency_ps};
    if (q->last > 0)
        s->action[q->last].next = i;
    else
        q->first = i;
    q->last = i;
    return 0;
}

/* How long the instance's next action took. Returns whether it is known. */
static bool take_action(struct tools *s, const char *instance, __int128 *latency_ps)
{
    struct queue *q = find_queue(s, instance);
    if (q->first == 0)
        return false;
    *latency_ps = s->action[q->first].latency_ps;
    q->first = s->action[q->first].next;
    return true;
}

static int read_tools(struct trace *t, const char *calls, struct tools *s, struct err *err)
{
    static const struct csv_table table = {tool_columns, TOOL_COLUMNS, add_action};
    struct lines l;
    char *path = reader_beside(calls, "_calls.csv", "_tools.csv");
    int rc = path == NULL ? 0 : lines_open(&l, path, err);
    if (path != NULL && rc == 0) {
        rc = csv_read_table(t, &l, &table, s, err);
        lines_close(&l);
    }
    free(path);
    return rc;
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    struct state *s = state;
    struct turn_row r = {.line = row->line};
    __int128 value[COLUMNS] = {0};
    if (csv_get_text(row, INSTANCE, &r.session, err) < 0)
        return -1;
    for (int i = CALL; i < COLUMNS; i++)
        if (csv_get(row, i, &value[i], err) < 0)
            return -1;
    struct turn *turn = turns_find(&s->turns, r.session);
    r.arrival_ps = turn_start(t, turn, &s->starts);
    bool known = take_action(&s->tools, r.session, &r.wait_ps);
    t->noted[NOTE_NO_TIME] += !known && turn->kept;
    r.number = (int64_t)value[CALL];
    r.input_tokens = (int64_t)value[INPUT];
    r.output_tokens = (int64_t)value[OUTPUT];
    turn_share(t, &r, turn, (int64_t)value[CACHED]);
    return turn_add(t, turn, &r, err);
}

static void release(struct state *s)
{
    turns_release(&s->turns);
    names_release(&s->tools.instance);
    free(s->tools.queue);
    free(s->tools.action);
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    struct state s = {0};
    arrivals_begin(&s.starts, reading);
    t->block_tokens = BLOCK_TOKENS;
    int rc = read_tools(t, l->path, &s.tools, err);
    if (rc == 0)
        rc = csv_read_table(t, l, &table, &s, err);
    release(&s);
    return rc;
}

const struct trace_reader reader_openhands_csv = {
    .name = "openhands-csv",
    .what = "CSV: instance, call, prompt_tokens, completion_tokens, cache_read_tokens",
    .detect = detect,
    .read = read_rows,
};
