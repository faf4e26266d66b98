/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of OpenHands (output.jsonl of its evaluation), a session each: the calls are the token
 * usages in the metrics, one after another. What passed between them is told by the time of the
 * event that a response made and by the response's latency, all found by the response's id.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/document.h"
#include "traces/field.h"

enum { BLOCK_TOKENS = 64 };

static const int64_t unknown_ps = -1;

/* What is known of a response besides its tokens. */
struct response {
    __int128 ended_ps;
    int64_t latency_ps; /* both may be unknown_ps */
};

struct run {
    struct trace *t;
    const struct document *document;
    const char *name;
    struct names ids;
    struct response *response; /* by number of the id */
    size_t cap;
    size_t before;         /* number of addition of the call before */
    int64_t before_tokens; /* its prompt; 0: there is none */
    int32_t before_id;     /* its response, or -1 */
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' &&
           (reader_has_key(h, "token_usages") ||
            (reader_has_key(h, "instance_id") && reader_has_key(h, "history")));
}

static struct response *find_response(struct run *r, const char *id)
{
    size_t n = r->ids.n, number = (size_t)names_number(&r->ids, id);
    r->response = xgrow(r->response, &r->cap, r->ids.n, sizeof *r->response);
    if (number == n)
        r->response[number] = (struct response){unknown_ps, unknown_ps};
    return &r->response[number];
}

static int read_latencies(struct run *r, struct jobj *metrics, struct err *err)
{
    json_t *latencies = NULL;
    if (jobj_array(metrics, "response_latencies", false, &latencies, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(latencies); i++) {
        struct jobj o;
        const char *id = NULL;
        int64_t latency_ps = 0;
        if (jobj_open_at(&o, metrics, "response_latencies", i, err) < 0 ||
            jobj_str(&o, "response_id", false, &id, err) < 0)
            return -1;
        int known = document_seconds(&o, "latency", &latency_ps, err);
        if (known < 0)
            return -1;
        if (known > 0 && id != NULL)
            find_response(r, id)->latency_ps = latency_ps;
    }
    return 0;
}

/* The first event that a response made came when it ended. Events are of many kinds, so those that
 * do not say what is sought are passed over. */
static void read_events(struct run *r, json_t *events)
{
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event) {
        __int128 at_ps;
        json_t *call = json_object_get(event, "tool_call_metadata");
        json_t *answer = json_object_get(call, "model_response");
        const char *id = json_string_value(json_object_get(answer, "id"));
        const char *time = json_string_value(json_object_get(event, "timestamp"));
        if (id == NULL || time == NULL || field_calendar_ps(time, &at_ps) != NULL)
            continue;
        struct response *response = find_response(r, id);
        if (response->ended_ps == unknown_ps)
            response->ended_ps = at_ps;
    }
}

static __int128 find_delay(const struct run *r, int32_t id)
{
    static const struct response unknown = {unknown_ps, unknown_ps};
    const struct response *before = r->before_id >= 0 ? &r->response[r->before_id] : &unknown;
    const struct response *now = id >= 0 ? &r->response[id] : &unknown;
    if (before->ended_ps == unknown_ps || now->ended_ps == unknown_ps ||
        now->latency_ps == unknown_ps) {
        r->t->noted[NOTE_NO_TIME]++;
        return 0;
    }
    __int128 delay_ps = now->ended_ps - now->latency_ps - before->ended_ps;
    return delay_ps > 0 ? delay_ps : 0;
}

struct usage {
    int64_t input_tokens, output_tokens, cached_tokens; /* the latter -1 where it is not told */
    int32_t id;                                         /* of the response, or -1 */
};

/* 1: has token counts, 0: has none, -1: error. */
static int read_usage(const struct run *r, struct jobj *o, struct usage *u, struct err *err)
{
    const char *id = NULL;
    *u = (struct usage){.cached_tokens = -1};
    if (jobj_str(o, "response_id", false, &id, err) < 0 ||
        jobj_i64(o, "cache_read_tokens", false, 0, TRACE_TOKENS_MAX, &u->cached_tokens, err) < 0)
        return -1;
    u->id = id != NULL ? names_find(&r->ids, id) : -1;
    int in = document_tokens(o, "prompt_tokens", "prompt_tokens", &u->input_tokens, err);
    int out = document_tokens(o, "completion_tokens", "completion_tokens", &u->output_tokens, err);
    return in < 0 || out < 0 ? -1 : in > 0 && out > 0;
}

static void share_prompt(const struct run *r, const struct usage *u)
{
    if (u->cached_tokens < 0)
        return;
    r->t->block_tokens = BLOCK_TOKENS;
    r->t->noted[NOTE_CACHED_CUT] += u->cached_tokens > u->input_tokens;
    trace_share_prompt(r->t, r->before, r->before_tokens > 0 ? u->cached_tokens : 0);
}

static int add_call(struct run *r, const struct usage *u, struct err *err)
{
    struct trace *t = r->t;
    long line = r->document->line;
    bool first = r->before_tokens == 0, empty = u->input_tokens == 0 || u->output_tokens == 0;
    int added = first ? trace_add(t, 0, u->input_tokens, u->output_tokens, line, err)
                      : trace_add_waiting(t, empty ? 0 : find_delay(r, u->id), u->input_tokens,
                                          u->output_tokens, line, err);
    if (added <= 0)
        return added;
    if (!first)
        trace_wait_for(t, r->before);
    trace_set_session(t, r->name);
    share_prompt(r, u);
    t->noted[NOTE_SHRUNK] += u->input_tokens < r->before_tokens;
    r->before = t->n - 1;
    r->before_tokens = u->input_tokens;
    r->before_id = u->id;
    return 0;
}

static int add_calls(struct run *r, struct jobj *metrics, struct err *err)
{
    json_t *usages = NULL;
    if (jobj_array(metrics, "token_usages", false, &usages, err) < 0)
        return -1;
    if (json_array_size(usages) == 0)
        r->t->skipped[SKIP_NO_LENGTH]++;
    for (size_t i = 0; i < json_array_size(usages); i++) {
        struct jobj o;
        struct usage u;
        if (jobj_open_at(&o, metrics, "token_usages", i, err) < 0)
            return -1;
        int counted = read_usage(r, &o, &u, err);
        if (counted < 0 || (counted > 0 && add_call(r, &u, err) < 0))
            return -1;
        r->t->skipped[SKIP_NO_LENGTH] += counted == 0;
    }
    return 0;
}

static int add_run(struct trace *t, const struct document *d, struct err *err)
{
    struct jobj o, metrics;
    struct run r = {.t = t, .document = d, .name = d->place, .before_id = -1};
    if (jobj_root(&o, d->place, d->root, err) < 0)
        return -1;
    if (!document_has(&o, "metrics")) {
        t->skipped[SKIP_NO_LENGTH]++;
        return 0;
    }
    if (jobj_str(&o, "instance_id", false, &r.name, err) < 0 ||
        jobj_open(&metrics, &o, "metrics", true, err) < 0)
        return -1;
    read_events(&r, json_object_get(o.obj, "history"));
    int rc = read_latencies(&r, &metrics, err);
    if (rc == 0)
        rc = add_calls(&r, &metrics, err);
    names_release(&r.ids);
    free(r.response);
    return rc;
}

static int read_runs(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    return document_each(t, l, add_run, err);
}

const struct trace_reader reader_openhands = {
    .name = "openhands",
    .what = "JSON Lines of OpenHands: metrics with token_usages, response_latencies; history",
    .detect = detect,
    .read = read_runs,
};
