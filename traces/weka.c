/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of a coding agent as kv-cache-tester records them (callanjfox/kv-cache-tester and
 * collections made after it): one JSON object each, whose turns wait for one another and for the
 * sub-agents that they sent out.
 *
 * A sub-agent's entry stands in the file where it was done: its time is when it completed, and its
 * turns count from its start, unless they do not begin before it.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/document.h"

enum { BLOCK_TOKENS = 64, BLOCK_TOKENS_MAX = 1 << 20, WAITS_MAX = 256, DEPTH_MAX = 16 };

#define ID_MAX ((1LL << 40) - 1)

static const int64_t unknown_ps = -1;

struct session {
    struct trace *t;
    const char *name;
    long line;
    uint64_t first_id; /* id 0 of the session among the trace's */
    uint64_t n_ids;
};

/* Turns one after another: a session's own, or a sub-agent's. */
struct chain {
    struct session *session;
    int64_t base_ps;        /* zero of its clock, by the session's */
    size_t wait[WAITS_MAX]; /* what the next turn waits for, by number of addition: */
    size_t n_wait, n_turn;  /* first the turn before, then sub-agents that are done */
    int64_t turn_ended_ps;  /* the turn before, by the session's clock, or unknown_ps */
    int64_t ended_ps;       /* the last of all */
    int64_t turn_at_ps, turn_tokens;
    bool follows; /* the entry before is a turn, and was added */
    bool added;   /* any turn was */
    int depth;    /* sub-agents of sub-agents */
};

struct turn {
    int64_t at_ps, think_ps, api_ps; /* the latter may be unknown_ps */
    int64_t input_tokens, output_tokens;
    json_t *ids; /* or NULL */
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' &&
           (reader_has_key(h, "hash_id_scope") ||
            (reader_has_key(h, "block_size") && reader_has_key(h, "requests")));
}

/* The partial block at the prompt's end has an id in some collections and none in others. */
static int check_ids(struct jobj *o, const struct turn *turn, int block_tokens, struct err *err)
{
    int64_t n = (int64_t)json_array_size(turn->ids), whole = turn->input_tokens / block_tokens;
    int64_t started = ceil_div_i64(turn->input_tokens, block_tokens);
    size_t i;
    json_t *id;
    if (n != whole && n != started)
        return jobj_fail(
            o, "hash_ids", err, "has %lld ids, but %lld tokens make %lld blocks of %d tokens",
            (long long)n, (long long)turn->input_tokens, (long long)started, block_tokens);
    json_array_foreach (turn->ids, i, id)
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > ID_MAX)
            return jobj_fail(o, "hash_ids", err,
                             "element %zu must be a whole number from 0 to 2^40 - 1", i);
    return 0;
}

static int read_turn(const struct chain *c, struct jobj *o, struct turn *turn, struct err *err)
{
    *turn = (struct turn){.think_ps = unknown_ps, .api_ps = unknown_ps};
    int timed = document_seconds(o, "t", &turn->at_ps, err);
    if (timed == 0)
        return jobj_fail(o, "t", err, "required key is missing");
    if (timed < 0 || document_seconds(o, "think_time", &turn->think_ps, err) < 0 ||
        document_seconds(o, "api_time", &turn->api_ps, err) < 0 ||
        jobj_i64(o, "in", true, 0, TRACE_TOKENS_MAX, &turn->input_tokens, err) < 0 ||
        jobj_i64(o, "out", true, 0, TRACE_TOKENS_MAX, &turn->output_tokens, err) < 0 ||
        jobj_array(o, "hash_ids", false, &turn->ids, err) < 0)
        return -1;
    turn->at_ps += c->base_ps;
    return turn->ids != NULL ? check_ids(o, turn, c->session->t->block_tokens, err) : 0;
}

static int64_t find_delay(const struct chain *c, const struct turn *turn)
{
    if (c->follows && turn->think_ps != unknown_ps)
        return turn->think_ps;
    if (c->ended_ps == unknown_ps)
        c->session->t->noted[NOTE_NO_TIME]++;
    else if (turn->at_ps < c->turn_at_ps)
        c->session->t->noted[NOTE_WENT_BACK]++;
    return c->ended_ps == unknown_ps ? 0 : max_i64(0, turn->at_ps - c->ended_ps);
}

static void add_ids(struct session *s, json_t *ids)
{
    size_t i;
    json_t *id;
    json_array_foreach (ids, i, id) {
        uint64_t value = (uint64_t)json_integer_value(id);
        trace_add_hash(s->t, s->first_id + value);
        s->n_ids = value >= s->n_ids ? value + 1 : s->n_ids;
    }
}

