/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of calls to language models: which are requests, and what each waits for. Runs in the root
 * of the repository, for the samples.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

#define TRACE(spans) "{'trace_id':'t','spans':[" spans "]}\n"
/* A span from second a to second b of one hour, with further keys and attributes. */
#define SPAN_WITH(keys, a, b, attributes)                                                          \
    "{'span_id':'s'" keys ",'start_time':'2026-02-25T10:00:" a "','end_time':'2026-02-25T10:00:" b \
    "','attributes':{" attributes "}}"
#define SPAN(a, b, attributes) SPAN_WITH("", a, b, "'gen_ai.operation.name':'chat'," attributes)
#define TOKENS(in, out)        "'gen_ai.usage.input_tokens':" #in ",'gen_ai.usage.output_tokens':" #out
#define SAYS(text)             ",'gen_ai.output.text':'" text "'"
#define HEARS(text)                                                                                \
    ",'gen_ai.input.messages':'[{\\'role\\':\\'user\\',\\'content\\':\\'go on\\'},"                \
    "{\\'role\\':\\'assistant\\',\\'content\\':\\'" text "\\'}]'"

#define SPAN_OF(trace, a, b, attributes)                                                           \
    SPAN_WITH(",'trace_id':'" trace "'", a, b, "'gen_ai.request.model':'m'," attributes)

static struct trace loaded(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_quoted(&t, text, &err) == 0, "%s", err.text);
    cr_assert_str_eq(t.format, "otel");
    return t;
}

/* One trace of these spans, up to NULL. */
static struct trace traced(const char *const *span)
{
    char text[8192] = "{'trace_id':'t','spans':[";
    for (size_t i = 0; span[i] != NULL; i++)
        sprintf(text + strlen(text), "%s%s", i > 0 ? "," : "", span[i]);
    return loaded(strcat(text, "]}\n"));
}

/* What a request waits for, by their input tokens: "10 20"; requests are named likewise. */
static void expect_waits(const struct trace *t, int64_t input_tokens, const char *waits,
                         int64_t delay_ms)
{
    char text[256] = "";
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->input_tokens != input_tokens)
            continue;
        for (size_t before = 0; before < i; before++)
            for (uint32_t k = 0; k < r->n_after; k++)
                if (t->after[r->after_at + k] == before)
                    sprintf(text + strlen(text), "%s%lld", text[0] ? " " : "",
                            (long long)t->request[before].input_tokens);
        cr_expect_eq(r->delay_ps, delay_ms * PS_PER_MS, "%lld: %g s", (long long)input_tokens,
                     ps_to_s(r->delay_ps));
    }
    cr_expect_str_eq(text, waits, "%lld waits for %s", (long long)input_tokens, text);
}

Test(trace_otel, spans_are_requests_by_the_calendar)
{
    struct trace t = traced((const char *const[]){
        SPAN("00.25Z", "02Z", TOKENS(10, 5)),
        NULL,
    });
    cr_assert_eq(t.n, 1);
    cr_expect(t.calendar && t.origin_ps == 1772013600 * (__int128)PS_PER_S + 250 * PS_PER_MS);
    cr_expect_eq(t.request[0].output_tokens, 5);
    cr_expect_eq(t.session.n, 1);
    trace_release(&t);
}

Test(trace_otel, both_generations_of_token_counts_are_known)
{
    struct trace t = traced((const char *const[]){
        SPAN("00", "01", TOKENS(10, 5)),
        SPAN("00", "01", "'gen_ai.usage.prompt_tokens':20,'gen_ai.usage.completion_tokens':6"),
        NULL,
    });
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.request[1].input_tokens, 20);
    cr_expect_eq(t.request[1].output_tokens, 6);
    trace_release(&t);
}

Test(trace_otel, what_is_no_request_or_failed_is_left_out)
{
    struct trace t = traced((const char *const[]){
        SPAN("00", "01", TOKENS(10, 5)),
        SPAN_WITH("", "00", "09", "'gen_ai.operation.name':'invoke_agent'," TOKENS(11, 5)),
        "{'start_time':'2026-02-25T10:00:00','end_time':'2026-02-25T10:00:00'}",
        SPAN_WITH(",'status':{'code':2}", "00", "01", "'gen_ai.request.model':'m'," TOKENS(12, 5)),
        SPAN_WITH(",'status':{'code':'STATUS_CODE_ERROR'}", "00", "01",
                  "'gen_ai.request.model':'m'," TOKENS(13, 5)),
        SPAN("00", "01", "'gen_ai.usage.input_tokens':14"),
        SPAN("00", "01", TOKENS(15, 0)),
        SPAN("00", "01", TOKENS(0, 5)),
        NULL,
    });
    cr_assert_eq(t.n, 1);
    cr_expect_eq(t.skipped[SKIP_OTHER], 2);
    cr_expect_eq(t.skipped[SKIP_FAILED], 2);
    cr_expect_eq(t.skipped[SKIP_NO_LENGTH], 1);
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 1);
    cr_expect_eq(t.skipped[SKIP_NO_INPUT], 1);
    trace_release(&t);
}

