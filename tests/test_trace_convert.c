/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces written in other forms: the text, what is told to be lost, and what comes back. Runs in
 * the root of the repository, for the samples.
 */
#include "traces/convert.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/order.h"

struct written {
    int rc;
    char *path, *text, *warnings;
    struct err err;
};

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = xcalloc(1 << 20, 1);
    if (f == NULL)
        return text;
    cr_assert(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

static struct written convert(const struct trace *t, const char *ending)
{
    static int count;
    struct written w = {
        .path = xasprintf("/tmp/test_convert_%ld_%d%s", (long)getpid(), count++, ending),
        .err = ERR_NONE};
    size_t n;
    FILE *warnings = open_memstream(&w.warnings, &n);
    const struct trace_form *form = trace_form_of(w.path, &w.err);
    cr_assert_not_null(form);
    w.rc = trace_convert(t, form, w.path, warnings, &w.err);
    fclose(warnings);
    w.text = read_text(w.path);
    return w;
}

static void release(struct written *w)
{
    unlink(w->path);
    free(w->path);
    free(w->text);
    free(w->warnings);
}

static struct trace begin(int block_tokens)
{
    return (struct trace){
        .path = xstrdup("made.up"), .format = "mooncake", .block_tokens = block_tokens};
}

static void add(struct trace *t, int64_t at_ps, int64_t input_tokens, int hashes, uint64_t first)
{
    struct err err = ERR_NONE;
    cr_assert_eq(trace_add(t, at_ps, input_tokens, 5, (long)t->n + 1, &err), 1, "%s", err.text);
    for (int i = 0; i < hashes; i++)
        trace_add_hash(t, first + (uint64_t)i);
}

static void order(struct trace *t)
{
    struct err err = ERR_NONE;
    cr_assert_eq(order_requests(t, &err), 0, "%s", err.text);
}

Test(trace_convert, csv_has_every_digit_and_tells_what_it_drops)
{
    struct trace t = begin(512);
    add(&t, 7, 600, 2, 1);
    add(&t, 7 + 1, 600, 0, 1);
    add(&t, 7 + 12 * PS_PER_S + 500 * PS_PER_MS, 9, 0, 1);
    trace_set_session(&t, "a");
    order(&t);
    struct written w = convert(&t, ".csv");
    cr_assert_eq(w.rc, 0, "%s", w.err.text);
    cr_expect_str_eq(w.text, "arrived_at_s,input_tokens,output_tokens\n"
                             "0,600,5\n0.000000000001,600,5\n12.5,9,5\n");
    cr_expect_str_eq(w.warnings,
                     "wavetank: made.up: a .csv has no place for block hashes: left out\n"
                     "wavetank: made.up: a .csv has no place for sessions: left out\n");
    release(&w);
    trace_release(&t);
}

static struct trace waiting(void)
{
    struct err err = ERR_NONE;
    struct trace t = begin(0);
    add(&t, 0, 10, 0, 0);
    trace_set_session(&t, "a \"b\"\xc3\xa9");
    cr_assert_eq(trace_add_waiting(&t, 1500 * PS_PER_US, 20, 6, 2, &err), 1);
    trace_wait_for(&t, 0);
    trace_set_session(&t, "a \"b\"\xc3\xa9");
    add(&t, 5 * PS_PER_S, 30, 0, 0);
    cr_assert_eq(trace_add_waiting(&t, 0, 40, 7, 4, &err), 1);
    trace_wait_for(&t, 1);
    trace_wait_for(&t, 2);
    order(&t);
    return t;
}

Test(trace_convert, csv_refuses_what_waits_and_leaves_no_file)
{
    struct trace t = waiting();
    struct written w = convert(&t, ".csv");
    cr_expect_eq(w.rc, -1);
    cr_expect_str_eq(w.err.text, "made.up:2: waits for another request, which a .csv cannot say; "
                                 "write a .wtt or a .jsonl");
    cr_expect(access(w.path, F_OK) != 0);
    release(&w);
    trace_release(&t);
}

Test(trace_convert, jsonl_names_rows_that_wait)
{
    struct trace t = waiting();
    struct written w = convert(&t, ".jsonl");
    cr_assert_eq(w.rc, 0, "%s", w.err.text);
    cr_expect_str_eq(
        w.text,
        "{\"request_id\": \"0\", \"session_id\": \"a \\\"b\\\"\xc3\xa9\", \"timestamp\": 0, "
        "\"input_length\": 10, \"output_length\": 5}\n"
        "{\"request_id\": \"1\", \"session_id\": \"a \\\"b\\\"\xc3\xa9\", \"wait_for\": [\"0\"], "
        "\"delay\": 1.5, \"input_length\": 20, \"output_length\": 6}\n"
        "{\"request_id\": \"2\", \"timestamp\": 5000, \"input_length\": 30, \"output_length\": "
        "5}\n"
        "{\"request_id\": \"3\", \"wait_for\": [\"1\", \"2\"], \"delay\": 0, \"input_length\": 40, "
        "\"output_length\": 7}\n",
        "%s", w.text);
    cr_expect_str_eq(w.warnings, "");
    release(&w);
    trace_release(&t);
}

/* 123456789.000000001 ms has 18 digits, a double about 16. */
Test(trace_convert, jsonl_times_that_a_double_would_round_are_text)
{
    struct trace t = begin(0), again;
    struct err err = ERR_NONE;
    add(&t, 0, 10, 0, 0);
    add(&t, 1, 10, 0, 0);
    add(&t, 123456 * PS_PER_S + 1, 10, 0, 0);
    add(&t, 123456789 * PS_PER_MS, 10, 0, 0);
    add(&t, 123456789 * PS_PER_MS + 1, 10, 0, 0);
    order(&t);
    struct written w = convert(&t, ".jsonl");
    cr_expect_not_null(strstr(w.text, "\"timestamp\": 0.000000001, "));
    cr_expect_not_null(strstr(w.text, "\"timestamp\": \"123456000.000000001\", "));
    cr_expect_not_null(strstr(w.text, "\"timestamp\": 123456789, "));
    cr_expect_not_null(strstr(w.text, "\"timestamp\": \"123456789.000000001\", "));
    cr_assert_eq(trace_load(&again, w.path, &(struct trace_reading){0}, &err), 0, "%s", err.text);
    for (size_t i = 0; i < t.n; i++)
        cr_expect_eq(again.request[i].arrival_ps, t.request[i].arrival_ps);
    trace_release(&again);
    release(&w);
    trace_release(&t);
}

/* 64-token blocks: 8 make one of 512, whose hash is that of the eighth. */
Test(trace_convert, jsonl_joins_small_blocks)
{
    struct trace t = begin(64);
    add(&t, 0, 1100, 18, 100); /* 17 blocks and 12 tokens: to the end */
    add(&t, 1, 1100, 17, 200); /* the last one has no hash */
    add(&t, 2, 1024, 16, 300);
    add(&t, 3, 60, 1, 400);
    add(&t, 4, 60, 0, 0);
    add(&t, 5, 1100, 9, 500); /* half of the prompt's */
    order(&t);
    struct written w = convert(&t, ".jsonl");
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [107, 115, 117]}\n"), "%s", w.text);
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [207, 215]}\n"));
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [307, 315]}\n"));
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [400]}\n"));
    cr_expect_null(strstr(w.text, "50"), "%s", w.text);
    cr_expect_str_eq(
        w.warnings,
        "wavetank: made.up: hashes of blocks of 64 tokens become those of blocks of 512\n"
        "wavetank: made.up: requests whose hashes make no blocks of 512 tokens, left out: 1\n");
    release(&w);
    trace_release(&t);
}

