/* SPDX-License-Identifier: Apache-2.0
 *
 * TraceLab's replay CSV (uw-syfi/TraceLab): sessions of rounds, each with a wait after it. What the
 * cache served (prefix_len) and what it did not (input_len) make up a round's prompt.
 */
#include "sim/base/units.h"
#include "traces/arrivals.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"
#include "traces/turns.h"

enum { BLOCK_TOKENS = 64 };
enum { SESSION, START, ROUND, PREFIX, INPUT, OUTPUT, WAIT, COLUMNS };

static const char *ms_to_ps(const char *text, __int128 *out)
{
    return field_decimal(text, 9, out);
}

static const struct csv_column columns[COLUMNS] = {
    [SESSION] = {"session_id|id", NULL, CSV_REQUIRED},
    [START] = {"arrival_time", ms_to_ps, CSV_OPTIONAL},
    [ROUND] = {"round_idx", field_tokens, CSV_REQUIRED},
    [PREFIX] = {"prefix_len", field_tokens, CSV_REQUIRED},
    [INPUT] = {"input_len", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"output_len", field_tokens, CSV_REQUIRED},
    [WAIT] = {"tool_wait_after_ms", ms_to_ps, CSV_REQUIRED},
};

struct state {
    struct turns turns;
    struct arrivals starts;
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[PREFIX].names) &&
           csv_has_column(h->line, columns[WAIT].names);
}

/* The session's start, which its rows repeat, if at all. */
static int get_start(struct trace *t, const struct csv *row, struct state *s, struct turn *turn,
                     __int128 *ps, struct err *err)
{
    int there = csv_get(row, START, ps, err);
    if (there == 0)
        *ps = turn_start(t, turn, &s->starts);
    return there;
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    struct state *s = state;
    struct turn_row r = {.line = row->line};
    __int128 value[COLUMNS] = {0};
    if (csv_get_text(row, SESSION, &r.session, err) < 0)
        return -1;
    struct turn *turn = turns_find(&s->turns, r.session);
    if (get_start(t, row, s, turn, &r.arrival_ps, err) < 0)
        return -1;
    for (int i = ROUND; i < COLUMNS; i++)
        if (csv_get(row, i, &value[i], err) < 0)
            return -1;
    if (value[PREFIX] + value[INPUT] > TRACE_TOKENS_MAX)
        return err_at(err, t->path, row->line,
                      "prefix_len and input_len are above 2^40 tokens together");
    r.number = (int64_t)value[ROUND];
    r.wait_after_ps = value[WAIT];
    r.input_tokens = (int64_t)(value[PREFIX] + value[INPUT]);
    r.output_tokens = (int64_t)value[OUTPUT];
    turn_share(t, &r, turn, (int64_t)value[PREFIX]);
    return turn_add(t, turn, &r, err);
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    struct state s = {0};
    arrivals_begin(&s.starts, reading);
    t->block_tokens = BLOCK_TOKENS;
    int rc = csv_read_table(t, l, &table, &s, err);
    turns_release(&s.turns);
    return rc;
}

const struct trace_reader reader_tracelab_csv = {
    .name = "tracelab-csv",
    .what = "CSV: session_id, arrival_time (ms), round_idx, prefix_len, input_len, output_len",
    .detect = detect,
    .read = read_rows,
};
