/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenTelemetry spans of calls to language models (GenAI conventions), one document a file or a
 * line. Spans do not say what they waited for: of one trace, a span waits for those whose output is
 * among the messages that it sends, or else for all that had ended when it began.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/document.h"
#include "traces/field.h"

enum { BLOCK_TOKENS = 64, WAITS_MAX = 256, STATUS_ERROR = 2, NO_TEXT = -1 };

/* A span that is a request. */
struct span {
    const char *trace_id; /* borrowed from the document, like the attributes */
    json_t *attributes;
    size_t at; /* in the document */
    __int128 start_ps, end_ps;
    int64_t input_tokens, output_tokens;
    int32_t text;                 /* its output among the group's, or NO_TEXT */
    size_t wait_at, n_wait;       /* what it waits for, in spans.wait */
    size_t waiter;                /* the last that was found to wait for it: its `at` plus one */
    uint64_t prompt;              /* digest of the messages that it sends */
    const struct span *shared;    /* whose prompt its own begins with, or NULL */
    struct span *before, *behind; /* in the ring of the latest */
    size_t request;               /* number of addition */
};

/* Those of one document. */
struct spans {
    struct span *span;
    size_t n, cap;
    struct span **wait;
    size_t n_wait, cap_wait;
};

/* Those of one trace. */
struct group {
    struct spans *all;
    struct span *span; /* by start */
    size_t n;
    struct names texts;
    struct span **by_text; /* those with a text; by text, then end */
    size_t n_texts;
    struct span **by_end;
    size_t n_ended;
    struct span latest; /* ends a ring of what ended and nothing that ended waited for, by end */
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && reader_has_key(h, "spans") &&
           reader_has_key(h, "span_id");
}

static int get_time(struct jobj *o, const char *key, __int128 *ps, struct err *err)
{
    const char *text = NULL;
    if (jobj_str(o, key, true, &text, err) < 0)
        return -1;
    const char *fault = field_calendar_ps(text, ps);
    return fault != NULL ? jobj_fail(o, key, err, "\"%.60s\" %s", text, fault) : 0;
}

static bool has_failed(const struct jobj *o)
{
    json_t *code = json_object_get(json_object_get(o->obj, "status"), "code");
    const char *name = json_string_value(code);
    return name != NULL ? strstr(name, "ERROR") != NULL : json_integer_value(code) == STATUS_ERROR;
}

/* Runs of agents and of tools are spans too. */
static bool is_request(const struct jobj *attributes)
{
    static const char *const calls[] = {"chat", "text_completion", "generate_content"};
    json_t *operation = json_object_get(attributes->obj, "gen_ai.operation.name");
    if (!json_is_string(operation))
        return document_has(attributes, "gen_ai.request.model");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(json_string_value(operation), calls[i]) == 0)
            return true;
    return false;
}

/* 1: has token counts, 0: has none, -1: error. */
static int read_tokens(struct jobj *attributes, struct span *s, struct err *err)
{
    int in = document_tokens(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
                             &s->input_tokens, err);
    int out = document_tokens(attributes, "gen_ai.usage.output_tokens",
                              "gen_ai.usage.completion_tokens", &s->output_tokens, err);
    return in < 0 || out < 0 ? -1 : in > 0 && out > 0;
}

/* Why it is left out, SKIP_COUNT when it is not, or -1. */
static int find_skip(struct span *s, const struct jobj *o, struct jobj *attributes, struct err *err)
{
    int counted = read_tokens(attributes, s, err);
    if (counted < 0)
        return -1;
    if (!is_request(attributes))
        return SKIP_OTHER;
    if (has_failed(o))
        return SKIP_FAILED;
    if (counted == 0)
        return SKIP_NO_LENGTH;
    if (s->output_tokens == 0)
        return SKIP_NO_OUTPUT;
    return s->input_tokens == 0 ? SKIP_NO_INPUT : SKIP_COUNT;
}

static int read_span(struct trace *t, struct spans *all, struct jobj *o, size_t i, struct err *err)
{
    struct jobj attributes;
    struct span s = {.trace_id = "", .at = i, .text = NO_TEXT};
    if (jobj_str((struct jobj *)o->up, "trace_id", false, &s.trace_id, err) < 0 ||
        jobj_str(o, "trace_id", false, &s.trace_id, err) < 0 ||
        get_time(o, "start_time", &s.start_ps, err) < 0 ||
        get_time(o, "end_time", &s.end_ps, err) < 0)
        return -1;
    if (s.end_ps < s.start_ps)
        return jobj_fail(o, "end_time", err, "is before the span's start");
    int there = jobj_open(&attributes, o, "attributes", false, err);
    int skip = there > 0 ? find_skip(&s, o, &attributes, err) : there < 0 ? -1 : SKIP_OTHER;
    if (skip < 0)
        return -1;
    if (skip != SKIP_COUNT) {
        t->skipped[skip]++;
        return 0;
    }
    s.attributes = attributes.obj;
    all->span = xgrow(all->span, &all->cap, all->n + 1, sizeof *all->span);
    all->span[all->n++] = s;
    return 0;
}