/* 20 and 30 run side by side; 40 says what 20 said, 50 what 30 said, and is given in the other
 * form. */
Test(trace_otel, a_span_waits_for_those_whose_output_it_sends)
{
    struct trace t = traced((const char *const[]){
        SPAN("00", "01", TOKENS(10, 5) SAYS("a")),
        SPAN("02", "04",
             TOKENS(20, 5) HEARS("a") ",'gen_ai.output.messages':'[{\\'content\\':\\'b\\'}]'"),
        SPAN("03", "06",
             TOKENS(30, 5) HEARS("a") ",'gen_ai.output.messages':[{'parts':[{'content':'c'}]}]"),
        SPAN("07", "08", TOKENS(40, 5) HEARS("b")),
        SPAN(
            "08", "09",
            TOKENS(50, 5) ",'gen_ai.input.messages':[{'parts':[{'content':'c'}]},{'content':'a'}]"),
        NULL,
    });
    expect_waits(&t, 10, "", 0);
    expect_waits(&t, 20, "10", 1000);
    expect_waits(&t, 30, "10", 2000);
    expect_waits(&t, 40, "20", 3000);
    expect_waits(&t, 50, "10 30", 2000);
    trace_release(&t);
}

#define MESSAGES(more) ",'gen_ai.input.messages':[{'role':'user','content':'q'}" more "]"
#define MESSAGE(text)  ",{'role':'assistant','content':'" text "'}"

/* 200 goes on where 100 stopped, 300 where 200 did; 400 sends another's words, and 500 its own.
 * Whole blocks of 64 tokens: 1 of 100, 3 of 200. */
Test(trace_otel, a_prompt_that_goes_on_shares_the_one_before)
{
    struct trace t = traced((const char *const[]){
        SPAN("00", "01", TOKENS(100, 5) MESSAGES("") SAYS("a")),
        SPAN("02", "03", TOKENS(200, 5) MESSAGES(MESSAGE("a")) SAYS("b")),
        SPAN("04", "05", TOKENS(300, 5) MESSAGES(MESSAGE("a") MESSAGE("b"))),
        SPAN("06", "07", TOKENS(400, 5) MESSAGES(MESSAGE("b"))),
        SPAN("08", "09", TOKENS(500, 5)),
        NULL,
    });
    cr_expect_eq(t.block_tokens, 64);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 1 + 3);
    expect_waits(&t, 400, "200", 3000);
    cr_expect_eq(t.request[4].n_hashes, 0, "it tells nothing of its prompt");
    trace_release(&t);
}

/* Two say "ok"; what is not over cannot be waited for. */
Test(trace_otel, of_those_that_said_the_same_the_last_to_end_before)
{
    struct trace t = traced((const char *const[]){
        SPAN("00", "02", TOKENS(10, 5) SAYS("ok")),
        SPAN("00", "05", TOKENS(20, 5) SAYS("ok")),
        SPAN("03", "04", TOKENS(30, 5) HEARS("ok")),
        SPAN("05", "06", TOKENS(40, 5) HEARS("ok")),
        NULL,
    });
    expect_waits(&t, 30, "10", 1000);
    expect_waits(&t, 40, "20", 0);
    trace_release(&t);
}

/* Without messages: 10 then 20 and 30 side by side, then 40, and 50 beside 40; 60 at the end. */
Test(trace_otel, without_messages_a_span_waits_for_all_that_had_ended)
{
    struct trace t = traced((const char *const[]){
        SPAN("50", "51", TOKENS(60, 5)),
        SPAN("00", "01", TOKENS(10, 5)),
        SPAN("02", "05", TOKENS(20, 5)),
        SPAN("03", "04", TOKENS(30, 5)),
        SPAN("06", "09", TOKENS(40, 5)),
        SPAN("07", "08", TOKENS(50, 5)),
        NULL,
    });
    expect_waits(&t, 10, "", 0);
    expect_waits(&t, 20, "10", 1000);
    expect_waits(&t, 30, "10", 2000);
    expect_waits(&t, 40, "20 30", 1000);
    expect_waits(&t, 50, "20 30", 2000);
    expect_waits(&t, 60, "40 50", 41000);
    cr_expect_eq(t.out_of_order, 0);
    trace_release(&t);
}

Test(trace_otel, traces_do_not_wait_for_each_other)
{
    struct trace t = traced((const char *const[]){
        SPAN_OF("x", "00", "01", TOKENS(10, 5) SAYS("a")),
        SPAN_OF("y", "02", "03", TOKENS(20, 5) HEARS("a")),
        SPAN_OF("x", "04", "05", TOKENS(30, 5)),
        NULL,
    });
    expect_waits(&t, 20, "", 0);
    expect_waits(&t, 30, "10", 3000);
    cr_expect_eq(t.session.n, 2);
    trace_release(&t);
}

