/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces in CSV besides those of test_trace.c. Runs in the root of the repository, for the samples.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "traces/trace.h"

static const struct trace_reading plainly;

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Load a trace X.csv from text with another file beside it, or NULL; both are gone afterwards. */
static int load_two(struct trace *t, const char *text, const char *ending, const char *other,
                    struct err *err)
{
    char folder[] = "/tmp/test_trace_XXXXXX", path[64], beside[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x_calls.csv", folder);
    snprintf(beside, sizeof beside, "%s/x_%s", folder, ending != NULL ? ending : "");
    write_file(path, text);
    if (other != NULL)
        write_file(beside, other);
    int rc = trace_load(t, path, &plainly, err);
    unlink(path);
    unlink(beside);
    rmdir(folder);
    return rc;
}

static struct trace loaded(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(load_two(&t, text, NULL, NULL, &err), 0, "%s", err.text);
    return t;
}

static struct trace loaded_with(const char *text, const char *ending, const char *other)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(load_two(&t, text, ending, other, &err), 0, "%s", err.text);
    return t;
}

/* A request as it should be: waits for the one at `after`, or comes at its own time (-1). */
struct expected {
    long line;
    int64_t at_us, delay_us, input, output;
    int after;
    int shared; /* first blocks that are those of the prompt `of` */
    int of;
};

static int count_shared(const struct trace *t, const struct trace_request *a,
                        const struct trace_request *b)
{
    uint32_t n = 0;
    while (n < a->n_hashes && n < b->n_hashes && t->hash[a->hash_at + n] == t->hash[b->hash_at + n])
        n++;
    return (int)n;
}

static void expect(const struct trace *t, const struct expected *e, size_t n)
{
    cr_assert_eq(t->n, n, "%zu", t->n);
    for (size_t i = 0; i < n; i++, e++) {
        const struct trace_request *r = &t->request[i];
        cr_expect_eq(r->line, e->line, "%zu: line %ld", i, r->line);
        cr_expect_eq(r->arrival_ps, e->at_us * PS_PER_US, "%zu: %lld", i, (long long)r->arrival_ps);
        cr_expect_eq(r->delay_ps, e->delay_us * PS_PER_US, "%zu: %lld", i, (long long)r->delay_ps);
        cr_expect(r->input_tokens == e->input && r->output_tokens == e->output, "%zu", i);
        cr_assert_eq(r->n_after, e->after >= 0, "%zu", i);
        cr_expect(e->after < 0 || t->after[r->after_at] == (uint32_t)e->after, "%zu", i);
        cr_expect_eq(count_shared(t, r, &t->request[e->of]),
                     e->of == (int)i ? (int)r->n_hashes : e->shared, "%zu: %d", i,
                     count_shared(t, r, &t->request[e->of]));
    }
}