/* Messages are JSON, most often as text in JSON. A new reference, or NULL where there are none. */
static json_t *get_messages(const struct span *s, const char *key)
{
    json_t *value = json_object_get(s->attributes, key);
    const char *text = json_string_value(value);
    return text != NULL ? json_loads(text, 0, NULL) : json_incref(value);
}

/* NULL when it has none. */
static const char *text_of(json_t *message)
{
    json_t *text = json_object_get(message, "content");
    if (text == NULL) {
        json_t *part = json_array_get(json_object_get(message, "parts"), 0);
        text = json_object_get(part, "content");
    }
    return json_string_length(text) > 0 ? json_string_value(text) : NULL;
}

static void name_output(struct group *g, struct span *s)
{
    json_t *messages = get_messages(s, "gen_ai.output.messages");
    const char *text = json_string_value(json_object_get(s->attributes, "gen_ai.output.text"));
    if (text == NULL)
        text = text_of(json_array_get(messages, 0));
    if (text != NULL && text[0] != '\0')
        s->text = names_number(&g->texts, text);
    json_decref(messages);
}

static int compare_times(__int128 a_ps, size_t a, __int128 b_ps, size_t b)
{
    if (a_ps != b_ps)
        return a_ps < b_ps ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_trace_and_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int order = strcmp(x->trace_id, y->trace_id);
    return order != 0 ? order : compare_times(x->start_ps, x->at, y->start_ps, y->at);
}

static int by_start(const void *a, const void *b)
{
    const struct span *x = *(struct span *const *)a, *y = *(struct span *const *)b;
    return compare_times(x->start_ps, x->at, y->start_ps, y->at);
}

static int by_end(const void *a, const void *b)
{
    const struct span *x = *(struct span *const *)a, *y = *(struct span *const *)b;
    return compare_times(x->end_ps, x->at, y->end_ps, y->at);
}

static int by_text(const void *a, const void *b)
{
    const struct span *x = *(struct span *const *)a, *y = *(struct span *const *)b;
    return x->text != y->text ? (x->text < y->text ? -1 : 1) : by_end(a, b);
}

/* One that begins at the end of another may have waited for it. */
static bool ended_before(const struct span *s, const struct span *other)
{
    return compare_times(s->end_ps, s->at, other->start_ps, other->at) < 0;
}

/* The last to end of those that put out this text and ended before s began, or NULL. */
static struct span *find_author(const struct group *g, int32_t text, const struct span *s)
{
    size_t low = 0, high = g->n_texts; /* those before low are in order before what is sought */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct span *m = g->by_text[middle];
        if (m->text < text || (m->text == text && ended_before(m, s)))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && g->by_text[low - 1]->text == text ? g->by_text[low - 1] : NULL;
}

static void wait_for(struct group *g, struct span *s, struct span *other)
{
    struct spans *all = g->all;
    if (other->waiter == s->at + 1)
        return;
    other->waiter = s->at + 1;
    all->wait = xgrow(all->wait, &all->cap_wait, all->n_wait + 1, sizeof(struct span *));
    all->wait[all->n_wait++] = other;
    s->n_wait++;
}

static void wait_for_authors(struct group *g, struct span *s)
{
    json_t *messages = get_messages(s, "gen_ai.input.messages"), *message;
    size_t i;
    s->prompt = DOCUMENT_DIGEST;
    json_array_foreach (messages, i, message) {
        const char *text = text_of(message);
        int32_t number = text != NULL ? names_find(&g->texts, text) : NO_TEXT;
        struct span *author = number != NO_TEXT ? find_author(g, number, s) : NULL;
        if (author != NULL)
            wait_for(g, s, author);
        if (author != NULL && author->prompt == s->prompt)
            s->shared = author;
        document_digest(message, &s->prompt);
    }
    json_decref(messages);
}

static void wait_for_latest(struct group *g, struct span *s)
{
    for (struct span *other = g->latest.before; other != &g->latest && s->n_wait < WAITS_MAX;
         other = other->before)
        wait_for(g, s, other);
}

static void drop(struct span *s)
{
    s->before->behind = s->behind;
    s->behind->before = s->before;
    s->before = s->behind = s; /* others may have waited for it as well */
}

/* What it waited for needs no waiting for any more. */
static void end(struct group *g, struct span *s)
{
    for (size_t i = 0; i < s->n_wait; i++)
        drop(g->all->wait[s->wait_at + i]);
    s->before = g->latest.before;
    s->behind = &g->latest;
    s->before->behind = s->behind->before = s;
}

