/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces: the four readers, selections, and the counts of public files. Runs in the root of the
 * repository, for the samples.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

#define PS_PER_100_NS (100 * PS_PER_NS)

static struct trace loaded(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_text(&t, text, &err) == 0, "%s", err.text);
    return t;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static int64_t sum_input(const struct trace *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->request[i].input_tokens;
    return sum;
}

static int64_t sum_output(const struct trace *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->request[i].output_tokens;
    return sum;
}

Test(trace, mooncake_takes_integers_reals_and_strings_as_time)
{
    struct trace t = loaded(
        "{\"timestamp\": 10, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [7, 8]}\n"
        "{\"timestamp\": 10.25, \"input_length\": 1, \"output_length\": 6, \"hash_ids\": [9]}\n"
        "{\"timestamp\": \"27482\", \"input_length\": 2, \"output_length\": 7, \"hash_ids\": [], "
        "\"other\": null}\n");
    cr_assert_str_eq(t.format, "mooncake");
    cr_assert_eq(t.n, 3);
    cr_expect(t.origin_ps == 10 * PS_PER_MS);
    cr_expect_eq(t.request[0].arrival_ps, 0);
    cr_expect_eq(t.request[1].arrival_ps, 250000000);
    cr_expect_eq(t.request[2].arrival_ps, 27472 * PS_PER_MS);
    cr_expect_eq(t.last_ps, 27472 * PS_PER_MS);
    cr_expect_eq(t.request[1].input_tokens, 1);
    cr_expect_eq(t.request[2].output_tokens, 7);
    cr_expect_eq(t.block_tokens, 512);
    cr_assert_eq(t.n_hashes, 3);
    cr_expect_eq(t.request[0].n_hashes, 2);
    cr_expect_eq(t.request[1].hash_at, 2);
    cr_expect_eq(t.hash[2], 9);
    trace_release(&t);
}

Test(trace, mooncake_keeps_hashes_with_their_rows_when_it_skips_and_sorts)
{
    struct trace t =
        loaded("{\"timestamp\":5,\"input_length\":600,\"output_length\":1,\"hash_ids\":[1,2]}\n"
               "{\"timestamp\":6,\"input_length\":600,\"output_length\":0,\"hash_ids\":[3,4]}\n"
               "{\"timestamp\":7,\"input_length\":0,\"output_length\":1,\"hash_ids\":[]}\n"
               "{\"timestamp\":1,\"input_length\":600,\"output_length\":2,\"hash_ids\":"
               "[4294967297,9223372036854775807]}\n");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 1);
    cr_expect_eq(t.skipped[SKIP_NO_INPUT], 1);
    cr_expect_eq(t.out_of_order, 1);
    cr_expect_eq(t.request[0].output_tokens, 2);
    cr_expect_eq(t.request[0].line, 4);
    cr_expect_eq(t.hash[t.request[0].hash_at], 4294967297);
    cr_expect_eq(t.hash[t.request[0].hash_at + 1], INT64_MAX);
    cr_expect_eq(t.hash[t.request[1].hash_at + 1], 2);
    trace_release(&t);
}

Test(trace, mooncake_takes_one_hash_per_started_or_per_whole_block)
{
    struct trace t =
        loaded("{\"timestamp\":0,\"input_length\":1025,\"output_length\":1,\"hash_ids\":[1,2,3]}\n"
               "{\"timestamp\":0,\"input_length\":1025,\"output_length\":1,\"hash_ids\":[1,2]}\n"
               "{\"timestamp\":0,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[1,2]}\n"
               "{\"timestamp\":0,\"input_length\":1025,\"output_length\":1}\n");
    cr_expect_eq(t.n, 4);
    cr_expect_eq(t.n_hashes, 7);
    trace_release(&t);
}

Test(trace, azure_takes_both_years_crlf_and_a_last_line_without_end)
{
    struct trace t = loaded("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                            "2024-05-12 00:00:00.0000001,4808,10\r\n"
                            "\r\n"
                            "2024-05-12 00:00:00+00:00,3180,8\r\n"
                            "2024-05-12 00:00:01.009930+00:00,110,27");
    cr_assert_str_eq(t.format, "azure");
    cr_assert_eq(t.n, 3);
    cr_expect(t.calendar && t.origin_ps == 1715472000 * (__int128)PS_PER_S);
    cr_expect_eq(t.out_of_order, 1, "the second row is earlier than the first");
    cr_expect_eq(t.request[0].input_tokens, 3180);
    cr_expect_eq(t.request[1].arrival_ps, 100000);
    cr_expect_eq(t.request[2].arrival_ps, 1009930000000);
    trace_release(&t);
}