#define EXPECT(t, ...)                                                                             \
    expect(&(t), (const struct expected[]){__VA_ARGS__},                                           \
           sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

static const char *session_name(const struct trace *t, size_t i)
{
    int32_t session = t->request[i].session;
    return session == TRACE_NO_SESSION ? "" : t->session.name[session];
}

Test(trace_csv, burstgpt_takes_both_headers_and_leaves_failures_out)
{
    struct trace a = loaded("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                            "5,ChatGPT,472,18,490,Conversation log\n"
                            "45,GPT-4,1087,0,1087,API log\n"
                            "45,GPT-4,0,0,0,API log\n"
                            "46,GPT-4,0,3,3,API log\n"
                            "118,GPT-4,417,276,693,Conversation log\n");
    struct trace b =
        loaded("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,"
               "Total tokens,Log Type\n"
               "19440110.0,u-1,43,GPT-4,906,446,1352,Conversation log\n"
               "19440161.0,,2,ChatGPT,36,29,65,API log\n"
               "19440192.5,u-1,8,GPT-4,1779,123,1902,Conversation log\n");
    cr_expect_str_eq(a.format, "burstgpt");
    EXPECT(a, {2, 0, 0, 472, 18, -1, 0, 0}, {6, 113000000, 0, 417, 276, -1, 0, 0});
    cr_expect_eq(a.skipped[SKIP_FAILED], 2);
    cr_expect_eq(a.skipped[SKIP_NO_INPUT], 1);
    cr_expect_eq(a.session.n, 0);
    EXPECT(b, {2, 0, 0, 906, 446, -1, 0, 0}, {3, 51000000, 0, 36, 29, -1, 0, 0},
           {4, 82500000, 0, 1779, 123, -1, 0, 0});
    cr_expect_str_eq(session_name(&b, 0), "u-1");
    cr_expect_str_eq(session_name(&b, 1), "");
    cr_expect_str_eq(session_name(&b, 2), "u-1");
    trace_release(&a);
    trace_release(&b);
}

Test(trace_csv, azure_of_2025_has_a_column_in_between)
{
    struct trace t = loaded("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
                            "2024-10-10 00:00:00.5+00:00,3,100,7\n"
                            "2024-10-10 00:00:01+00:00,0,200,8\n");
    cr_expect_str_eq(t.format, "azure");
    EXPECT(t, {2, 0, 0, 100, 7, -1, 0, 0}, {3, 500000, 0, 200, 8, -1, 0, 0});
    trace_release(&t);
}

Test(trace_csv, splitwise_keeps_requests_to_a_language_model)
{
    struct trace t = loaded("request_id,request_type,application_id,arrival_timestamp,batch_size,"
                            "prompt_size,token_size\n"
                            "0,2,0,1,1,4096,32\n1,0,0,2,1,,\n2,2,0,3.5,1,2048,8\n");
    cr_expect_str_eq(t.format, "splitwise");
    EXPECT(t, {2, 0, 0, 4096, 32, -1, 0, 0}, {4, 2500000, 0, 2048, 8, -1, 0, 0});
    cr_expect_eq(t.skipped[SKIP_OTHER], 1);
    trace_release(&t);
}

Test(trace_csv, sarathi_counts_seconds_of_one_date)
{
    struct trace t = loaded("Date,Time,PromptTokenCount,CompletionTokenCount\n"
                            "2023-08-21,10.25,100,7\n2023-08-21,11,200,8\n");
    cr_expect_str_eq(t.format, "sarathi");
    EXPECT(t, {2, 0, 0, 100, 7, -1, 0, 0}, {3, 750000, 0, 200, 8, -1, 0, 0});
    trace_release(&t);
}

#define LENGTHS "traces/samples/vidur_arxiv_lengths.csv"

/* 199 exponential gaps of mean 0.25 s: 49.75 s, standard deviation 3.53 s. */
Test(trace_csv, lengths_alone_arrive_at_the_rate_that_is_asked_for)
{
    struct trace a, b, c;
    struct err err = ERR_NONE;
    struct trace_reading reading = {.seed = 1, .arrivals_per_s = 4};
    cr_assert_eq(trace_load(&a, LENGTHS, &reading, &err), 0, "%s", err.text);
    cr_assert_eq(trace_load(&b, LENGTHS, &reading, &err), 0, "%s", err.text);
    reading.seed = 2;
    cr_assert_eq(trace_load(&c, LENGTHS, &reading, &err), 0, "%s", err.text);
    cr_expect_str_eq(a.format, "lengths");
    cr_expect_eq(a.n, 200);
    cr_expect_eq(a.noted[NOTE_DRAWN], 200);
    cr_expect_eq(a.out_of_order, 0);
    cr_expect(a.last_ps > 36 * PS_PER_S && a.last_ps < 64 * PS_PER_S, "%g s", ps_to_s(a.last_ps));
    cr_expect_eq(a.last_ps, b.last_ps, "same seed");
    cr_expect_neq(a.last_ps, c.last_ps, "another seed");
    trace_release(&a);
    trace_release(&b);
    trace_release(&c);
    reading.arrivals_per_s = 1e-300;
    cr_expect_eq(trace_load(&a, LENGTHS, &reading, &err), -1);
    cr_expect_not_null(strstr(err.text, ":3: arrives 100 days or more"), "%s", err.text);
}

/* Rounds of 512 + 64, 704 + 64 and 896 tokens: 8 and 11 whole blocks are known. The second session
 * has 400 tokens, whose seventh block is not whole. */
Test(trace_csv, tracelab_rounds_wait_for_the_one_before)
{
    struct trace t = loaded("session_id,arrival_time,round_idx,prefix_len,input_len,output_len,"
                            "tool_wait_after_ms\n"
                            "0,100,0,0,512,64,100\n"
                            "1,300,0,0,400,48,80\n"
                            "0,100,1,576,128,64,100.5\n"
                            "1,300,1,448,100,48,0\n"
                            "0,100,2,768,128,64,0\n");
    cr_expect_str_eq(t.format, "tracelab-csv");
    EXPECT(t, {2, 0, 0, 512, 64, -1, 0, 0}, {4, 100000, 100000, 704, 64, 0, 8, 0},
           {3, 200000, 0, 400, 48, -1, 0, 0}, {6, 200500, 100500, 896, 64, 1, 11, 1},
           {5, 280000, 80000, 548, 48, 2, 6, 2});
    cr_expect_str_eq(session_name(&t, 4), "1");
    cr_expect_eq(t.noted[NOTE_NEW_PREFIX] + t.noted[NOTE_SHRUNK] + t.out_of_order, 0);
    trace_release(&t);
}

/* The second round has no answer: its 20 ms are waited besides the first one's 10. Session 8 begins
 * with such a one. */
Test(trace_csv, tracelab_takes_the_other_order_and_goes_past_rounds_that_are_skipped)
{
    struct trace t = loaded("id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,"
                            "prefix_len\n"
                            "7,640,5,0,0,10,0\n7,64,0,0,1,20,640\n7,64,5,0,3,0,128\n"
                            "8,640,0,0,0,40,0\n8,64,5,0,1,0,640\n");
    EXPECT(t, {2, 0, 0, 640, 5, -1, 0, 0}, {4, 30000, 30000, 192, 5, 0, 2, 0},
           {6, 40000, 0, 704, 5, -1, 0, 0});
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 2);
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    cr_expect_eq(t.noted[NOTE_NEW_PREFIX], 1, "640 tokens of nowhere");
    trace_release(&t);
}