/* The turn was added and is what the next one waits for. */
static void follow(struct chain *c, const struct turn *turn)
{
    struct trace *t = c->session->t;
    for (size_t i = 0; i < c->n_wait; i++)
        trace_wait_for(t, c->wait[i]);
    trace_set_session(t, c->session->name);
    add_ids(c->session, turn->ids);
    t->noted[NOTE_SHRUNK] += turn->input_tokens < c->turn_tokens;
    c->wait[0] = t->n - 1;
    c->n_wait = 1;
    c->turn_at_ps = turn->at_ps;
    c->turn_tokens = turn->input_tokens;
    c->ended_ps = turn->api_ps == unknown_ps ? unknown_ps : turn->at_ps + turn->api_ps;
    c->added = true;
}

static int add_turn(struct chain *c, struct jobj *o, struct err *err)
{
    struct session *s = c->session;
    struct turn turn;
    if (read_turn(c, o, &turn, err) < 0)
        return -1;
    bool has_tokens = turn.input_tokens > 0 && turn.output_tokens > 0;
    int64_t delay_ps = c->n_wait > 0 && has_tokens ? find_delay(c, &turn) : 0;
    int added = c->n_wait == 0 ? trace_add(s->t, turn.at_ps, turn.input_tokens, turn.output_tokens,
                                           s->line, err)
                               : trace_add_waiting(s->t, delay_ps, turn.input_tokens,
                                                   turn.output_tokens, s->line, err);
    if (added > 0)
        follow(c, &turn);
    c->follows = added > 0;
    c->n_turn = c->n_wait;
    c->turn_ended_ps = c->ended_ps;
    return added < 0 ? -1 : 0;
}

struct agent {
    int64_t at_ps, duration_ps; /* the latter may be unknown_ps */
    int64_t first_ps;           /* of its first turn, by the clock of its turns */
    bool waited_for;
};

static int read_agent(struct jobj *o, struct agent *a, struct err *err)
{
    const char *status = "completed";
    double duration_ms = 0;
    struct jobj first;
    *a = (struct agent){.duration_ps = unknown_ps};
    int timed = document_seconds(o, "t", &a->at_ps, err);
    if (timed == 0)
        return jobj_fail(o, "t", err, "required key is missing");
    if (timed < 0 || jobj_str(o, "status", false, &status, err) < 0 ||
        jobj_open_at(&first, o, "requests", 0, err) < 0 ||
        document_seconds(&first, "t", &a->first_ps, err) < 0)
        return -1;
    a->waited_for = strcmp(status, "async_launched") != 0;
    if (!document_has(o, "duration_ms"))
        return 0;
    if (jobj_f64(o, "duration_ms", true, 0, 8.64e9, &duration_ms, err) < 0)
        return -1;
    a->duration_ps = ps_from_s(duration_ms / 1000);
    return 0;
}

/* Its turns begin no sooner than its entry: that is its start then, and all count from the
 * session's. */
static bool counts_from_session(const struct agent *a)
{
    return a->first_ps >= a->at_ps;
}

/* A sub-agent's turns, sent out by the turn before. */
static void send_out(struct chain *sent, const struct chain *c, const struct agent *a)
{
    *sent = (struct chain){.session = c->session,
                           .n_wait = c->n_turn,
                           .n_turn = c->n_turn,
                           .turn_ended_ps = c->turn_ended_ps,
                           .ended_ps = c->turn_ended_ps,
                           .depth = c->depth + 1};
    memcpy(sent->wait, c->wait, c->n_turn * sizeof *c->wait);
    if (counts_from_session(a))
        return;
    if (a->duration_ps != unknown_ps)
        sent->base_ps = max_i64(0, a->at_ps - a->duration_ps);
    else if (a->waited_for)
        sent->ended_ps = unknown_ps; /* when it began is not known */
    else
        sent->base_ps = a->at_ps;
}

/* When the sub-agent's last turn ended, by the session's clock, or about so. */
static int64_t end_of(const struct chain *sent, const struct agent *a)
{
    if (counts_from_session(a) || (a->duration_ps != unknown_ps && sent->ended_ps != unknown_ps))
        return sent->ended_ps;
    return a->at_ps;
}

/* The next turn waits for what the sub-agent did last, too. */
static int take_back(struct chain *c, const struct chain *sent, const struct agent *a,
                     struct jobj *o, struct err *err)
{
    if (c->n_wait + sent->n_wait > WAITS_MAX)
        return jobj_fail(o, NULL, err, "is one of more than %d sub-agents at once", WAITS_MAX - 1);
    memcpy(c->wait + c->n_wait, sent->wait, sent->n_wait * sizeof *c->wait);
    c->n_wait += sent->n_wait;
    int64_t ended_ps = end_of(sent, a);
    c->ended_ps = ended_ps == unknown_ps ? unknown_ps : max_i64(c->ended_ps, ended_ps);
    c->follows = false;
    return 0;
}