Test(trace, csv_finds_columns_in_any_order_among_others)
{
    struct trace t =
        loaded("\xEF\xBB\xBF\n"
               "NumImages, \"ContextTokens\" ,timestamp,GeneratedTokens,\"a \"\"b\"\"\"\n"
               "0,12,2024-05-12 00:00:00,3,\"x, y\"\n"
               "0, 13 ,\"2024-05-12 00:00:02\",4.0,\n");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.request[0].input_tokens, 12);
    cr_expect_eq(t.request[1].input_tokens, 13);
    cr_expect_eq(t.request[1].output_tokens, 4);
    cr_expect_eq(t.request[1].arrival_ps, 2 * PS_PER_S);
    trace_release(&t);
}

Test(trace, vidur_and_plain_count_seconds)
{
    struct trace v = loaded("arrived_at,num_prefill_tokens,num_decode_tokens\n"
                            "0.0,4808,10\n0.052,3180,8\n");
    struct trace p = loaded("output_tokens,arrival_s,input_tokens\n"
                            "7,19440110.0,5\n8,19440161.000000000001,6\n");
    cr_expect_str_eq(v.format, "vidur");
    cr_expect_eq(v.request[1].arrival_ps, 52000000000);
    cr_expect_str_eq(p.format, "plain");
    cr_expect(p.origin_ps == 19440110 * (__int128)PS_PER_S, "beyond what int64 holds");
    cr_expect_eq(p.request[1].arrival_ps, 51 * PS_PER_S + 1);
    cr_expect_eq(p.request[1].input_tokens, 6);
    cr_expect_eq(p.request[1].output_tokens, 8);
    trace_release(&v);
    trace_release(&p);
}

Test(trace, equal_times_stay_in_file_order)
{
    char text[8192] = "arrived_at_s,input_tokens,output_tokens\n";
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), "%d,%d,1\n", 10 - i % 3, i + 1);
    struct trace t = loaded(text);
    cr_assert_eq(t.n, 100);
    cr_expect_eq(t.out_of_order, 66, "two of three rows go back by one second");
    for (size_t i = 1; i < t.n; i++) {
        const struct trace_request *a = &t.request[i - 1], *b = &t.request[i];
        cr_assert(a->arrival_ps < b->arrival_ps ||
                  (a->arrival_ps == b->arrival_ps && a->line < b->line));
    }
    cr_expect_eq(t.request[0].input_tokens, 3);
    cr_expect_eq(t.request[1].input_tokens, 6);
    trace_release(&t);
}

#define ROW   "{\"timestamp\":0,\"input_length\":5,\"output_length\":5}\n"
#define PLAIN "arrived_at_s,input_tokens,output_tokens\n"
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"

