/* SPDX-License-Identifier: Apache-2.0
 *
 * Mooncake's dialects: sessions whose turns wait for one another, rows that wait for others by
 * name, 64-bit hashes and other block sizes.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

static struct trace loaded_as(const char *text, struct trace_reading reading)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_text_as(&t, text, &reading, &err) == 0, "%s", err.text);
    cr_expect_str_eq(t.format, "mooncake");
    return t;
}

static struct trace loaded(const char *text)
{
    return loaded_as(text, (struct trace_reading){0});
}

/* One request as "LINE at MS[+WAIT after LINE,LINE]". */
static void expect_request(const struct trace *t, size_t i, const char *expected)
{
    const struct trace_request *r = &t->request[i];
    char got[256];
    int n = snprintf(got, sizeof got, "%ld at %g", r->line, (double)r->arrival_ps / PS_PER_MS);
    if (r->n_after > 0)
        n += snprintf(got + n, sizeof got - n, "+%g after", (double)r->delay_ps / PS_PER_MS);
    for (uint32_t k = 0; k < r->n_after; k++)
        n += snprintf(got + n, sizeof got - n, "%c%ld", k ? ',' : ' ',
                      t->request[t->after[r->after_at + k]].line);
    cr_expect_str_eq(got, expected);
}

static int64_t count_notes(const struct trace *t)
{
    int64_t n = 0;
    for (int i = 0; i < NOTE_COUNT; i++)
        n += t->noted[i];
    return n;
}

Test(trace_mooncake, takes_dynamos_names_and_hashes_of_64_bits)
{
    struct trace t =
        loaded("{\"created_time\": 1.5, \"input_tokens\": 600, \"output_tokens\": 2, \"delay_ms\": "
               "null, \"request_id\": \"a \\\" 99999999999999999999\", \"hash_ids\": "
               "[18446744073709551615, 9223372036854775808]}\n"
               "{\"timestamp\": 2, \"input_length\": 600, \"output_length\": 2, \"hash_ids\": "
               "[18446744073709551615, 9223372036854775807]}\n");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.request[0].input_tokens, 600);
    cr_expect_eq(t.request[0].output_tokens, 2);
    cr_expect_eq(t.request[1].arrival_ps, 500 * PS_PER_US);
    cr_assert_eq(t.n_hashes, 4);
    cr_expect_eq(t.hash[0], UINT64_MAX);
    cr_expect_eq(t.hash[1], 1ull << 63);
    cr_expect_eq(t.hash[3], INT64_MAX);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 1);
    trace_release(&t);
}

Test(trace_mooncake, a_delay_missing_on_the_first_turn_is_before_its_turn)
{
    struct trace t =
        loaded("{\"session_id\":\"a\",\"timestamp\":100,\"input_length\":9,\"output_length\":1}\n"
               "{\"session_id\":7,\"timestamp\":150,\"input_length\":9,\"output_length\":1}\n"
               "{\"session_id\":\"a\",\"delay\":500,\"input_length\":8,\"output_length\":1}\n"
               "{\"session_id\":7,\"input_length\":9,\"output_length\":1}\n"
               "{\"session_id\":\"a\",\"delay_ms\":0.5,\"timestamp\":4,\"input_length\":9,"
               "\"output_length\":1}\n");
    cr_assert_eq(t.n, 5);
    expect_request(&t, 0, "1 at 0");
    expect_request(&t, 1, "2 at 50");
    expect_request(&t, 2, "4 at 50+0 after 2");
    expect_request(&t, 3, "3 at 500+500 after 1");
    expect_request(&t, 4, "5 at 500.5+0.5 after 3");
    cr_expect_eq(t.session.n, 2);
    cr_expect_eq(t.request[0].session, t.request[4].session);
    cr_expect_eq(t.request[1].session, t.request[2].session);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1, "line 4");
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1, "line 3");
    cr_expect_eq(t.out_of_order, 0);
    trace_release(&t);
}

