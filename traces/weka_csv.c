/* SPDX-License-Identifier: Apache-2.0
 *
 * One CSV for the sessions of kv-cache-tester's traces (callanjfox/kv-cache-tester), with the
 * number of blocks that each request shares with the one before in place of their hashes. A session
 * has a main agent and maybe sub-agents, each with a clock of its own.
 */
#include <stdlib.h>

#include "sim/base/mem.h"
#include "traces/arrivals.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"
#include "traces/turns.h"

enum { BLOCK_TOKENS = 64 };
enum { SESSION, AGENT, NUMBER, TIME, INPUT, OUTPUT, SHARED, THINK, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [SESSION] = {"trace", NULL, CSV_REQUIRED},
    [AGENT] = {"agent", NULL, CSV_OPTIONAL},
    [NUMBER] = {"i", field_tokens, CSV_REQUIRED},
    [TIME] = {"t_s", field_seconds_ps, CSV_REQUIRED},
    [INPUT] = {"in", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"out", field_tokens, CSV_REQUIRED},
    [SHARED] = {"prefix_blk", field_tokens, CSV_REQUIRED},
    [THINK] = {"think_s", field_seconds_ps, CSV_OPTIONAL},
};

struct state {
    struct turns turns;
    struct arrivals starts;
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[SHARED].names) &&
           csv_has_column(h->line, columns[TIME].names);
}

/* The row's chain, and in *start_ps the beginning of its session. */
static int find_turn(struct trace *t, const struct csv *row, struct state *s, struct turn_row *r,
                     struct turn **turn, struct err *err)
{
    const char *agent;
    if (csv_get_text(row, SESSION, &r->session, err) < 0 ||
        csv_get_text(row, AGENT, &agent, err) < 0)
        return -1;
    *turn = turns_find(&s->turns, r->session);
    r->arrival_ps = turn_start(t, *turn, &s->starts);
    if (*agent == '\0')
        return 0;
    char *chain = xasprintf("%s\n%s", r->session, agent);
    *turn = turns_find(&s->turns, chain);
    free(chain);
    t->noted[NOTE_NO_TIME] += !(*turn)->begun;
    return 0;
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    struct turn_row r = {.line = row->line};
    struct turn *turn;
    __int128 value[COLUMNS] = {0};
    int got = find_turn(t, row, state, &r, &turn, err);
    for (int i = NUMBER; got >= 0 && i < COLUMNS; i++)
        got = csv_get(row, i, &value[i], err);
    if (got < 0)
        return -1;
    t->noted[NOTE_NO_TIME] += got == 0 && turn->kept;
    r.number = (int64_t)value[NUMBER];
    r.arrival_ps += value[TIME];
    r.wait_ps = value[THINK];
    r.input_tokens = (int64_t)value[INPUT];
    r.output_tokens = (int64_t)value[OUTPUT];
    if (value[SHARED] > value[INPUT] / BLOCK_TOKENS)
        return err_at(err, t->path, row->line, "prefix_blk is more blocks of %d tokens than \"in\"",
                      BLOCK_TOKENS);
    turn_share(t, &r, turn, (int64_t)value[SHARED] * BLOCK_TOKENS);
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

const struct trace_reader reader_weka_csv = {
    .name = "weka-csv",
    .what = "CSV: trace, agent, i, t_s, in, out, prefix_blk (of 64 tokens), think_s",
    .detect = detect,
    .read = read_rows,
};