static const struct {
    const char *text, *message;
} malformed[] = {
    {"", ": is empty, expected a trace"},
    {"\n \n\r\n", ": is empty, expected a trace"},
    {"hello\n", ":1: no trace format begins like this; see \"wavetank list formats\""},
    {"0.5,100,10\n", ":1: no trace format begins like this"},
    {"[1,2]\n", ":1: no trace format begins like this"},
    {PLAIN, ": holds no request with input and output tokens"},
    {PLAIN "1,0,5\n1,5,0\n", ": holds no request with input and output tokens"},
    {PLAIN "1,2\n", ":2: has 2 fields where the header has 3"},
    {PLAIN "1,2,3,4\n", ":2: has 4 fields where the header has 3"},
    {PLAIN "\n1,2,3\n\n,2,3\n", ":5: column \"arrived_at_s\" is empty"},
    {PLAIN "nan,2,3\n", ":2: column \"arrived_at_s\": \"nan\" is not a number"},
    {PLAIN "1,inf,3\n", ":2: column \"input_tokens\": \"inf\" is not a number"},
    {PLAIN "1,2,-3\n", ":2: column \"output_tokens\": \"-3\" is negative"},
    {PLAIN "-1,2,3\n", ":2: column \"arrived_at_s\": \"-1\" is negative"},
    {PLAIN "1,2.5,3\n", ":2: column \"input_tokens\": \"2.5\" is not a whole number"},
    {PLAIN "1,1099511627777,3\n", ":2: 1099511627777 input tokens; at most 2^40 make sense"},
    {PLAIN "1e30,2,3\n", ":2: column \"arrived_at_s\": \"1e30\" is too large"},
    {PLAIN "0,2,3\n8640000,2,3\n", ":3: arrives 100 days or more from another request"},
    {PLAIN "8640000,2,3\n0,2,3\n", ":3: arrives 100 days or more from another request"},
    {PLAIN "1,\"2,3\n", ":2: a quoted field does not end with a quote and a comma"},
    {PLAIN "1,\"2\"x,3\n", ":2: a quoted field does not end with a quote and a comma"},
    {"input_tokens,output_tokens,t\n1,2,3\n",
     ": has lengths, but no column of arrivals such as \"arrived_at\"; to draw them give "
     "--arrivals, in requests a second"},
    {"num_prefill_tokens,num_decode_tokens\n1,2\n", ": has lengths, but no column of arrivals"},
    {"ContextTokens,GeneratedTokens\n1,2\n",
     ":1: no column \"TIMESTAMP\" (the columns here: ContextTokens, GeneratedTokens)"},
    {"arrived_at_s,input_tokens\n1,2\n",
     ":1: no column \"output_tokens\" (the columns here: arrived_at_s, input_tokens)"},
    {"arrived_at_s,input_tokens,Prompt_Tokens,output_tokens\n",
     ":1: columns \"input_tokens\" and \"Prompt_Tokens\" mean the same; drop one"},
    {AZURE "2023-02-30 00:00:00,1,2\n",
     ":2: column \"TIMESTAMP\": \"2023-02-30 00:00:00\" is a date or time that does not exist"},
    {AZURE "12.5,1,2\n", ":2: column \"TIMESTAMP\": \"12.5\" is not a time such as 2023-11-16"},
    {ROW "{\"timestamp\":0,\"input_length\":5,\"out", ":2: column "},
    {ROW "{\"timestamp\":0,\"timestamp\":1,\"input_length\":5,\"output_length\":5}\n",
     ":2: column 26: duplicate object key"},
    {ROW "[0,5,5]\n", ":2: expected a JSON object"},
    {ROW "7\n", ":2: column "},
    {ROW "{\"input_length\":5,\"output_length\":5}\n", ":2: no key \"timestamp\""},
    {ROW "{\"timestamp\":0,\"input_length\":5}\n", ":2: no key \"output_length\""},
    {ROW "{\"timestamp\":-1,\"input_length\":5,\"output_length\":5}\n",
     ":2: \"timestamp\": \"-1\" is negative"},
    {ROW "{\"timestamp\":NaN,\"input_length\":5,\"output_length\":5}\n", ":2: column "},
    {ROW "{\"timestamp\":\"nan\",\"input_length\":5,\"output_length\":5}\n",
     ":2: \"timestamp\": \"nan\" is not a number"},
    {ROW "{\"timestamp\":1e300,\"input_length\":5,\"output_length\":5}\n",
     ":2: \"timestamp\": \"1.0000000000000001e+300\" is too large"},
    {ROW "{\"timestamp\":null,\"input_length\":5,\"output_length\":5}\n",
     ":2: no key \"timestamp\""},
    {ROW "{\"timestamp\":[],\"input_length\":5,\"output_length\":5}\n",
     ":2: \"timestamp\": expected a number of milliseconds"},
    {ROW "{\"timestamp\":0,\"input_length\":\"5\",\"output_length\":5}\n",
     ":2: \"input_length\": expected a whole number of tokens"},
    {ROW "{\"timestamp\":0,\"input_length\":5,\"output_length\":-5}\n",
     ":2: output tokens are negative (-5)"},
    {ROW "{\"timestamp\":0,\"input_length\":5,\"output_length\":5.5}\n",
     ":2: \"output_length\": expected a whole number of tokens"},
    {ROW "{\"timestamp\":0,\"input_length\":655,\"output_length\":5,\"hash_ids\":[1,2,3]}\n",
     ":2: has 3 hash_ids, but its input_length of 655 makes 2 blocks of 512 tokens"},
    {ROW "{\"timestamp\":0,\"input_length\":655,\"output_length\":0,\"hash_ids\":[1,2,3]}\n",
     ":2: has 3 hash_ids"},
    {ROW "{\"timestamp\":0,\"input_length\":5,\"output_length\":5,\"hash_ids\":[-1]}\n",
     ":2: \"hash_ids\"[0]: expected a whole number >= 0"},
    {ROW "{\"timestamp\":0,\"input_length\":5,\"output_length\":5,\"hash_ids\":{\"a\":1}}\n",
     ":2: \"hash_ids\": expected an array"},
};