#define BLIS                                                                                       \
    "request_id,session_id,round_index,prefix_group,prefix_length,input_tokens,output_tokens,"     \
    "server_input_tokens,arrival_time_us,last_chunk_time_us,status,error_message,think_time_us,"   \
    "input_tokens_reset\n"

Test(trace_csv, blis_rows_of_a_group_begin_with_its_prefix)
{
    struct trace t = loaded(BLIS "0,,0,sys,128,10,5,140,1000,0,ok,,,\n"
                                 "1,,0,sys,200,100,5,0,2000,0,ok,,,\n"
                                 "2,,0,,0,10,5,12,3000,0,ok,,,\n"
                                 "3,,0,,0,10,5,0,4000,0,timeout,\"a, \"\"b\"\"\nc\",,\n"
                                 "4,,0,,0,10,5,0,5000,0,,,,\n");
    cr_expect_str_eq(t.format, "blis");
    EXPECT(t, {2, 0, 0, 138, 5, -1, 0, 0}, {3, 1000, 0, 300, 5, -1, 2, 0},
           {4, 2000, 0, 12, 5, -1, 0, 0}, {7, 4000, 0, 10, 5, -1, 0, 0});
    cr_expect_eq(t.skipped[SKIP_FAILED], 1);
    trace_release(&t);
}

/* A think time of zero is one; without one, what lies behind the last chunk counts; without that
 * the arrival does. */
Test(trace_csv, blis_rounds_wait_as_long_as_the_file_knows)
{
    struct trace t = loaded(BLIS "4,s,0,,0,100,5,0,5000,6000,ok,,,\n"
                                 "5,s,1,,0,200,5,0,9000,9500,ok,,0,\n"
                                 "6,s,2,,0,300,5,0,12000,12500,ok,,,\n"
                                 "7,s,3,,0,300,5,0,12100,0,ok,,,\n"
                                 "8,s,4,,0,300,5,0,25000,0,ok,,,\n");
    EXPECT(t, {2, 0, 0, 100, 5, -1, 0, 0}, {3, 0, 0, 200, 5, 0, 0, 0},
           {4, 2500, 2500, 300, 5, 1, 0, 0}, {5, 2500, 0, 300, 5, 2, 0, 0},
           {6, 20000, 0, 300, 5, -1, 0, 0});
    cr_expect_eq(t.noted[NOTE_WENT_BACK], 1);
    cr_expect_str_eq(session_name(&t, 4), "s");
    trace_release(&t);
}