Test(trace_otel, documents_do_not_wait_for_each_other)
{
    struct trace t =
        loaded(TRACE(SPAN("00", "01", TOKENS(10, 5))) TRACE(SPAN("04", "05", TOKENS(20, 5))));
    expect_waits(&t, 20, "", 0);
    cr_expect_eq(t.session.n, 1);
    cr_expect_eq(t.request[1].arrival_ps, 4 * PS_PER_S);
    cr_expect_eq(t.request[1].line, 2);
    trace_release(&t);
}

/* What takes no time ends when the next begins; of two at the same instant the first in the file.
 */
Test(trace_otel, spans_may_take_no_time)
{
    struct trace t = traced((const char *const[]){
        SPAN("01", "01", TOKENS(10, 5) SAYS("a")),
        SPAN("01", "01", TOKENS(20, 5) SAYS("a") HEARS("a")),
        SPAN("01", "01", TOKENS(30, 5)),
        NULL,
    });
    expect_waits(&t, 10, "", 0);
    expect_waits(&t, 20, "10", 0);
    expect_waits(&t, 30, "20", 0);
    trace_release(&t);
}

static const struct {
    const char *text, *message;
} malformed[] = {
    {"{'span_id':1,'spans':[7]}", ":1: .spans[0]: must be an object, got a number"},
    {"{'span_id':1,'spans':{}}", ".spans: must be an array, got an object"},
    {TRACE("{'span_id':'s'}"), ".spans[0].start_time: required key is missing"},
    {TRACE(SPAN("61", "62", TOKENS(1, 1))),
     ".spans[0].start_time: \"2026-02-25T10:00:61\" is a date or time that does not exist"},
    {TRACE(SPAN("05", "04", TOKENS(1, 1))), ".spans[0].end_time: is before the span's start"},
    {TRACE(SPAN("05", "06", TOKENS(-1, 1))),
     ".spans[0].attributes.gen_ai.usage.input_tokens: must be "},
    {TRACE(SPAN("05", "06", TOKENS(1, 1.5))),
     ".attributes.gen_ai.usage.output_tokens: must be a whole number"},
    {TRACE(SPAN("05", "06", SAYS("x") "'a':1")), ":1: column "},
    {TRACE(SPAN("05", "06", "'a':1")),
     ": holds no request with input and output tokens; rows skipped: 1 (1 with no token counts)"},
};

Test(trace_otel, refuses_malformed_spans_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect(load_quoted(&t, malformed[i].text, &err) == -1, "read: %s", malformed[i].text);
        cr_expect(err.set && strstr(err.text, malformed[i].message), "expected \"%s\", got \"%s\"",
                  malformed[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && t.n == 77);
    }
}

/* 3,000 at once, then 3,000 more: each waits for no more than the 256 that ended last. */
Test(trace_otel, waits_are_bounded, .timeout = 20)
{
    char *text = malloc(6000 * 300 + 100), *end = text;
    end += sprintf(end, "{'trace_id':'t','spans':[");
    for (int i = 0; i < 6000; i++)
        end += sprintf(end, "%s" SPAN("%02d", "%02d", TOKENS(10, 5)), i > 0 ? "," : "",
                       i < 3000 ? 0 : 10, i < 3000 ? 5 : 15);
    strcpy(end, "]}\n");
    struct trace t = loaded(text);
    cr_expect_eq(t.request[2999].n_after, 0);
    cr_expect_eq(t.request[3000].n_after, 256);
    cr_expect_eq(t.request[5999].delay_ps, 5 * PS_PER_S);
    trace_release(&t);
    free(text);
}

Test(trace_otel, the_sample_holds_what_its_readme_says)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(trace_load(&t, "traces/samples/otel_prefix_sharing.json", &(struct trace_reading){0},
                         &err) == 0,
              "%s", err.text);
    cr_assert_eq(t.n, 7);
    cr_expect_eq(t.session.n, 4);
    cr_expect_eq(t.last_ps, 12 * PS_PER_S);
    expect_waits(&t, 50, "", 0);
    expect_waits(&t, 45, "", 0);
    expect_waits(&t, 100, "", 0);
    expect_waits(&t, 180, "100", 1000);
    expect_waits(&t, 270, "100 180", 500);
    expect_waits(&t, 380, "100 180 270", 200);
    trace_release(&t);
}

/* Examples without token counts. */
Test(trace_otel, public_spans_without_counts_are_refused)
{
    static const char *const paths[] = {"../shared/traces/otel/simple_chain.json",
                                        "../shared/traces/otel/fan_in_dependencies.json",
                                        "../shared/traces/otel/parallel_requests.json"};
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct trace t;
        struct err err = ERR_NONE;
        cr_expect_eq(trace_load(&t, paths[i], &(struct trace_reading){0}, &err), -1);
        cr_expect_not_null(strstr(err.text, "with no token counts)"), "%s", err.text);
    }
}
