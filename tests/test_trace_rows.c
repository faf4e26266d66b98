/* SPDX-License-Identifier: Apache-2.0
 *
 * The other JSON Lines: Qwen-Bailian, LLMServingSim, RAGPulse, AIBrix and TraceLab's rounds. Runs
 * in the root of the repository, for the samples.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static struct trace loaded(const char *text, const char *format)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_text(&t, text, &err) == 0, "%s", err.text);
    cr_expect_str_eq(t.format, format);
    return t;
}

/* One request as "INPUT+OUTPUT at MS[+WAIT after INDEX]". */
static void expect_request(const struct trace *t, size_t i, const char *expected)
{
    const struct trace_request *r = &t->request[i];
    char got[128];
    int n = snprintf(got, sizeof got, "%lld+%lld at %.10g", (long long)r->input_tokens,
                     (long long)r->output_tokens, (double)r->arrival_ps / PS_PER_MS);
    if (r->n_after > 0)
        snprintf(got + n, sizeof got - n, "+%.10g after %u", (double)r->delay_ps / PS_PER_MS,
                 t->after[r->after_at]);
    cr_expect_str_eq(got, expected);
}

static int64_t count_notes(const struct trace *t)
{
    int64_t n = 0;
    for (int i = 0; i < NOTE_COUNT; i++)
        n += t->noted[i];
    return n;
}

static uint64_t hash(const struct trace *t, size_t i, uint32_t k)
{
    cr_assert_lt(k, t->request[i].n_hashes);
    return t->hash[t->request[i].hash_at + k];
}

#define CHAT(id, parent, s, n)                                                                     \
    "{\"chat_id\":" #id ",\"parent_chat_id\":" #parent ",\"timestamp\":" #s                        \
    ",\"input_length\":" #n ",\"output_length\":3,\"type\":\"text\",\"turn\":1"

Test(trace_rows, qwen_counts_seconds_and_blocks_of_16)
{
    struct trace t = loaded(CHAT(0, -1, 0.0, 33) ",\"hash_ids\":[0,1,2]}\n" CHAT(
                                1, -1, 0.25, 32) ",\"hash_ids\":[0,1]}\n",
                            "qwen-bailian");
    expect_request(&t, 1, "32+3 at 250");
    cr_expect_eq(t.block_tokens, 16);
    cr_expect_eq(trace_prefix_max(&t).hit_tokens, 32);
    trace_release(&t);
}

/* 1 <- 2 <- 4, of which 4 comes first in the file; 9 and 8 continue a chat that is not there; 5 and
 * 6 are each other's parents. */
Test(trace_rows, qwen_sessions_are_chats_with_one_root)
{
    struct trace t = loaded(
        CHAT(4, 2, 1, 10) "}\n" CHAT(1, -1, 2, 10) "}\n" CHAT(2, 1, 3, 10) "}\n" CHAT(
            9, 77, 4,
            10) "}\n" CHAT(8, 77, 5,
                           10) "}\n" CHAT(5, 6, 6, 10) "}\n" CHAT(6, 5, 7, 10) "}\n" CHAT(3, -1, 8,
                                                                                          10) "}\n",
        "qwen-bailian");
    static const int sessions[] = {0, 0, 0, 1, 1, 2, 2, 3};
    cr_assert_eq(t.n, 8);
    for (size_t i = 0; i < t.n; i++) {
        cr_expect_eq(t.request[i].session, sessions[i], "%zu: %d", i, t.request[i].session);
        cr_expect_eq(t.request[i].n_after, 0);
    }
    cr_expect_str_eq(t.session.name[0], "1");
    cr_expect_str_eq(t.session.name[1], "77");
    cr_expect_eq(t.noted[NOTE_NO_PARENT], 2);
    cr_expect_eq(t.last_ps, 7 * PS_PER_S);
    trace_release(&t);
}

#define TOKENS_16 "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"