#define TURN(session, rest)                                                                        \
    "{\"session_id\":\"" session "\",\"input_length\":9,\"output_length\":1" rest "}\n"
#define AT(ms)    ",\"timestamp\":" #ms
#define DELAY(ms) ",\"delay\":" #ms

Test(trace_mooncake, a_delay_missing_on_the_last_turn_is_after_its_turn)
{
    struct trace t = loaded(TURN("a", AT(0) DELAY(500)) TURN("b", AT(10) DELAY(7))
                                TURN("a", DELAY(250)) TURN("a", ""));
    expect_request(&t, 0, "1 at 0");
    expect_request(&t, 1, "2 at 10");
    expect_request(&t, 2, "3 at 500+500 after 1");
    expect_request(&t, 3, "4 at 750+250 after 3");
    cr_expect_eq(count_notes(&t), 0);
    trace_release(&t);
}

Test(trace_mooncake, delays_that_tell_nothing_are_before_and_noted)
{
    static const char text[] =
        TURN("a", AT(0) DELAY(500)) TURN("a", DELAY(250)) TURN("a", DELAY(125));
    struct trace told = loaded(text);
    struct trace before = loaded_as(text, (struct trace_reading){.delay = DELAY_BEFORE});
    struct trace after = loaded_as(text, (struct trace_reading){.delay = DELAY_AFTER});
    expect_request(&told, 1, "2 at 250+250 after 1");
    expect_request(&told, 2, "3 at 375+125 after 2");
    expect_request(&before, 2, "3 at 375+125 after 2");
    expect_request(&after, 1, "2 at 500+500 after 1");
    expect_request(&after, 2, "3 at 750+250 after 2");
    cr_expect_eq(told.noted[NOTE_DELAY], 2);
    cr_expect_eq(count_notes(&before) + count_notes(&after), 0);
    trace_release(&told);
    trace_release(&before);
    trace_release(&after);
}

Test(trace_mooncake, a_delay_in_the_middle_alone_tells_nothing)
{
    struct trace t = loaded(TURN("a", AT(0)) TURN("a", DELAY(250)) TURN("a", ""));
    expect_request(&t, 1, "2 at 250+250 after 1");
    expect_request(&t, 2, "3 at 250+0 after 2");
    cr_expect_eq(t.noted[NOTE_DELAY], 2);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1);
    trace_release(&t);
}

Test(trace_mooncake, turns_with_times_alone_come_at_these)
{
    struct trace t = loaded(TURN("a", AT(0)) TURN("a", AT(90)) TURN("a", DELAY(5)));
    expect_request(&t, 1, "2 at 90");
    expect_request(&t, 2, "3 at 95+5 after 2");
    cr_expect_eq(t.session.n, 1);
    cr_expect_eq(count_notes(&t), 0);
    trace_release(&t);
}

Test(trace_mooncake, turns_behind_a_skipped_one_wait_for_what_it_waited_for)
{
    static const char none[] =
        "{\"session_id\":\"a\",\"input_length\":9,\"output_length\":0,\"delay\":70}\n";
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s", TURN("a", AT(0)), none, TURN("a", DELAY(5)));
    struct trace t = loaded(text);
    cr_assert_eq(t.n, 2);
    expect_request(&t, 1, "3 at 5+5 after 1");
    trace_release(&t);

    t = loaded("{\"session_id\":\"a\",\"input_length\":0,\"output_length\":1,\"timestamp\":30}\n"
               "{\"timestamp\":0,\"input_length\":9,\"output_length\":1}\n" TURN("a", DELAY(5)));
    cr_assert_eq(t.n, 2);
    expect_request(&t, 1, "3 at 30");
    trace_release(&t);
}

