/* SPDX-License-Identifier: Apache-2.0
 *
 * What traces say of themselves: prefix hits, info, findings and warnings.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

#define PLAIN "arrived_at_s,input_tokens,output_tokens\n"

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

Test(info, prefix_hits_are_the_longest_known_run_from_the_front)
{
    struct trace t =
        loaded("{\"timestamp\":0,\"input_length\":1300,\"output_length\":1,\"hash_ids\":[1,2,3]}\n"
               "{\"timestamp\":1,\"input_length\":1400,\"output_length\":1,\"hash_ids\":[1,2,4]}\n"
               "{\"timestamp\":2,\"input_length\":1300,\"output_length\":1,\"hash_ids\":[1,2,3]}\n"
               "{\"timestamp\":3,\"input_length\":1000,\"output_length\":1,\"hash_ids\":[0,3]}\n");
    struct trace_prefix p = trace_prefix_max(&t);
    cr_expect_eq(p.hit_blocks, 0 + 2 + 3 + 0);
    cr_expect_eq(p.hit_tokens, 2 * 512 + 1300, "a full hit is capped at the prompt's length");
    cr_expect_eq(p.full_hits, 1);
    cr_expect_float_eq(trace_prefix_hit_frac_max(&t), 2324.0 / 5000, 1e-15);
    trace_release(&t);
}

Test(info, info_json_has_exact_percentiles)
{
    struct trace t = loaded(PLAIN "0,9,1\n1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,6,1\n6,7,1\n7,8,1\n8,1,1\n"
                                  "10,10,11\n11,0,1\n");
    json_t *info = trace_info_json(&t);
    char *text = json_dumps(info, JSON_COMPACT | JSON_REAL_PRECISION(9));
    cr_expect_str_eq(text,
                     "{\"format\":\"plain\",\"requests\":10,\"skipped\":1,\"span_s\":10.0,"
                     "\"input_tokens\":{\"mean\":5.5,\"p50\":5,\"p90\":9,\"p99\":10,\"max\":10},"
                     "\"output_tokens\":{\"mean\":2.0,\"p50\":1,\"p90\":1,\"p99\":11,\"max\":11},"
                     "\"prefix_hit_frac_max\":0.0,\"sessions\":0,"
                     "\"session_requests_p50\":0,\"session_requests_max\":0,\"waiting\":0,"
                     "\"chain_max\":0,\"waits_capped\":0,"
                     "\"skipped_for\":{\"zero input tokens\":1},\"noted\":{}}");
    free(text);
    json_decref(info);
    trace_release(&t);
}

static void print_to(char text[2048], void (*print)(const struct trace *, FILE *),
                     const struct trace *t)
{
    FILE *f = tmpfile();
    print(t, f);
    rewind(f);
    text[fread(text, 1, 2047, f)] = '\0';
    fclose(f);
}

Test(info, warns_of_sorting_and_skips_in_one_line_each)
{
    char text[2048], expected[1024];
    struct trace t = loaded(PLAIN "5,1,1\n4,1,1\n3,1,0\n2,0,1\n1,1,0\n");
    print_to(text, trace_warn, &t);
    snprintf(expected, sizeof expected,
             "wavetank: %s: rows earlier than the row before, now sorted by time: 1\n"
             "wavetank: %s: rows skipped: 3 (2 with zero output tokens, 1 with zero input "
             "tokens)\n",
             t.path, t.path);
    cr_expect_str_eq(text, expected);
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n");
    print_to(text, trace_warn, &t);
    cr_expect_str_eq(text, "");
    trace_release(&t);
}

Test(info, check_names_each_finding_once)
{
    char text[2048];
    struct trace t = loaded(PLAIN "9000,1,1\n0,5,5\n0,5,5\n0,6,5\n3600,1048576,1\n1,1,0\n");
    print_to(text, trace_print_check, &t);
    cr_expect(has(text, ": rows earlier than the row before: 1\n"));
    cr_expect(has(text, ": rows skipped for zero output tokens: 1\n"));
    cr_expect(has(text, ": requests that arrive together with the one before: 2 of 5 (40.0%)\n"));
    cr_expect(has(text, ": requests that repeat another's time, lengths and hashes: 1\n"));
    cr_expect(has(text, ": gaps above 1 h between arrivals: 1, the longest 1.500 h\n"));
    cr_expect(has(text, ": contexts above 1048576 tokens: 1, the first at line 6\n"));
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n");
    print_to(text, trace_print_check, &t);
    cr_expect_str_eq(text, "");
    trace_release(&t);
}

Test(info, info_names_format_begin_and_percentiles)
{
    char text[2048];
    struct trace t = loaded("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                            "2023-11-16 18:17:03.9799600,4808,10\n");
    print_to(text, trace_print_info, &t);
    cr_expect(has(text, "format        azure\n"));
    cr_expect(has(text, "begins        2023-11-16 18:17:03 UTC\n"));
    cr_expect(has(text, "  input            4,808     4,808     4,808     4,808     4,808\n"));
    trace_release(&t);
}

static struct trace_request at(int64_t arrival_s, int32_t session)
{
    return (struct trace_request){.arrival_ps = arrival_s * PS_PER_S,
                                  .input_tokens = 1 + arrival_s,
                                  .output_tokens = 1,
                                  .session = session};
}

/* Session 0 has 0, 1 and 3, each after the one before; session 1 has 2 and 4, which waits for none;
 * 5 is of no session and waits for 3 and 4. */