Test(trace_rows, llmservingsim_mixes_requests_and_sessions)
{
    struct trace t = loaded("{\"input_toks\":20,\"output_toks\":5,\"arrival_time_ns\":46000000}\n"
                            "{\"session_id\":\"s\",\"arrival_time_ns\":50000000,\"sub_requests\":["
                            "{\"input_toks\":30,\"output_toks\":6,\"tool_duration_ns\":7000000},"
                            "{\"input_toks\":36,\"output_toks\":0,\"tool_duration_ns\":1000},"
                            "{\"input_toks\":29,\"output_toks\":8,\"tool_duration_ns\":2000000},"
                            "{\"input_toks\":40,\"output_toks\":9}]}\n",
                            "llmservingsim");
    cr_assert_eq(t.n, 4);
    expect_request(&t, 0, "20+5 at 0");
    expect_request(&t, 1, "30+6 at 4");
    expect_request(&t, 2, "29+8 at 4.001+0.001 after 1");
    expect_request(&t, 3, "40+9 at 6.001+2 after 2");
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 1);
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    cr_expect_eq(t.request[0].session, TRACE_NO_SESSION);
    cr_expect_eq(t.request[3].session, 0);
    cr_expect_eq(t.n_hashes, 0);
    trace_release(&t);
}

/* 18, 17 and 16 tokens that begin alike, then 16 of which the last differs. */
Test(trace_rows, llmservingsim_shares_equal_tokens)
{
    struct trace t = loaded("{\"input_toks\":18,\"output_toks\":5,\"arrival_time_ns\":0,"
                            "\"input_tok_ids\":[" TOKENS_16 ",1,2]}\n"
                            "{\"input_toks\":17,\"output_toks\":5,\"arrival_time_ns\":1,"
                            "\"input_tok_ids\":[" TOKENS_16 ",1]}\n"
                            "{\"input_toks\":16,\"output_toks\":5,\"arrival_time_ns\":2,"
                            "\"input_tok_ids\":[" TOKENS_16 "]}\n"
                            "{\"input_toks\":3,\"output_toks\":5,\"arrival_time_ns\":3,"
                            "\"input_tok_ids\":[1,2,4]}\n"
                            "{\"input_toks\":3,\"output_toks\":5,\"arrival_time_ns\":4}\n",
                            "llmservingsim");
    cr_expect_eq(t.block_tokens, 16);
    cr_assert_eq(t.n_hashes, 2 + 2 + 1 + 1);
    cr_expect_eq(hash(&t, 0, 0), hash(&t, 1, 0));
    cr_expect_eq(hash(&t, 0, 0), hash(&t, 2, 0));
    cr_expect_neq(hash(&t, 0, 1), hash(&t, 1, 1));
    cr_expect_neq(hash(&t, 0, 0), hash(&t, 3, 0));
    trace_release(&t);
}

Test(trace_rows, aibrix_rows_hold_several_requests)
{
    struct trace t =
        loaded("{\"timestamp\":1000,\"requests\":[{\"Prompt Length\":8,\"Output Length\":3},"
               "{\"prompt_length\":9,\"output_length\":null,\"session_id\":\"a\"}]}\n"
               "{\"timestamp\":1250.5,\"requests\":[]}\n"
               "{\"timestamp\":1500,\"requests\":[{\"prompt_length\":7,\"output_length\":4,"
               "\"session_id\":\"a\"}]}",
               "aibrix");
    cr_assert_eq(t.n, 2);
    expect_request(&t, 0, "8+3 at 0");
    expect_request(&t, 1, "7+4 at 500");
    cr_expect_eq(t.skipped[SKIP_NO_LENGTH], 1);
    cr_expect_eq(t.request[0].session, TRACE_NO_SESSION);
    cr_expect_str_eq(t.session.name[t.request[1].session], "a");
    trace_release(&t);
}

#define RAG(s, n, components)                                                                      \
    "{\"timestamp\":\"" #s "\",\"input_length\":" #n                                               \
    ",\"output_length\":2,\"hash_ids\":{" components "},\"session_id\":\"x\"}\n"
#define PARTS(sys, passages, user)                                                                 \
    "\"sys_prompt\":[" sys "],\"passages_ids\":[" passages "],\"history\":[],\"web_search\":[],"   \
    "\"user_input\":[" user "]"

