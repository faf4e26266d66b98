/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectories of SWE-agent and mini-swe-agent, a session each. Only the latter's say, and not all
 * of them, how many tokens each call had; the others are counted as having none.
 */
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/document.h"

static bool detect(const struct trace_head *h)
{
    char first = h->line[strspn(h->line, " \t")];
    if (first == '[')
        return reader_has_key(h, "role") && reader_has_key(h, "content");
    return first == '{' && ((reader_has_key(h, "trajectory") && reader_has_key(h, "action")) ||
                            reader_has_key(h, "mini_version") || reader_has_key(h, "model_stats") ||
                            reader_has_key(h, "trajectory_format"));
}

#define DELAY_MAX_S 8.6e6

/* Messages one after another, some of them answers of the model. */
struct talk {
    struct trace *t;
    const struct document *document;
    size_t before;             /* number of addition of the call before, if any */
    int64_t before_tokens;     /* its prompt; 0: there is none */
    double answered_s, said_s; /* when it and the message before came; below 0: unknown */
};

/* 1: has token counts, 0: has none, -1: error. */
static int read_usage(struct jobj *message, int64_t *input, int64_t *output, struct err *err)
{
    struct jobj extra, response, usage;
    if (!document_has(message, "extra"))
        return 0;
    if (jobj_open(&extra, message, "extra", true, err) < 0)
        return -1;
    if (!document_has(&extra, "response"))
        return 0;
    if (jobj_open(&response, &extra, "response", true, err) < 0)
        return -1;
    if (!document_has(&response, "usage"))
        return 0;
    if (jobj_open(&usage, &response, "usage", true, err) < 0)
        return -1;
    int in = document_tokens(&usage, "prompt_tokens", "input_tokens", input, err);
    int out = document_tokens(&usage, "completion_tokens", "output_tokens", output, err);
    return in < 0 || out < 0 ? -1 : in > 0 && out > 0;
}

/* A call begins when the message before it came. */
static int find_delay(const struct talk *k, struct jobj *message, int64_t *ps, struct err *err)
{
    double delay_s = k->said_s - k->answered_s;
    if (k->answered_s < 0 || k->said_s < 0) {
        k->t->noted[NOTE_NO_TIME]++;
        return 0;
    }
    if (delay_s > DELAY_MAX_S)
        return jobj_fail(message, "extra", err, "comes 100 days or more after the answer before");
    *ps = delay_s > 0 ? ps_from_s(delay_s) : 0;
    return 0;
}

static int add_call(struct talk *k, struct jobj *message, const int64_t tokens[2], struct err *err)
{
    struct trace *t = k->t;
    long line = k->document->line;
    bool first = k->before_tokens == 0;
    int64_t delay_ps = 0;
    if (!first && find_delay(k, message, &delay_ps, err) < 0)
        return -1;
    int added = first ? trace_add(t, 0, tokens[0], tokens[1], line, err)
                      : trace_add_waiting(t, delay_ps, tokens[0], tokens[1], line, err);
    if (added <= 0)
        return added;
    if (!first)
        trace_wait_for(t, k->before);
    trace_set_session(t, k->document->place);
    t->noted[NOTE_SHRUNK] += tokens[0] < k->before_tokens;
    k->before = t->n - 1;
    k->before_tokens = tokens[0];
    return added;
}

/* In seconds since 1970, or below 0. */
static double time_of(const struct jobj *message)
{
    json_t *extra = json_object_get(message->obj, "extra");
    json_t *value = json_object_get(extra, "timestamp");
    return json_is_number(value) ? json_number_value(value) : -1;
}

static int add_message(struct talk *k, struct jobj *message, struct err *err)
{
    const char *role = NULL;
    int64_t tokens[2] = {0};
    double at_s = time_of(message);
    if (jobj_str(message, "role", false, &role, err) < 0)
        return -1;
    if (role != NULL && strcmp(role, "assistant") == 0) {
        int counted = read_usage(message, &tokens[0], &tokens[1], err);
        int added = counted > 0 ? add_call(k, message, tokens, err) : counted;
        if (added < 0)
            return -1;
        k->t->skipped[SKIP_NO_LENGTH] += counted == 0;
        k->answered_s = added > 0 ? at_s : k->answered_s;
    }
    k->said_s = at_s;
    return 0;
}

static int add_messages(struct trace *t, const struct document *d, struct jobj *o, struct err *err)
{
    struct talk k = {.t = t, .document = d, .answered_s = -1, .said_s = -1};
    json_t *messages = NULL;
    if (jobj_array(o, "messages", true, &messages, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        struct jobj message;
        if (jobj_open_at(&message, o, "messages", i, err) < 0 || add_message(&k, &message, err) < 0)
            return -1;
    }
    return 0;
}

static int add_document(struct trace *t, const struct document *d, struct err *err)
{
    struct jobj o;
    json_t *steps = NULL;
    /* a bare array reads as the object that newer files are */
    json_t *root =
        json_is_array(d->root) ? json_pack("{s:O}", "messages", d->root) : json_incref(d->root);
    int rc = jobj_root(&o, d->place, root, err);
    if (rc == 0 && document_has(&o, "trajectory")) {
        rc = jobj_array(&o, "trajectory", true, &steps, err);
        t->skipped[SKIP_NO_LENGTH] += (int64_t)json_array_size(steps);
    } else if (rc == 0) {
        rc = add_messages(t, d, &o, err);
    }
    json_decref(root);
    return rc;
}

static int read_documents(struct trace *t, struct lines *l, const struct trace_reading *reading,
                          struct err *err)
{
    (void)reading;
    return document_each(t, l, add_document, err);
}

const struct trace_reader reader_sweagent = {
    .name = "swe-agent",
    .what = "JSON of mini-swe-agent: messages with extra.response.usage",
    .detect = detect,
    .read = read_documents,
};