/* Contexts of 100 + 50, then 30 more; then a failure with 20 more and 10 of an answer; then 5 more:
 * 100 + 50 + 30 + 40 + 20 + 10 + 5. Then a new context of 64. */
Test(trace_csv, blis_contexts_accumulate_when_the_header_beside_says_so)
{
    static const char rows[] = BLIS "0,s,0,,0,100,50,0,0,0,ok,,,\n"
                                    "1,s,1,,0,30,40,0,0,0,ok,,1000,\n"
                                    "2,s,2,,0,20,10,0,0,0,error,,2000,\n"
                                    "3,s,3,,0,5,40,0,0,0,ok,,4000,\n"
                                    "4,s,4,,0,0,40,0,0,0,ok,,0,64\n";
    struct trace grown = loaded_with(rows, "calls.yaml",
                                     "trace_version: 3\ntime_unit: microseconds\n"
                                     "session_context_growth: \"accumulate\" # deltas\n");
    struct trace whole = loaded_with(rows, "calls.yaml", "time_unit: microseconds\n");
    EXPECT(grown, {2, 0, 0, 100, 50, -1, 0, 0}, {3, 1000, 1000, 180, 40, 0, 1, 0},
           {5, 7000, 6000, 255, 40, 1, 2, 1}, {6, 7000, 0, 64, 40, 2, 0, 2});
    cr_expect_eq(grown.skipped[SKIP_FAILED], 1);
    cr_expect_eq(grown.noted[NOTE_SHRUNK], 1);
    EXPECT(whole, {2, 0, 0, 100, 50, -1, 0, 0}, {3, 1000, 1000, 30, 40, 0, 0, 0},
           {5, 7000, 6000, 5, 40, 1, 0, 0});
    trace_release(&grown);
    trace_release(&whole);
}

#define CALLS                                                                                      \
    "instance,call,model,prompt_tokens,completion_tokens,cache_read_tokens,cache_write_tokens,"    \
    "latency_s\na,0,m,130,7,0,0,3\nb,0,m,64,7,0,0,3\na,1,m,200,7,130,0,2\na,2,m,300,7,400,0,2\n"

Test(trace_csv, openhands_calls_wait_for_the_action_between)
{
    struct trace t = loaded_with(CALLS, "tools.csv",
                                 "instance,action,observation,latency_s,observation_chars\n"
                                 "a,recall,recall,9,1\nb,recall,recall,9,1\na,run,run,0.5,1\n");
    cr_expect_str_eq(t.format, "openhands-csv");
    EXPECT(t, {2, 0, 0, 130, 7, -1, 0, 0}, {3, 0, 0, 64, 7, -1, 0, 0},
           {4, 500000, 500000, 200, 7, 0, 2, 0}, {5, 500000, 0, 300, 7, 2, 3, 2});
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1);
    cr_expect_eq(t.noted[NOTE_NO_START], 2);
    cr_expect_eq(t.noted[NOTE_CACHED_CUT], 1);
    trace_release(&t);

    t = loaded(CALLS);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 2, "no file of actions");
    cr_expect_eq(t.last_ps, 0);
    trace_release(&t);
}

#define WEKA "trace,agent,i,t_s,type,in,out,blk,prefix_blk,uniq_new_blk,api_s,ttft_s,think_s\n"

