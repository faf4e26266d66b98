/* SPDX-License-Identifier: Apache-2.0
 *
 * BLIS TraceV2 (inference-sim/inference-sim, sim/workload/tracev2.go): a CSV of requests, and its
 * header as X.yaml beside X.csv, of which one key matters here: whether a round's input_tokens are
 * what it adds to its session's context. Input tokens come without the prefix that the rows of a
 * prefix_group begin with.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"
#include "traces/turns.h"

enum { BLOCK_TOKENS = 64 };
enum {
    ARRIVAL,
    INPUT,
    OUTPUT,
    SESSION,
    ROUND,
    GROUP,
    PREFIX,
    SERVER_INPUT,
    LAST_CHUNK,
    STATUS,
    THINK,
    RESET,
    COLUMNS
};

static const char *us_to_ps(const char *text, __int128 *out)
{
    return field_decimal(text, 6, out);
}

static const struct csv_column columns[COLUMNS] = {
    [ARRIVAL] = {"arrival_time_us", us_to_ps, CSV_REQUIRED},
    [INPUT] = {"input_tokens", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"output_tokens", field_tokens, CSV_REQUIRED},
    [SESSION] = {"session_id", NULL, CSV_OPTIONAL},
    [ROUND] = {"round_index", field_tokens, CSV_OPTIONAL},
    [GROUP] = {"prefix_group", NULL, CSV_OPTIONAL},
    [PREFIX] = {"prefix_length", field_tokens, CSV_OPTIONAL},
    [SERVER_INPUT] = {"server_input_tokens", field_tokens, CSV_OPTIONAL},
    [LAST_CHUNK] = {"last_chunk_time_us", us_to_ps, CSV_OPTIONAL},
    [STATUS] = {"status", NULL, CSV_OPTIONAL},
    [THINK] = {"think_time_us", us_to_ps, CSV_OPTIONAL},
    [RESET] = {"input_tokens_reset", field_tokens, CSV_OPTIONAL},
};

struct row {
    const char *group, *status;
    __int128 value[COLUMNS]; /* 0 where it is not there */
    bool there[COLUMNS];
    struct turn_row turn;
};

/* What a session's last round left, also one that was skipped. */
struct left {
    __int128 context_tokens, ended_ps;
    bool has_end;
};

struct state {
    bool accumulates;
    struct turns turns, groups; /* of groups: the first request, and its prefix as input_tokens */
    struct left *left;          /* of each chain of turns */
    size_t n_left, cap_left;
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[ARRIVAL].names) &&
           csv_has_column(h->line, columns[INPUT].names);
}

static int get_row(const struct csv *c, struct row *r, struct err *err)
{
    *r = (struct row){.turn.line = c->line};
    for (int i = 0; i < COLUMNS; i++) {
        int got = columns[i].parse != NULL ? csv_get(c, i, &r->value[i], err) : 0;
        if (got < 0)
            return -1;
        r->there[i] = got > 0;
    }
    r->turn.number = (int64_t)r->value[ROUND];
    csv_get_text(c, SESSION, &r->turn.session, err);
    csv_get_text(c, GROUP, &r->group, err);
    csv_get_text(c, STATUS, &r->status, err);
    return 0;
}

static bool has_failed(const struct row *r)
{
    return *r->status != '\0' && strcmp(r->status, "ok") != 0;
}

/* Rows of a group come without the prefix; of others the server's count is the better one. */
static __int128 own_prompt(const struct row *r)
{
    if (*r->group != '\0')
        return r->value[PREFIX] + r->value[INPUT];
    return r->value[SERVER_INPUT] > 0 ? r->value[SERVER_INPUT] : r->value[INPUT];
}

/* A chain's round: it may add to the context that the one before left, or begin a new one. */
struct round {
    bool grows;
    struct turn *turn;
    struct left *left;
};

static int set_lengths(struct trace *t, struct row *r, const struct round *round, struct err *err)
{
    __int128 prompt_tokens = own_prompt(r);
    if (round->grows)
        prompt_tokens =
            r->there[RESET] ? r->value[RESET] : round->left->context_tokens + r->value[INPUT];
    if (prompt_tokens > TRACE_TOKENS_MAX)
        return err_at(err, t->path, r->turn.line, "has a prompt of more than 2^40 tokens");
    r->turn.input_tokens = (int64_t)prompt_tokens;
    r->turn.output_tokens = (int64_t)r->value[OUTPUT];
    return 0;
}

/* What is known of it: the prompt before, where contexts grow; else the prefix of its group. */
static void set_shared(struct row *r, const struct round *round, const struct turn *group)
{
    if (round->grows && round->turn->kept && !r->there[RESET]) {
        r->turn.shared_with = round->turn->request;
        r->turn.shared_tokens = round->turn->input_tokens;
    } else if (!round->grows && group->kept) {
        r->turn.shared_with = group->request;
        r->turn.shared_tokens = min_i64((int64_t)r->value[PREFIX], group->input_tokens);
    }
}