static void make_sessions(struct trace *t, struct trace_request request[6], uint32_t after[4])
{
    static const int32_t session[] = {0, 0, 1, 0, 1, TRACE_NO_SESSION};
    static const uint32_t waits[] = {0, 1, 3, 4};
    for (int i = 0; i < 6; i++)
        request[i] = at(4000 * i, session[i]);
    memcpy(after, waits, sizeof waits);
    request[1].n_after = request[3].n_after = 1;
    request[1].delay_ps = 3600 * PS_PER_S;
    request[3].after_at = 1;
    request[3].delay_ps = 3601 * PS_PER_S;
    request[5].n_after = 2;
    request[5].after_at = 2;
    request[5].delay_ps = 7200 * PS_PER_S;
    *t = (struct trace){.path = "made.up",
                        .format = "weka",
                        .n = 6,
                        .request = request,
                        .after = after,
                        .n_after = 4};
    names_number(&t->session, "a");
    names_number(&t->session, "b");
    names_number(&t->session, "dropped");
}

Test(info, sessions_and_chains_are_counted)
{
    struct trace t;
    struct trace_request request[6];
    uint32_t after[4];
    make_sessions(&t, request, after);
    struct trace_sessions s = trace_sessions(&t);
    cr_expect_eq(s.sessions, 2);
    cr_expect_eq(s.turns_p50, 2);
    cr_expect_eq(s.turns_max, 3);
    cr_expect_eq(s.waiting, 3);
    cr_expect_eq(s.chain_max, 4, "0, 1, 3, 5");
    names_release(&t.session);
}

Test(info, info_has_a_line_for_sessions_and_for_each_oddity)
{
    char text[2048];
    struct trace t;
    struct trace_request request[6];
    uint32_t after[4];
    make_sessions(&t, request, after);
    t.skipped[SKIP_NO_LENGTH] = 2;
    t.skipped[SKIP_DUPLICATE] = 1;
    t.noted[NOTE_SHRUNK] = 1234;
    t.waits_capped = 7;
    print_to(text, trace_print_info, &t);
    cr_expect(has(text,
                  "sessions      2; requests in one: p50 2, max 3\n"
                  "waiting       50.0% of requests, for others to end; the longest chain has 4\n"
                  "skipped rows  3\n"
                  "  with        2 no token counts\n"
                  "              1 a session seen before\n"
                  "noted         1,234 prompts shorter than the turn before\n"
                  "waits capped  7\n"
                  "out of order  0\n"),
              "%s", text);
    names_release(&t.session);
}

Test(info, check_finds_long_waits_and_gaps_of_sessions)
{
    char text[2048];
    struct trace t;
    struct trace_request request[6];
    uint32_t after[4];
    make_sessions(&t, request, after);
    t.noted[NOTE_NO_TIME] = 5;
    print_to(text, trace_print_check, &t);
    cr_expect(has(text, "made.up: waits of unknown length, taken as 0: 5\n"), "%s", text);
    cr_expect(has(text, "made.up: gaps above 1 h inside sessions: 1, the longest 2.222 h\n"), "%s",
              text);
    cr_expect(has(text, "made.up: waits above 1 h: 2, the longest 2.000 h; see --wait-cap\n"), "%s",
              text);
    names_release(&t.session);
}

Test(info, check_doubts_times_that_are_row_numbers)
{
    char text[2048];
    struct trace t =
        loaded(PLAIN "0,1,1\n1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,6,1\n6,7,1\n7,8,1\n8,1,1\n9,9,9\n");
    print_to(text, trace_print_check, &t);
    cr_expect(has(text, ": arrivals are all exactly 1 s apart: are they row numbers?\n"), "%s",
              text);
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,6,1\n6,7,1\n7,8,1\n8,1,1\n10,9,9\n");
    print_to(text, trace_print_check, &t);
    cr_expect(!has(text, "row numbers"));
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,6,1\n6,7,1\n7,8,1\n8,1,1\n");
    print_to(text, trace_print_check, &t);
    cr_expect(!has(text, "row numbers"), "nine may be chance");
    trace_release(&t);
}