Test(trace_mooncake, sessions_without_a_start_are_drawn)
{
    static const char text[] = TURN("a", "") TURN("a", DELAY(5)) TURN("b", "") TURN("c", "");
    struct trace_reading reading = {.seed = 1, .arrivals_per_s = 2};
    struct trace a = loaded_as(text, reading), same = loaded_as(text, reading);
    reading.seed = 2;
    struct trace other = loaded_as(text, reading);
    cr_assert_eq(a.n, 4);
    cr_expect_eq(a.noted[NOTE_DRAWN], 3);
    cr_expect_arr_eq(a.request, same.request, a.n * sizeof *a.request);
    cr_expect_neq(a.last_ps, other.last_ps);
    cr_expect(a.last_ps > 0 && a.last_ps < 10 * PS_PER_S, "two gaps of 0.5 s each on average");
    trace_release(&a);
    trace_release(&same);
    trace_release(&other);
}

/* An agentic row. */
#define NODE(id, rest)                                                                             \
    "{\"request_id\":\"" id "\",\"input_length\":9,\"output_length\":1" rest "}\n"
#define WAITS(ids) ",\"wait_for\":[" ids "]"

Test(trace_mooncake, rows_wait_for_others_by_name)
{
    struct trace t = loaded(
        NODE("join", WAITS("\"left\", \"right\", \"left\"") DELAY(3) ",\"tool_wait_ms\":4" AT(1))
            NODE("root", AT(10) ",\"branches\":[\"left\",\"right\"],\"prefix_reset\":true")
                NODE("left", WAITS("\"root\"") AT(20)) NODE("right", WAITS("\"root\"") DELAY(50))
                    NODE("late", WAITS("\"join\"") ",\"tool_wait_ms\":1.5"));
    cr_assert_eq(t.n, 5);
    expect_request(&t, 0, "2 at 0");
    expect_request(&t, 1, "3 at 0+0 after 2");
    expect_request(&t, 2, "4 at 50+50 after 2");
    expect_request(&t, 3, "1 at 57+7 after 3,4");
    expect_request(&t, 4, "5 at 58.5+1.5 after 1");
    cr_expect_eq(count_notes(&t), 0);
    trace_release(&t);
}

Test(trace_mooncake, rows_look_through_skipped_ones_and_note_missing_ones)
{
    struct trace t = loaded(
        NODE("a", AT(0)) "{\"request_id\":\"b\",\"input_length\":9,\"output_length\":0,\"wait_"
                         "for\":[\"a\",\"c\"]}\n"
                         "{\"request_id\":\"c\",\"input_length\":9,\"output_length\":0,\"wait_"
                         "for\":[\"b\"]}\n" NODE("d", WAITS("\"c\", \"gone\"") DELAY(2))
                             NODE("e", WAITS("\"gone\"") AT(40) DELAY(2)));
    cr_assert_eq(t.n, 3);
    expect_request(&t, 1, "4 at 2+2 after 1");
    expect_request(&t, 2, "5 at 40");
    cr_expect_eq(t.request[2].delay_ps, 0);
    cr_expect_eq(t.noted[NOTE_NO_PARENT], 1);
    trace_release(&t);
}

Test(trace_mooncake, a_turn_may_follow_one_that_waits_by_name)
{
    struct trace t = loaded(NODE(
        "a", AT(0)) "{\"request_id\":\"b\",\"session_id\":\"s\",\"wait_for\":[\"a\"],"
                    "\"input_length\":9,\"output_length\":1,\"delay\":6}\n" TURN("s", DELAY(4)));
    expect_request(&t, 1, "2 at 6+6 after 1");
    expect_request(&t, 2, "3 at 10+4 after 2");
    trace_release(&t);
}

/* Of 33 tokens: 3 blocks of 16 when started ones count, 2 when whole ones do. */
#define HASHED(ms, n, ids)                                                                         \
    "{\"timestamp\":" #ms ",\"input_length\":" #n ",\"output_length\":1,\"hash_ids\":[" ids "]}\n"