static int add_entries(struct chain *c, struct jobj *o, struct err *err);

static int add_agent(struct chain *c, struct jobj *o, struct err *err)
{
    struct agent a;
    struct chain sent;
    if (c->depth == DEPTH_MAX)
        return jobj_fail(o, NULL, err, "is a sub-agent more than %d deep", DEPTH_MAX);
    if (!document_has(o, "requests") || json_array_size(json_object_get(o->obj, "requests")) == 0) {
        c->session->t->skipped[SKIP_NO_LENGTH]++;
        return 0;
    }
    if (read_agent(o, &a, err) < 0)
        return -1;
    send_out(&sent, c, &a);
    if (add_entries(&sent, o, err) < 0)
        return -1;
    return a.waited_for && sent.added ? take_back(c, &sent, &a, o, err) : 0;
}

static int add_entries(struct chain *c, struct jobj *o, struct err *err)
{
    static const char *const types[] = {"n", "s", "subagent"};
    enum { NORMAL, STREAMED, SUBAGENT, TYPES };
    json_t *entries = NULL;
    int rc = jobj_array(o, "requests", true, &entries, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(entries); i++) {
        struct jobj entry;
        int type = NORMAL;
        if (jobj_open_at(&entry, o, "requests", i, err) < 0 ||
            jobj_enum(&entry, "type", true, types, TYPES, &type, err) < 0)
            return -1;
        rc = type == SUBAGENT ? add_agent(c, &entry, err) : add_turn(c, &entry, err);
    }
    return rc;
}

/* Collections hold sessions more than once, under other names. */
static bool is_known(struct trace *t, struct jobj *o)
{
    uint64_t digest = DOCUMENT_DIGEST;
    char text[24];
    document_digest(json_object_get(o->obj, "requests"), &digest);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)digest);
    int32_t known = names_find(&t->contents, text);
    names_number(&t->contents, text);
    return known >= 0;
}

static int set_blocks(struct trace *t, struct jobj *o, struct err *err)
{
    int block_tokens = BLOCK_TOKENS;
    if (jobj_int(o, "block_size", false, 1, BLOCK_TOKENS_MAX, &block_tokens, err) < 0)
        return -1;
    if (t->block_tokens != 0 && t->block_tokens != block_tokens)
        return jobj_fail(o, "block_size", err, "is %d, other sessions have %d", block_tokens,
                         t->block_tokens);
    t->block_tokens = block_tokens;
    return 0;
}

static int add_named(struct session *s, struct jobj *o, struct err *err)
{
    static const char *const scopes[] = {"local", "global"};
    int scope = 0;
    struct chain own = {.session = s, .ended_ps = unknown_ps, .turn_ended_ps = unknown_ps};
    if (set_blocks(s->t, o, err) < 0 || jobj_enum(o, "hash_id_scope", false, scopes,
                                                  sizeof scopes / sizeof *scopes, &scope, err) < 0)
        return -1;
    s->first_id = scope == 0 ? s->t->n_own_blocks : 0;
    if (add_entries(&own, o, err) < 0)
        return -1;
    s->t->n_own_blocks =
        s->first_id + s->n_ids > s->t->n_own_blocks ? s->first_id + s->n_ids : s->t->n_own_blocks;
    return 0;
}

static int add_session(struct trace *t, const struct document *d, struct err *err)
{
    struct jobj o;
    const char *id = NULL;
    if (jobj_root(&o, d->place, d->root, err) < 0 || jobj_str(&o, "id", true, &id, err) < 0)
        return -1;
    if (is_known(t, &o)) {
        t->skipped[SKIP_DUPLICATE]++;
        return 0;
    }
    bool taken = names_find(&t->session, id) >= 0;
    char *name = taken ? xasprintf("%s %s", d->place, id) : xstrdup(id);
    struct session s = {.t = t, .name = name, .line = d->line};
    int rc = add_named(&s, &o, err);
    free(name);
    return rc;
}

static int read_sessions(struct trace *t, struct lines *l, const struct trace_reading *reading,
                         struct err *err)
{
    (void)reading;
    return document_each(t, l, add_session, err);
}

const struct trace_reader reader_weka = {
    .name = "weka",
    .what = "JSON, a session a file or a line: requests with t (s), in, out, hash_ids, think_time",
    .detect = detect,
    .read = read_sessions,
};