/* The third request has no answer, the fourth waits its own 4 s and the third's 8. */
Test(trace_csv, weka_agents_have_chains_of_their_own)
{
    struct trace t = loaded(WEKA "0001,,0,0,n,640,9,10,0,10,7.3,,0\n"
                                 "0001,,1,19,n,700,9,10,10,0,9,,12.5\n"
                                 "0001,,2,36,n,900,0,14,10,4,8,,8\n"
                                 "0001,,3,62,n,300,9,4,2,2,21,,4\n"
                                 "0001,s0,0,0,n,640,9,10,0,0,2,,0\n"
                                 "0001,s0,1,6,s,700,9,10,10,0,,,\n");
    cr_expect_str_eq(t.format, "weka-csv");
    EXPECT(t, {2, 0, 0, 640, 9, -1, 0, 0}, {6, 0, 0, 640, 9, -1, 0, 0}, {7, 0, 0, 700, 9, 1, 10, 1},
           {3, 12500000, 12500000, 700, 9, 0, 10, 0}, {5, 24500000, 12000000, 300, 9, 3, 2, 3});
    cr_expect_eq(t.session.n, 1, "sub-agents are of their session");
    cr_expect_str_eq(session_name(&t, 1), "0001");
    cr_expect_eq(t.noted[NOTE_NO_TIME], 2, "the sub-agent's start, and a think time");
    cr_expect_eq(t.noted[NOTE_NO_START], 1);
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    trace_release(&t);
}

#define TRACELAB "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"

static const struct {
    const char *text, *message;
} malformed[] = {
    {"Timestamp,Request tokens,Response tokens\n1,5,x\n",
     ":2: column \"Response tokens\": \"x\" is not a number"},
    {"Timestamp,Request tokens\n", ":1: no column \"Response tokens\""},
    {"Timestamp,Request tokens,Response tokens\n1,5,0\n", ": holds no request"},
    {"request_type,arrival_timestamp,batch_size,prompt_size,token_size\n2,1,4,5,6\n",
     ":2: batch_size is not 1"},
    {"Date,Time,PromptTokenCount,CompletionTokenCount\nMon,1,5,6\nTue,1,5,6\n",
     ":3: has date \"Tue\" after \"Mon\""},
    {"Date,Time,PromptTokenCount,CompletionTokenCount\n,1,5,6\n", ":2: column \"Date\" is empty"},
    {TRACELAB "0,1,0,5,6,0\n0,1,0,5,6,0\n",
     ":3: turn 1 of session \"0\" comes after its turn 1; sort the file"},
    {TRACELAB "0,0,1099511627776,1,6,0\n", ":2: prefix_len and input_len are above 2^40 tokens"},
    {TRACELAB "0,0,0,5,6,9e9\n0,1,0,5,6,0\n", ":3: waits 100 days or more"},
    {TRACELAB "0,0,0,5,6,0\n0,1,0,1099511627776,6,0\n",
     ":3: the prompts up to here have more than 536870912 blocks of 64 tokens"},
    {TRACELAB "0,0,0,5,6,\n", ":2: column \"tool_wait_after_ms\" is empty"},
    {TRACELAB ",0,0,5,6,0\n", ":2: column \"session_id\" is empty"},
    {"arrival_time_us,input_tokens,output_tokens,prefix_group,prefix_length\n"
     "0,5,5,g,1099511627776\n",
     ":2: has a prompt of more than 2^40 tokens"},
    {"arrival_time_us,input_tokens,output_tokens,think_time_us\n0,5,5,-1\n",
     ":2: column \"think_time_us\": \"-1\" is negative"},
    {WEKA "1,,0,0,n,100,9,1,2,1,1,,0\n", ":2: prefix_blk is more blocks of 64 tokens than \"in\""},
    {WEKA "1,,0,0,n,1e3,nan,1,2,1,1,,0\n", ":2: column \"out\": \"nan\" is not a number"},
};

Test(trace_csv, refuses_malformed_files_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t;
        struct err err = ERR_NONE;
        cr_expect_eq(load_two(&t, malformed[i].text, NULL, NULL, &err), -1, "%s",
                     malformed[i].text);
        cr_expect(err.kind == ERR_INPUT && strstr(err.text, malformed[i].message) != NULL,
                  "expected \"%s\", got \"%s\"", malformed[i].message, err.text);
    }
}