/* System prompt 5 has 24 tokens, passages 1 and 2 have 20 and 12: the first two prompts share 24 +
 * 20 tokens, two whole blocks; the third has the passages the other way round and shares one, since
 * the second block holds 8 tokens of a passage. */
static const char *const rag_files[] = {
    "0_trace.jsonl",
    RAG(10, 70, PARTS("5", "1, 2", "8")) RAG(12, 66, PARTS("5", "1", "9"))
        RAG(11, 70, PARTS("5", "2, 1", "8")) "\n",
    "1_sys_prompt.jsonl",
    "{\"sys_prompt_id\": 5, \"token_length\": 24}\n",
    "2_passages.jsonl",
    "{\"passage_id\": 1, \"token_length\": 20}\n"
    "{\"passage_id\": 2, \"token_length\": 12}\n",
    "3_history.jsonl",
    "",
    "4_user_input.jsonl",
    "{\"user_input_id\": 8, \"token_length\": 6}\n"
    "{\"user_input_id\": 9, \"token_length\": 16}\n",
    "5_web_search.jsonl",
    "\n",
};

static void make_rag(char folder[])
{
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof rag_files / sizeof *rag_files; i += 2) {
        char *path = xasprintf("%s/%s", folder, rag_files[i]);
        write_text(path, rag_files[i + 1]);
        free(path);
    }
}

static void remove_rag(const char *folder)
{
    for (size_t i = 0; i < sizeof rag_files / sizeof *rag_files; i += 2) {
        char *path = xasprintf("%s/%s", folder, rag_files[i]);
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

Test(trace_rows, ragpulse_prompts_share_what_their_components_begin_with)
{
    char folder[] = "/tmp/test_trace_XXXXXX";
    struct trace t;
    struct err err = ERR_NONE;
    make_rag(folder);
    char *path = xasprintf("%s/0_trace.jsonl", folder);
    cr_assert(trace_load(&t, path, &(struct trace_reading){0}, &err) == 0, "%s", err.text);
    remove_rag(folder);
    free(path);
    cr_expect_str_eq(t.format, "ragpulse");
    expect_request(&t, 1, "70+2 at 1000");
    expect_request(&t, 2, "66+2 at 2000");
    cr_expect_eq(t.out_of_order, 1);
    cr_expect_eq(t.block_tokens, 16);
    cr_expect_eq(t.n_hashes, 5 + 5 + 5);
    cr_expect_eq(hash(&t, 0, 0), hash(&t, 1, 0));
    cr_expect_neq(hash(&t, 0, 1), hash(&t, 1, 1));
    cr_expect_eq(hash(&t, 0, 1), hash(&t, 2, 1));
    cr_expect_neq(hash(&t, 0, 2), hash(&t, 2, 2));
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 1 + 2);
    cr_expect_eq(count_notes(&t), 0);
    trace_release(&t);
}

Test(trace_rows, ragpulse_without_its_tables_has_no_hashes)
{
    struct trace t = loaded(rag_files[1], "ragpulse");
    cr_expect_eq(t.n_hashes, 0);
    cr_expect_eq(t.block_tokens, 0);
    cr_expect_eq(t.noted[NOTE_NO_TABLE], 3);
    trace_release(&t);
}

Test(trace_rows, ragpulse_refuses_components_that_no_table_has)
{
    char folder[] = "/tmp/test_trace_XXXXXX";
    struct trace t;
    struct err err = ERR_NONE;
    make_rag(folder);
    char *path = xasprintf("%s/0_trace.jsonl", folder),
         *table = xasprintf("%s/2_passages.jsonl", folder);
    write_text(path, RAG(10, 70, PARTS("5", "1, 3", "8")));
    cr_expect_eq(trace_load(&t, path, &(struct trace_reading){0}, &err), -1);
    cr_expect_not_null(strstr(err.text, "0_trace.jsonl:1: \"passages_ids\"[1]: 3 is not in "
                                        "2_passages.jsonl"),
                       "%s", err.text);
    err = ERR_NONE;
    write_text(table, "{\"passage_id\": 1, \"token_length\": -1}\n");
    cr_expect_eq(trace_load(&t, path, &(struct trace_reading){0}, &err), -1);
    cr_expect_not_null(strstr(err.text, "2_passages.jsonl:1: \"token_length\" is negative"), "%s",
                       err.text);
    remove_rag(folder);
    free(path);
    free(table);
}

#define ROUND(session, index, n, prefix, events)                                                   \
    "{\"session_id\":\"" session "\",\"round_index\":" #index ",\"input_tokens_total\":" #n        \
    ",\"prefix_tokens\":" #prefix ",\"output_tokens\":9,\"timing_events\":[" events "]}\n"
#define EVENT(type, time)                                                                          \
    "{\"event_type\":\"" type "\",\"timestamp\":\"2026-06-01T05:40:" time "Z\"}"

/* Two tools run side by side, from 10.5 s on; the later result is there at 13 s. */
Test(trace_rows, tracelab_rounds_wait_for_the_last_tool)
{
    struct trace t = loaded(
        ROUND("s", 0, 200, 150, EVENT("user_message", "10.000") "," EVENT("tool_call", "10.500"))
            ROUND("s", 1, 300, 198,
                  EVENT("tool_result", "13.000") "," EVENT("tool_result", "11.000") "," EVENT(
                      "reasoning", "14.000") "," EVENT("usage_report", "14.250"))
                ROUND("s", 2, 290, 999, EVENT("tool_result", "14.200") "," EVENT("text", "15.000"))
                    ROUND("s", 4, 310, 0, EVENT("text", "20.000")),
        "tracelab-rounds");
    cr_assert_eq(t.n, 4);
    cr_expect(t.calendar && t.origin_ps == 1780292410 * (__int128)PS_PER_S);
    expect_request(&t, 0, "200+9 at 0");
    expect_request(&t, 1, "300+9 at 2500+2500 after 0");
    expect_request(&t, 2, "290+9 at 2500+0 after 1");
    expect_request(&t, 3, "310+9 at 2500+0 after 2");
    cr_expect_eq(t.noted[NOTE_WENT_BACK], 1, "round 2 began before round 1 had ended");
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1, "what round 4 waited for is not there");
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    cr_expect_eq(t.noted[NOTE_CACHED_CUT], 1);
    cr_expect_eq(t.n_hashes, 4 + 5 + 5 + 5);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 3 + 4);
    trace_release(&t);
}

