/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of timelines: reads a file in the Trace Event Format an event at a time, asserts of
 * each that it has the keys that its phase asks for, that the slices of a thread nest, that what
 * begins beside them ends and that arrows have two ends, and adds up what the events say.
 */
#ifndef TESTS_TIMELINE_READER_H
#define TESTS_TIMELINE_READER_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

enum { TIDS_MAX = 128, DEPTH_MAX = 8 };

struct timeline_totals {
    int64_t events[128]; /* by phase */
    int64_t spans, steps, busy_ns, idle_gaps;
    int64_t switches, exposed_ps, exposed_ns;
    int64_t part_ns;
    int64_t requests, completed, queue_ns, prefill_ns, decode_ns, transfers;
};

struct timeline_reader {
    struct timeline_totals sum;
    int64_t end_ns[TIDS_MAX][DEPTH_MAX], at_ns[TIDS_MAX]; /* open slices; the last one's start */
    int depth[TIDS_MAX];
    json_t *begun[DEPTH_MAX]; /* of one id: ids follow each other in the file */
    int n_begun;
    int64_t async_ns;
    int64_t arrow; /* id of the one whose end is missing, or -1 */
    int64_t arrow_ns;
};

static inline const char *event_text(json_t *e, const char *key)
{
    const char *text = json_string_value(json_object_get(e, key));
    cr_assert(text != NULL && text[0] != '\0', "%s: no text", key);
    return text;
}

static inline int64_t event_int(json_t *e, const char *key)
{
    cr_assert(json_is_integer(json_object_get(e, key)), "%s: no whole number", key);
    return json_integer_value(json_object_get(e, key));
}

/* Microseconds with three decimals, as nanoseconds. */
static inline int64_t event_ns(json_t *e, const char *key)
{
    json_t *value = json_object_get(e, key);
    cr_assert(json_is_number(value) && json_number_value(value) >= 0, "%s: no time", key);
    double ns = json_number_value(value) * 1000;
    cr_assert_float_eq(ns, round(ns), 1e-2);
    return llround(ns);
}

static inline json_t *event_args(json_t *e)
{
    json_t *args = json_object_get(e, "args");
    cr_assert(json_is_object(args) && json_object_size(args) > 0, "no args");
    return args;
}

static inline void read_name(json_t *e)
{
    const char *name = event_text(e, "name");
    bool of_thread = strncmp(name, "thread_", 7) == 0;
    cr_assert(of_thread || strncmp(name, "process_", 8) == 0, "%s", name);
    cr_assert_eq(of_thread, json_object_get(e, "tid") != NULL);
    if (strstr(name, "_name") != NULL)
        event_text(event_args(e), "name");
    else
        event_int(event_args(e), "sort_index");
}

/* The slice is within the one that is open at its start, or none is. */
static inline void read_nesting(struct timeline_reader *r, int64_t tid, int64_t start_ns,
                                int64_t end_ns)
{
    int *depth = &r->depth[tid];
    cr_assert_geq(start_ns, r->at_ns[tid]);
    while (*depth > 0 && r->end_ns[tid][*depth - 1] <= start_ns)
        --*depth;
    cr_assert(*depth == 0 || end_ns <= r->end_ns[tid][*depth - 1],
              "thread %d at %lld ns: slices overlap", (int)tid, (long long)start_ns);
    cr_assert_lt(*depth, DEPTH_MAX);
    r->end_ns[tid][(*depth)++] = end_ns;
    r->at_ns[tid] = start_ns;
}

/* Threads are numbered as timeline_steps.c does it. */
static inline void read_slice(struct timeline_reader *r, json_t *e)
{
    int64_t tid = event_int(e, "tid"), start_ns = event_ns(e, "ts");
    int64_t dur_ns = event_ns(e, "dur"), end_ns = start_ns + dur_ns;
    struct timeline_totals *sum = &r->sum;
    cr_assert(tid > 0 && tid < TIDS_MAX);
    bool follows = r->depth[tid] > 0 && r->end_ns[tid][r->depth[tid] - 1] == start_ns;
    cr_assert_eq(tid / 10, event_int(e, "pid"));
    read_nesting(r, tid, start_ns, end_ns);
    if (tid % 10 == 0) {
        sum->spans++;
        json_t *n = json_object_get(event_args(e), "steps");
        sum->steps += n != NULL ? json_integer_value(n) : 1;
        sum->busy_ns += dur_ns;
        sum->idle_gaps += !follows;
    } else if (tid % 10 == 1) {
        cr_assert_str_eq(event_text(e, "name"), "exposed");
        sum->exposed_ns += dur_ns;
    } else {
        sum->part_ns += dur_ns;
    }
}

static inline void read_instant(struct timeline_reader *r, json_t *e)
{
    json_t *args = event_args(e);
    cr_assert_str_eq(event_text(e, "s"), "t");
    cr_assert_eq(event_int(e, "tid") % 10, 1);
    event_ns(e, "ts");
    event_text(args, "mechanism");
    cr_assert_str_neq(event_text(args, "from"), event_text(args, "to"));
    r->sum.switches++;
    r->sum.exposed_ps += event_int(args, "exposed_ps");
}