static void find_waits(struct group *g, struct span *s)
{
    for (; g->n_ended < g->n && ended_before(g->by_end[g->n_ended], s); g->n_ended++)
        end(g, g->by_end[g->n_ended]);
    s->wait_at = g->all->n_wait;
    wait_for_authors(g, s);
    if (s->n_wait == 0)
        wait_for_latest(g, s);
}

static void resolve(struct group *g)
{
    g->by_text = xcalloc(g->n, sizeof(struct span *));
    g->by_end = xcalloc(g->n, sizeof(struct span *));
    g->latest.before = g->latest.behind = &g->latest;
    for (size_t i = 0; i < g->n; i++) {
        struct span *s = &g->span[i];
        g->by_end[i] = s;
        name_output(g, s);
        if (s->text != NO_TEXT)
            g->by_text[g->n_texts++] = s;
    }
    qsort(g->by_text, g->n_texts, sizeof(struct span *), by_text);
    qsort(g->by_end, g->n, sizeof(struct span *), by_end);
    for (size_t i = 0; i < g->n; i++)
        find_waits(g, &g->span[i]);
    free(g->by_text);
    free(g->by_end);
    names_release(&g->texts);
}

static void resolve_all(struct spans *all)
{
    qsort(all->span, all->n, sizeof *all->span, by_trace_and_start);
    for (size_t i = 0, n; i < all->n; i += n) {
        const char *trace_id = all->span[i].trace_id;
        for (n = 1; i + n < all->n && strcmp(all->span[i + n].trace_id, trace_id) == 0;)
            n++;
        struct group g = {.all = all, .span = &all->span[i], .n = n};
        resolve(&g);
    }
}

static int add_span(struct trace *t, const struct spans *all, struct span *s, long line,
                    struct err *err)
{
    struct span **wait = s->n_wait > 0 ? all->wait + s->wait_at : NULL;
    __int128 ended_ps = 0;
    for (size_t i = 0; i < s->n_wait; i++)
        ended_ps = wait[i]->end_ps > ended_ps ? wait[i]->end_ps : ended_ps;
    s->request = t->n;
    int added = s->n_wait == 0
                    ? trace_add(t, s->start_ps, s->input_tokens, s->output_tokens, line, err)
                    : trace_add_waiting(t, s->start_ps - ended_ps, s->input_tokens,
                                        s->output_tokens, line, err);
    if (added < 0)
        return -1;
    for (size_t i = 0; i < s->n_wait; i++)
        trace_wait_for(t, wait[i]->request);
    trace_set_session(t, s->trace_id);
    if (s->prompt != DOCUMENT_DIGEST) {
        t->block_tokens = BLOCK_TOKENS;
        trace_share_prompt(t, s->shared != NULL ? s->shared->request : 0,
                           s->shared != NULL ? s->shared->input_tokens : 0);
    }
    return 0;
}

/* By start, so that what is waited for is added first. */
static int add_spans(struct trace *t, struct spans *all, long line, struct err *err)
{
    int rc = 0;
    struct span **sorted = xcalloc(all->n, sizeof(struct span *));
    resolve_all(all);
    for (size_t i = 0; i < all->n; i++)
        sorted[i] = &all->span[i];
    qsort(sorted, all->n, sizeof(struct span *), by_start);
    for (size_t i = 0; rc == 0 && i < all->n; i++)
        rc = add_span(t, all, sorted[i], line, err);
    free(sorted);
    return rc;
}

static int add_document(struct trace *t, const struct document *d, struct err *err)
{
    struct spans all = {0};
    struct jobj root, o;
    json_t *spans = NULL;
    int rc = 0;
    if (jobj_root(&root, d->place, d->root, err) < 0 ||
        jobj_array(&root, "spans", true, &spans, err) < 0)
        return -1;
    for (size_t i = 0; rc == 0 && i < json_array_size(spans); i++) {
        rc = jobj_open_at(&o, &root, "spans", i, err);
        if (rc == 0)
            rc = read_span(t, &all, &o, i, err);
    }
    if (rc == 0 && all.n > 0)
        rc = add_spans(t, &all, d->line, err);
    free(all.span);
    free(all.wait);
    return rc;
}

static int read_documents(struct trace *t, struct lines *l, const struct trace_reading *reading,
                          struct err *err)
{
    (void)reading;
    t->calendar = true;
    return document_each(t, l, add_document, err);
}

const struct trace_reader reader_otel = {
    .name = "otel",
    .what = "JSON, OpenTelemetry spans: start_time, end_time, gen_ai.usage.input_tokens, ...",
    .detect = detect,
    .read = read_documents,
};