static const struct {
    const char *text, *message;
} malformed[] = {
    {CHAT(1, -1, 0, 5) "}\n" CHAT(1, -1, 1, 5) "}\n", ":2: \"chat_id\": 1 is there already"},
    {CHAT(1, "x", 0, 5) "}\n", ":1: \"parent_chat_id\": expected a whole number"},
    {CHAT(1, -1, 0, 512) ",\"hash_ids\":[1]}\n",
     ":1: has 1 hash_ids, but its input_length of 512 makes 32 blocks of 16 tokens"},
    {"{\"input_toks\":2,\"output_toks\":5,\"arrival_time_ns\":0,\"input_tok_ids\":[1]}\n",
     ":1: has 1 input_tok_ids, but its input_toks are 2"},
    {"{\"input_toks\":1,\"output_toks\":5,\"arrival_time_ns\":0,\"input_tok_ids\":[1.5]}\n",
     ":1: \"input_tok_ids\"[0]: expected a whole number"},
    {"{\"session_id\":\"s\",\"arrival_time_ns\":0,\"sub_requests\":[{\"input_toks\":1,"
     "\"output_toks\":5},{\"input_toks\":1}]}\n",
     ":1: \"sub_requests\"[1]: no key \"output_toks\""},
    {"{\"session_id\":\"s\",\"arrival_time_ns\":0,\"sub_requests\":[3],\"input_toks\":0}\n",
     ":1: \"sub_requests\"[0]: expected a JSON object"},
    {"{\"timestamp\":0,\"requests\":[{\"prompt_length\":1,\"output_length\":1.5}]}\n",
     ":1: \"requests\"[0]: \"Output Length\": expected a whole number of tokens"},
    {"{\"timestamp\":0,\"requests\":{}}\n", ":1: \"requests\": expected an array"},
    {RAG(5, 99999999, PARTS("1", "1", "1")), ":1: 99999999 input tokens; at most 2^24"},
    {ROUND("s", 0, 5, 0, ""), ":1: no timing_events: nothing says when its session begins"},
    {ROUND("s", 1, 5, 0, EVENT("text", "10")) ROUND("s", 1, 5, 0, EVENT("text", "11")),
     ":2: \"round_index\": 1 does not come after 1 of its session"},
    {ROUND("s", 0, 5, 0, EVENT("text", "61")),
     ":1: \"timing_events\"[0]: \"timestamp\": \"2026-06-01T05:40:61Z\" is a date or time that"},
    {ROUND("s", 0, 5, -1, EVENT("text", "10")), ":1: \"prefix_tokens\" is negative (-1)"},
    {ROUND("s", 0, 5, 0, "7"), ":1: \"timing_events\"[0]: expected a JSON object"},
};