Test(trace_convert, jsonl_numbers_hashes_anew_that_json_readers_refuse)
{
    struct trace t = begin(512);
    add(&t, 0, 1024, 2, UINT64_MAX - 1);
    add(&t, 1, 1024, 2, 5);
    add(&t, 2, 512, 1, UINT64_MAX - 1);
    order(&t);
    struct written w = convert(&t, ".jsonl");
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [2, 3]}\n"), "%s", w.text);
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [0, 1]}\n"));
    cr_expect_not_null(strstr(w.text, "\"hash_ids\": [2]}\n"));
    cr_expect_not_null(strstr(w.warnings, "above 2^63 - 1: all are numbered anew"));
    release(&w);
    trace_release(&t);
}

Test(trace_convert, jsonl_refuses_names_that_are_no_text)
{
    struct trace t = begin(0);
    add(&t, 0, 10, 0, 0);
    trace_set_session(&t, "\xff\xfe");
    order(&t);
    struct written w = convert(&t, ".jsonl");
    cr_expect_eq(w.rc, -1);
    cr_expect_not_null(strstr(w.err.text, "made.up: the name of session 0 is no UTF-8"));
    cr_expect(access(w.path, F_OK) != 0);
    release(&w);
    trace_release(&t);
}

Test(trace_convert, the_name_says_the_form)
{
    struct err err = ERR_NONE;
    cr_expect_str_eq(trace_form_of("a.b/c.csv", &err)->ending, ".csv");
    cr_expect_null(trace_form_of("a.csv/c", &err));
    cr_expect_str_eq(err.text, "a.csv/c: a trace is written as .wtt, .jsonl or .csv; end the name "
                               "in one of these");
    cr_expect_null(trace_form_of("-", &err));
}

static void expect_same_times_and_lengths(const struct trace *a, const struct trace *b)
{
    cr_assert_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        cr_assert_eq(a->request[i].arrival_ps, b->request[i].arrival_ps);
        cr_assert_eq(a->request[i].input_tokens, b->request[i].input_tokens);
        cr_assert_eq(a->request[i].output_tokens, b->request[i].output_tokens);
    }
}

Test(trace_convert, samples_come_back_from_every_form)
{
    static const char *const samples[] = {"traces/samples/mooncake_conversation.jsonl.gz",
                                          "traces/samples/azure_2023_code.csv"};
    static const char *const endings[] = {".jsonl", ".csv", ".wtt"};
    for (size_t i = 0; i < 6; i++) {
        struct trace t, again;
        struct err err = ERR_NONE;
        cr_assert_eq(trace_load(&t, samples[i / 3], &(struct trace_reading){0}, &err), 0);
        struct written w = convert(&t, endings[i % 3]);
        cr_assert_eq(trace_load(&again, w.path, &(struct trace_reading){0}, &err), 0, "%s",
                     err.text);
        expect_same_times_and_lengths(&t, &again);
        if (i % 3 != 1) {
            cr_assert_eq(t.n_hashes, again.n_hashes);
            for (size_t k = 0; k < t.n_hashes; k++)
                cr_assert_eq(t.hash[k], again.hash[k]);
        }
        release(&w);
        trace_release(&t);
        trace_release(&again);
    }
}