Test(trace_csv, names_the_file_beside_when_the_fault_is_there)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_expect_eq(load_two(&t, BLIS, "calls.yaml", "a: 1\ntime_unit: ms\n", &err), -1);
    cr_expect_not_null(strstr(err.text, "x_calls.yaml:2: time_unit \"ms\""), "%s", err.text);
    err = ERR_NONE;
    cr_expect_eq(load_two(&t, CALLS, "tools.csv", "instance,latency_s\na,x\n", &err), -1);
    cr_expect_not_null(strstr(err.text, "x_tools.csv:2: column \"latency_s\""), "%s", err.text);
}

Test(trace_csv, check_doubts_times_that_are_made_up)
{
    char text[1024] = "Timestamp,Request tokens,Response tokens\n", *found = NULL;
    size_t size;
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text), "%d,%d,5\n", i, i + 1);
    struct trace t = loaded(text);
    FILE *out = open_memstream(&found, &size);
    trace_print_check(&t, out);
    fclose(out);
    cr_expect_not_null(strstr(found, ": arrivals are all exactly 1 s apart"), "%s", found);
    free(found);
    trace_release(&t);
}

/* A public file and what it holds. */
struct oracle {
    const char *path;
    size_t rows, sessions;
    int64_t input, output, shrunk, no_time;
};

static void expect_oracle(const struct oracle *o)
{
    struct trace t;
    struct err err = ERR_NONE;
    int64_t input = 0, output = 0;
    cr_assert_eq(trace_load(&t, o->path, &(struct trace_reading){.arrivals_per_s = 1}, &err), 0,
                 "%s", err.text);
    for (size_t i = 0; i < t.n; i++) {
        input += t.request[i].input_tokens;
        output += t.request[i].output_tokens;
    }
    cr_expect_eq(t.n, o->rows, "%s: %zu", o->path, t.n);
    cr_expect_eq(t.session.n, o->sessions, "%s: %zu", o->path, t.session.n);
    cr_expect_eq(input, o->input, "%s: %lld", o->path, (long long)input);
    cr_expect_eq(output, o->output, "%s: %lld", o->path, (long long)output);
    cr_expect_eq(t.noted[NOTE_SHRUNK], o->shrunk, "%s", o->path);
    cr_expect_eq(t.noted[NOTE_NO_TIME], o->no_time, "%s", o->path);
    trace_release(&t);
}

Test(trace_csv, samples_hold_what_their_readme_says)
{
    static const struct oracle samples[] = {
        {"traces/samples/burstgpt_1.csv", 3, 0, 1976, 524, 0, 0},
        {"traces/samples/burstgpt_3.csv", 4, 4, 3656, 776, 0, 0},
        {"traces/samples/splitwise_sim.csv", 3, 0, 8192, 56, 0, 0},
        {LENGTHS, 200, 0, 500486, 55440, 0, 0},
        {"traces/samples/tracelab_multi_session.csv", 8, 3, 5308, 448, 0, 0},
        {"traces/samples/tracelab_session.csv", 11, 1, 535277, 24798, 0, 0},
        {"traces/samples/openhands_4595_calls.csv", 23, 1, 565158, 2558, 0, 0},
        {"traces/samples/weka_0277.csv", 53, 1, 2576410, 31862, 0, 4},
        {"traces/samples/weka_sessions.csv.gz", 1991, 35, 259574988, 974332, 18, 2},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        expect_oracle(&samples[i]);
}

/* The whole public files, for those who keep them beside the repository. */
Test(trace_csv, whole_public_traces_match_their_oracles)
{
    static const struct oracle whole[] = {
        {"../shared/traces/vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", 28257,
         0, 73131321, 8234948, 0, 0},
        {"../shared/traces/etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv", 33768, 0, 36036681,
         54461924, 0, 0},
        {"../shared/traces/etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv", 30731, 0,
         71911571, 13481988, 0, 0},
        {"../shared/traces/tracelab/multi_session_large.csv", 303, 48, 1150397, 58678, 0, 0},
        {"../shared/traces/agents/openhands_multi_swe_bench_calls.csv", 105, 3, 1913342, 13341, 0,
         0},
        {"../shared/traces/weka/requests_710_traces_no_hash_ids.csv", 46191, 692, 5461037136,
         20339420, 384, 179},
    };
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        expect_oracle(&whole[i]);
}