Test(trace, refuses_malformed_files_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect(load_text(&t, malformed[i].text, &err) == -1, "read: %s", malformed[i].text);
        cr_expect(err.set && has(err.text, malformed[i].message), "expected \"%s\", got \"%s\"",
                  malformed[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && t.n == 77, "written on failure");
    }
}

Test(trace, a_span_just_below_100_days_is_read)
{
    struct trace t = loaded(PLAIN "8639999.999999999999,2,3\n0,2,3\n");
    cr_expect_eq(t.last_ps, TRACE_SPAN_MAX_PS - 1);
    trace_release(&t);
}

/* n requests, one a second, with 1, 2, ... input tokens */
static struct trace every_second(int n)
{
    char text[65536] = PLAIN;
    char *end = text + strlen(text);
    for (int i = 0; i < n; i++)
        end += sprintf(end, "%d,%d,1\n", i, i + 1);
    return loaded(text);
}

static void select_from(struct trace *t, struct trace_select s, uint64_t seed)
{
    struct err err = ERR_NONE;
    cr_assert(trace_select(t, &s, seed, &err) == 0, "%s", err.text);
}

Test(trace, selection_of_all_changes_nothing)
{
    struct trace t = every_second(10), same = every_second(10);
    select_from(&t, TRACE_SELECT_ALL, 0);
    cr_assert_eq(t.n, same.n);
    cr_expect_arr_eq(t.request, same.request, t.n * sizeof *t.request);
    trace_release(&t);
    trace_release(&same);
}

Test(trace, from_to_and_limit_keep_a_window_and_rebase_it)
{
    struct trace t = every_second(10);
    struct trace_select s = TRACE_SELECT_ALL;
    s.from_ps = 3 * PS_PER_S;
    s.to_ps = 8 * PS_PER_S;
    s.limit = 4;
    select_from(&t, s, 0);
    cr_assert_eq(t.n, 4);
    cr_expect_eq(t.request[0].input_tokens, 4, "from is inside");
    cr_expect_eq(t.request[0].arrival_ps, 0);
    cr_expect_eq(t.request[3].input_tokens, 7);
    cr_expect_eq(t.last_ps, 3 * PS_PER_S);
    cr_expect(t.origin_ps == 3 * PS_PER_S);
    trace_release(&t);

    t = every_second(10);
    s.limit = 0;
    select_from(&t, s, 0);
    cr_expect_eq(t.n, 5, "to is outside");
    trace_release(&t);
}

Test(trace, sample_is_a_share_drawn_by_seed)
{
    struct trace a = every_second(2000), b = every_second(2000), c = every_second(2000);
    struct trace_select s = TRACE_SELECT_ALL;
    s.sample_frac = 0.25;
    select_from(&a, s, 1);
    select_from(&b, s, 1);
    select_from(&c, s, 2);
    cr_expect(a.n > 420 && a.n < 580, "500 expected, 4 standard deviations are 77, got %zu", a.n);
    cr_expect(a.n == b.n && sum_input(&a) == sum_input(&b), "same seed, same requests");
    cr_expect(sum_input(&a) != sum_input(&c), "another seed, other requests");
    trace_release(&a);
    trace_release(&b);
    trace_release(&c);
}

Test(trace, rate_divides_times)
{
    struct trace t = every_second(4);
    struct trace_select s = TRACE_SELECT_ALL;
    s.rate = 4;
    select_from(&t, s, 0);
    cr_expect_eq(t.request[1].arrival_ps, 250 * PS_PER_MS);
    cr_expect_eq(t.last_ps, 750 * PS_PER_MS);
    trace_release(&t);
}

Test(trace, spread_moves_only_requests_that_share_a_time)
{
    struct trace t = loaded(PLAIN "0,1,1\n5,2,1\n5,3,1\n5,4,1\n9,5,1\n");
    struct trace_select s = TRACE_SELECT_ALL;
    s.spread_ps = 3 * PS_PER_S;
    select_from(&t, s, 7);
    cr_assert_eq(t.n, 5);
    cr_expect_eq(t.request[0].arrival_ps, 0);
    cr_expect_eq(t.request[4].arrival_ps, 9 * PS_PER_S);
    for (size_t i = 1; i < 4; i++) {
        cr_expect(t.request[i].arrival_ps >= 5 * PS_PER_S);
        cr_expect(t.request[i].arrival_ps < 8 * PS_PER_S);
        cr_expect(t.request[i].arrival_ps > t.request[i - 1].arrival_ps);
    }
    trace_release(&t);
}