Test(trace_mooncake, the_number_of_hashes_tells_the_block_size)
{
    struct trace t = loaded(HASHED(0, 15, "") HASHED(0, 33, "1,2,3") HASHED(0, 33, "1,2"));
    cr_expect_eq(t.block_tokens, 16);
    cr_expect_eq(trace_prefix_max(&t).hit_tokens, 32);
    trace_release(&t);

    t = loaded(HASHED(0, 15, "1") HASHED(0, 8, "1"));
    cr_expect_eq(t.block_tokens, 512, "fits both");
    trace_release(&t);

    t = loaded_as(HASHED(0, 129, "1,2,3") HASHED(0, 129, "1,2"),
                  (struct trace_reading){.block_tokens = 64});
    cr_expect_eq(t.block_tokens, 64);
    trace_release(&t);
}

static const struct {
    const char *text, *message;
} malformed[] = {
    {HASHED(0, 33, "1,2,3,4"), ":1: has 4 hash_ids, but its input_length of 33 makes 1 blocks of "
                               "512 tokens, 3 of 16"},
    {HASHED(0, 33, "1") HASHED(0, 33, "1,2,3"),
     ":2: has 3 hash_ids, but its input_length of 33 makes 1 blocks of 512 tokens"},
    {HASHED(0, 9, "18446744073709551616"), ":1: \"hash_ids\"[0]: expected a whole number >= 0"},
    {HASHED(0, 9, "\"12\""), ":1: \"hash_ids\"[0]: expected a whole number >= 0"},
    {HASHED(0, 9, "-9223372036854775809"), ":1: column "},
    {HASHED(99999999999999999999999999999, 9, "1"),
     ":1: \"timestamp\": \"99999999999999999999999999999\" is too large"},
    {TURN("a", AT(0) ",\"created_time\":1"),
     ":1: \"timestamp\" and \"created_time\" mean the same; drop one"},
    {TURN("a", AT(0) ",\"message_mode\":\"delta\""), ":1: \"message_mode\": only rows with"},
    {TURN("a", DELAY(1)), ":1: no key \"timestamp\": nothing says when session \"a\" begins "
                          "(--arrivals X draws it)"},
    {TURN("a", AT(0)) TURN("a", DELAY(-1)), ":2: \"delay\": \"-1\" is negative"},
    {TURN("a", AT(0)) TURN("a", DELAY(8640000000)), ":2: waits 100 days or more"},
    {TURN("a", AT(0)) TURN("a", DELAY(8000000000)) TURN("a", DELAY(8000000000)),
     ":3: comes 100 days or more after another request"},
    {TURN("[1]", AT(0)) "{\"session_id\":[1],\"timestamp\":0,\"input_length\":5,"
                        "\"output_length\":5}\n",
     ":2: \"session_id\": expected a string or a whole number"},
    {TURN("a", AT(0)) TURN("a", DELAY(1)) TURN("b", AT(0) DELAY(1)) TURN("b", ""),
     ": \"delay\": missing on the first turn of session \"a\", as if it were before a turn, but on "
     "the last of \"b\", as if after: say which with --delay"},
    {"{\"timestamp\":0,\"input_length\":5,\"output_length\":5,\"delay\":1}\n",
     ":1: \"delay\": no \"session_id\" says which turn is the one before"},
    {NODE("a", AT(0)) NODE("a", AT(1)), ":2: \"a\" is the name of line 1 too"},
    {NODE("a", AT(0)) NODE("b", WAITS("\"b\"")), ":2: waits for itself"},
    {NODE("a", WAITS("\"b\"")) NODE("b", WAITS("\"a\"")), ": waits for itself, by way of"},
    {NODE("a", AT(0)) NODE("b", WAITS("\"c\"")),
     ":2: nothing that it waits for is in the file, and it has no time of its own"},
    {NODE("a", AT(0)) NODE("b", WAITS("{}")),
     ":2: \"wait_for\"[0]: expected the request_id of a row"},
    {NODE("a", AT(0) ",\"wait_for\":3"), ":1: \"wait_for\": expected an array"},
    {"{\"wait_for\":[\"a\"],\"input_length\":5,\"output_length\":5}\n",
     ":1: no key \"request_id\""},
};

Test(trace_mooncake, refuses_malformed_rows_with_place_and_cause)
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