Test(trace_rows, refuses_malformed_rows_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect(load_text(&t, malformed[i].text, &err) == -1, "read: %s", malformed[i].text);
        cr_expect(strstr(err.text, malformed[i].message) != NULL, "expected \"%s\", got \"%s\"",
                  malformed[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && t.n == 77);
    }
}

/* A file and what it holds. */
struct oracle {
    const char *path, *format;
    size_t rows, waiting, sessions;
    int64_t input, output, last_ps;
    size_t blocks;
    int64_t hit_blocks, hit_tokens;
};

static void expect(const struct oracle *o)
{
    struct trace t;
    struct err err = ERR_NONE;
    int64_t input = 0, output = 0;
    size_t waiting = 0;
    cr_assert(trace_load(&t, o->path, &(struct trace_reading){0}, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < t.n; i++) {
        input += t.request[i].input_tokens;
        output += t.request[i].output_tokens;
        waiting += t.request[i].n_after;
    }
    struct trace_prefix p = trace_prefix_max(&t);
    cr_expect_str_eq(t.format, o->format);
    cr_expect_eq(t.n, o->rows, "%s", o->path);
    cr_expect_eq(waiting, o->waiting, "%s", o->path);
    cr_expect_eq(t.session.n, o->sessions, "%s", o->path);
    cr_expect_eq(input, o->input, "%s", o->path);
    cr_expect_eq(output, o->output, "%s", o->path);
    cr_expect_eq(t.last_ps, o->last_ps, "%s: %lld", o->path, (long long)t.last_ps);
    cr_expect_eq(t.n_hashes, o->blocks, "%s: %zu", o->path, t.n_hashes);
    cr_expect_eq(p.hit_blocks, o->hit_blocks, "%s", o->path);
    cr_expect_eq(p.hit_tokens, o->hit_tokens, "%s", o->path);
    trace_release(&t);
}

/* Blocks and hits of RAGPulse and TraceLab are counted by another program, token by token. */
Test(trace_rows, samples_hold_what_their_readme_says)
{
    static const struct oracle samples[] = {
        {"traces/samples/ragpulse/0_trace.jsonl", "ragpulse", 100, 0, 56, 306408, 24237,
         3204 * PS_PER_S, 19195, 5878, 94048},
        {"traces/samples/llmservingsim_ids.jsonl", "llmservingsim", 10, 0, 0, 120, 591,
         980043269 * PS_PER_NS, 12, 0, 0},
        {"traces/samples/tracelab_rounds.jsonl", "tracelab-rounds", 19, 17, 2, 514012, 11335,
         6204953278 * PS_PER_MS, 8040, 6854, 438656},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        expect(&samples[i]);
}

/* The whole public files, for those who keep them beside the repository. */
Test(trace_rows, whole_public_traces_match_their_oracles)
{
    static const struct oracle whole[] = {
        {"../shared/traces/ragpulse/0_trace.jsonl", "ragpulse", 7106, 0, 3990, 20917099, 2012676,
         604603 * PS_PER_S, 1310542, 410875, 6574000},
        {"../shared/traces/llmservingsim/workload_me2_01_mixed.jsonl", "llmservingsim", 608, 0, 0,
         5604402, 1837003, 60898463000 * PS_PER_NS, 0, 0, 0},
    };
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        expect(&whole[i]);
}