/* A wait that the file does not tell is what lies between the answer before and this round. */
static void set_wait(struct trace *t, struct row *r, const struct round *round)
{
    const struct left *left = round->left;
    r->turn.arrival_ps = r->value[ARRIVAL];
    r->turn.wait_ps = r->value[THINK];
    r->turn.own_time = !r->there[THINK] && !left->has_end;
    if (r->there[THINK] || !left->has_end)
        return;
    __int128 gap_ps = r->value[ARRIVAL] - left->ended_ps;
    t->noted[NOTE_WENT_BACK] += round->turn->kept && gap_ps < 0;
    r->turn.wait_ps = gap_ps > 0 ? gap_ps : 0;
}

static void set_left(const struct row *r, struct left *left, bool kept)
{
    left->context_tokens = (__int128)r->turn.input_tokens + r->turn.output_tokens;
    left->has_end = r->value[LAST_CHUNK] > 0 || !kept;
    left->ended_ps = r->value[LAST_CHUNK] > 0 ? r->value[LAST_CHUNK] : r->value[ARRIVAL];
}

/* The first request of a group stands for it. */
static void note_group(const struct trace *t, const struct row *r, struct turn *group)
{
    if (*r->group == '\0' || group->kept)
        return;
    group->kept = true;
    group->request = t->n - 1;
    group->input_tokens = (int64_t)r->value[PREFIX];
}

static struct left *find_left(struct state *s, const struct turn *turn)
{
    size_t n = s->turns.chain.n;
    s->left = xgrow(s->left, &s->cap_left, n, sizeof *s->left);
    for (; s->n_left < n; s->n_left++)
        s->left[s->n_left] = (struct left){0};
    return &s->left[turn - s->turns.turn];
}

/* A row of no session is a chain of its own. */
static struct round find_round(struct state *s, const struct row *r, struct turn *alone,
                               struct left *none)
{
    if (*r->turn.session == '\0')
        return (struct round){false, alone, none};
    struct turn *turn = turns_find(&s->turns, r->turn.session);
    return (struct round){s->accumulates && turn->begun, turn, find_left(s, turn)};
}

static int add(struct trace *t, const struct csv *c, void *state, struct err *err)
{
    struct state *s = state;
    struct row r;
    struct turn alone = {0}, *group;
    struct left none = {0};
    if (get_row(c, &r, err) < 0)
        return -1;
    struct round round = find_round(s, &r, &alone, &none);
    group = turns_find(&s->groups, r.group);
    if (set_lengths(t, &r, &round, err) < 0)
        return -1;
    set_shared(&r, &round, group);
    set_wait(t, &r, &round);
    int added = 0;
    if (has_failed(&r)) {
        t->skipped[SKIP_FAILED]++;
        turn_skip(round.turn, &r.turn);
    } else {
        added = turn_add(t, round.turn, &r.turn, err);
    }
    set_left(&r, round.left, added > 0);
    if (added > 0)
        note_group(t, &r, group);
    return added;
}

/* The text behind "key:" in a line of YAML, without blanks and quotes; NULL when it is not there.
 */
static char *yaml_value(char *line, const char *key)
{
    size_t len = strlen(key);
    if (strncmp(line, key, len) != 0 || line[len] != ':')
        return NULL;
    char *value = line + len + 1 + strspn(line + len + 1, " \t\"'");
    value[strcspn(value, " \t\"'#")] = '\0';
    return value;
}

static int read_header_line(const struct lines *l, struct state *s, struct err *err)
{
    const char *unit = yaml_value(l->line, "time_unit");
    const char *growth = yaml_value(l->line, "session_context_growth");
    if (unit != NULL && strcmp(unit, "microseconds") != 0)
        return err_at(err, l->path, l->number, "time_unit \"%.40s\": expected microseconds", unit);
    if (growth != NULL && *growth != '\0' && strcmp(growth, "accumulate") != 0)
        return err_at(err, l->path, l->number,
                      "session_context_growth \"%.40s\": expected accumulate, or nothing", growth);
    s->accumulates |= growth != NULL && *growth != '\0';
    return 0;
}

static int read_header(const char *csv_path, struct state *s, struct err *err)
{
    struct lines l;
    char *path = reader_beside(csv_path, ".csv", ".yaml");
    int got = path != NULL ? lines_open(&l, path, err) : 0;
    if (path != NULL && got == 0) {
        while ((got = lines_next(&l, err)) > 0 && (got = read_header_line(&l, s, err)) == 0)
            continue;
        lines_close(&l);
    }
    free(path);
    return got;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    struct state s = {0};
    (void)reading;
    t->block_tokens = BLOCK_TOKENS;
    int rc = read_header(l->path, &s, err);
    if (rc == 0)
        rc = csv_read_table(t, l, &table, &s, err);
    turns_release(&s.turns);
    turns_release(&s.groups);
    free(s.left);
    return rc;
}

const struct trace_reader reader_blis = {
    .name = "blis",
    .what = "CSV of TraceV2: arrival_time_us, input_tokens, output_tokens, session_id, ...",
    .detect = detect,
    .read = read_rows,
};