Test(trace, selections_that_leave_nothing_or_too_long_a_trace_are_errors)
{
    struct trace t = every_second(3);
    struct trace_select s = TRACE_SELECT_ALL;
    struct err err = ERR_NONE;
    s.from_ps = 3 * PS_PER_S;
    cr_expect(trace_select(&t, &s, 0, &err) == -1 && has(err.text, "keeps no request"));
    trace_release(&t);

    t = every_second(3); /* 2 s long: 100 days at a rate of 2 / 8640000 = 2.3e-7 */
    err = ERR_NONE;
    s = TRACE_SELECT_ALL;
    s.rate = 2e-7;
    cr_expect(trace_select(&t, &s, 0, &err) == -1 && has(err.text, "longer than 100 days"));
    trace_release(&t);

    t = every_second(3);
    err = ERR_NONE;
    s = TRACE_SELECT_ALL;
    s.spread_ps = TRACE_SPAN_MAX_PS - PS_PER_S;
    cr_expect(trace_select(&t, &s, 0, &err) == -1 && has(err.text, "longer than 100 days"));
    trace_release(&t);
}

/* A public file and what it holds. */
struct oracle {
    const char *path;
    size_t rows;
    int64_t input, output, last_ps;
    size_t blocks;
    int64_t hit_blocks, hit_tokens, full_hits;
};

static void expect(const struct oracle *o)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(trace_load(&t, o->path, &(struct trace_reading){0}, &err) == 0, "%s", err.text);
    struct trace_prefix p = trace_prefix_max(&t);
    cr_expect_eq(t.n, o->rows, "%s", o->path);
    cr_expect_eq(sum_input(&t), o->input, "%s", o->path);
    cr_expect_eq(sum_output(&t), o->output, "%s", o->path);
    cr_expect_eq(t.last_ps, o->last_ps, "%s", o->path);
    cr_expect_eq(t.n_hashes, o->blocks, "%s", o->path);
    cr_expect_eq(p.hit_blocks, o->hit_blocks, "%s", o->path);
    cr_expect_eq(p.hit_tokens, o->hit_tokens, "%s", o->path);
    cr_expect_eq(p.full_hits, o->full_hits, "%s", o->path);
    cr_expect_eq(t.out_of_order + t.skipped[SKIP_NO_OUTPUT] + t.skipped[SKIP_NO_INPUT], 0);
    trace_release(&t);
}

Test(trace, samples_hold_what_their_readme_says)
{
    static const struct oracle samples[] = {
        {"traces/samples/mooncake_conversation.jsonl.gz", 12031, 144793823, 4122048,
         3536999 * PS_PER_MS, 288500, 105710, 54098411, 118},
        {"traces/samples/azure_2023_code.csv", 500, 1081658, 12040, 2328010870 * PS_PER_100_NS, 0,
         0, 0, 0},
        {"traces/samples/vidur_splitwise_conv.csv", 200, 180695, 47050, 61263537 * PS_PER_US, 0, 0,
         0, 0},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        expect(&samples[i]);
}

/* The whole public files, for those who keep them beside the repository. */
Test(trace, whole_public_traces_match_their_oracles)
{
    static const struct oracle whole[] = {
        {"../shared/traces/mooncake/conversation_trace.jsonl", 12031, 144793823, 4122048,
         3536999 * PS_PER_MS, 288500, 105710, 54098411, 118},
        {"../shared/traces/mooncake/synthetic_trace.jsonl", 3993, 61194628, 595432,
         1022025 * PS_PER_MS, 121877, 77953, 39852661, 213},
        {"../shared/traces/azure2023/AzureLLMInferenceTrace_code.csv", 8819, 18059974, 245896,
         34359480560 * PS_PER_100_NS, 0, 0, 0, 0},
        {"../shared/traces/azure2023/AzureLLMInferenceTrace_conv.csv", 19366, 22361870, 4088665,
         35017219370 * PS_PER_100_NS, 0, 0, 0, 0},
        {"../shared/traces/otel/azure_trace_20rows.csv", 20, 11540, 1674, 130250880 * PS_PER_100_NS,
         0, 0, 0, 0},
        {"../shared/traces/vidur/splitwise_code.csv", 8819, 18059974, 245896,
         3435948056 * PS_PER_US, 0, 0, 0, 0},
        {"../shared/traces/vidur/splitwise_conv.csv", 19366, 22361870, 4088665,
         3501721937 * PS_PER_US, 0, 0, 0, 0},
    };
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        expect(&whole[i]);
}