static inline void read_counter(json_t *e)
{
    const char *key;
    json_t *value;
    event_ns(e, "ts");
    json_object_foreach (event_args(e), key, value)
        cr_assert(json_is_number(value), "%s: no number", key);
}

static inline void read_arrow(struct timeline_reader *r, json_t *e, bool begins)
{
    int64_t id = event_int(e, "id"), at_ns = event_ns(e, "ts");
    event_int(e, "tid");
    event_text(e, "cat");
    cr_assert_eq(r->arrow, begins ? -1 : id);
    if (!begins)
        cr_assert_str_eq(event_text(e, "bp"), "e");
    cr_assert(begins || at_ns >= r->arrow_ns);
    r->arrow = begins ? id : -1;
    r->arrow_ns = at_ns;
}

static inline void read_request(struct timeline_totals *sum, json_t *e)
{
    json_t *args = event_args(e);
    sum->requests++;
    sum->completed += strcmp(event_text(args, "state"), "completed") == 0;
}

static inline void read_begin(struct timeline_reader *r, json_t *e)
{
    int64_t at_ns = event_ns(e, "ts");
    event_text(e, "cat");
    cr_assert_lt(r->n_begun, DEPTH_MAX);
    if (r->n_begun == 0)
        read_request(&r->sum, e);
    else
        cr_assert_str_eq(event_text(e, "id"), event_text(r->begun[0], "id"));
    cr_assert(r->n_begun == 0 || at_ns >= r->async_ns);
    r->async_ns = at_ns;
    r->begun[r->n_begun++] = json_incref(e);
}

static inline void read_end(struct timeline_reader *r, json_t *e)
{
    struct timeline_totals *sum = &r->sum;
    cr_assert_gt(r->n_begun, 0);
    json_t *begin = r->begun[--r->n_begun];
    const char *name = event_text(e, "name");
    int64_t at_ns = event_ns(e, "ts"), dur_ns = at_ns - event_ns(begin, "ts");
    cr_assert_str_eq(name, event_text(begin, "name"));
    cr_assert_str_eq(event_text(e, "id"), event_text(begin, "id"));
    cr_assert_str_eq(event_text(e, "cat"), event_text(begin, "cat"));
    cr_assert_geq(at_ns, r->async_ns);
    r->async_ns = at_ns;
    sum->queue_ns += strcmp(name, "queue") == 0 ? dur_ns : 0;
    sum->prefill_ns += strcmp(name, "prefill") == 0 ? dur_ns : 0;
    sum->decode_ns += strcmp(name, "decode") == 0 ? dur_ns : 0;
    sum->transfers += strcmp(name, "KV transfer") == 0;
    json_decref(begin);
}

static inline void read_event(struct timeline_reader *r, json_t *e)
{
    const char *phase = event_text(e, "ph");
    cr_assert_eq(strlen(phase), 1);
    cr_assert_gt(event_int(e, "pid"), 0);
    event_text(e, "name");
    r->sum.events[(int)phase[0]]++;
    switch (phase[0]) {
    case 'M': read_name(e); break;
    case 'X': read_slice(r, e); break;
    case 'i': read_instant(r, e); break;
    case 'C': read_counter(e); break;
    case 's':
    case 'f': read_arrow(r, e, phase[0] == 's'); break;
    case 'b': read_begin(r, e); break;
    case 'e': read_end(r, e); break;
    default: cr_assert(false, "phase %s", phase);
    }
}

/* The object around the events, without them. */
static inline void read_head(FILE *f)
{
    char head[1024];
    cr_assert_not_null(fgets(head, sizeof head, f));
    size_t len = strlen(head);
    cr_assert_str_eq(head + len - strlen("\"traceEvents\":[\n"), "\"traceEvents\":[\n");
    snprintf(head + len - 1, 3, "]}");
    json_t *object = json_loads(head, 0, NULL);
    cr_assert_not_null(object);
    cr_assert_str_eq(event_text(object, "displayTimeUnit"), "ms");
    event_text(json_object_get(object, "otherData"), "wavetank");
    json_decref(object);
}

/* All of the file at `path` is a timeline: what its events add up to. */
static inline struct timeline_totals timeline_read(const char *path)
{
    struct timeline_reader r = {.arrow = -1};
    FILE *f = fopen(path, "r");
    json_error_t fault;
    int next = ',';
    cr_assert_not_null(f);
    read_head(f);
    while (next == ',') {
        json_t *e = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &fault);
        cr_assert_not_null(e, "%s: %s", path, fault.text);
        read_event(&r, e);
        json_decref(e);
        next = fgetc(f);
    }
    char tail[8] = "";
    cr_expect_eq(next, '\n');
    cr_expect_eq(fread(tail, 1, sizeof tail - 1, f), 3);
    cr_expect_str_eq(tail, "]}\n");
    fclose(f);
    cr_expect_eq(r.n_begun, 0);
    cr_expect_eq(r.arrow, -1);
    return r.sum;
}

#endif
