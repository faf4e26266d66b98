/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary form: what is written loads as the same trace, anything else is refused. Runs in the
 * root of the repository, for the samples.
 */
#include "traces/wtt.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/order.h"

/* Where things are, by docs/formats.md. */
enum {
    AT_VERSION = 8,
    AT_BLOCK_TOKENS = 12,
    AT_REQUESTS = 16,
    AT_HASHES = 24,
    AT_SESSIONS = 40,
    AT_ORIGIN_HIGH = 64,
    AT_OUT_OF_ORDER = 72,
    AT_SKIPS = 80,
    AT_CALENDAR = 88,
    HEAD = 96,
    REQUEST = 56
};

struct bytes {
    char *data;
    size_t n;
};

static struct bytes written(const struct trace *t)
{
    struct bytes b;
    FILE *f = open_memstream(&b.data, &b.n);
    wtt_write(t, f);
    fclose(f);
    return b;
}

static int load(struct trace *t, const char *data, size_t n, struct err *err)
{
    char path[] = "/tmp/test_wtt_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
    int rc = trace_load(t, path, &(struct trace_reading){0}, err);
    unlink(path);
    return rc;
}

static void expect_same_request(const struct trace *a, const struct trace *b, size_t i)
{
    const struct trace_request *x = &a->request[i], *y = &b->request[i];
    cr_assert_eq(x->arrival_ps, y->arrival_ps);
    cr_assert_eq(x->delay_ps, y->delay_ps);
    cr_assert_eq(x->input_tokens, y->input_tokens);
    cr_assert_eq(x->output_tokens, y->output_tokens);
    cr_assert_eq(x->line, y->line);
    cr_assert_eq(x->session, y->session);
    cr_assert_eq(x->n_hashes, y->n_hashes);
    cr_assert_eq(x->n_after, y->n_after);
    for (uint32_t k = 0; k < x->n_hashes; k++)
        cr_assert_eq(a->hash[x->hash_at + k], b->hash[y->hash_at + k]);
    for (uint32_t k = 0; k < x->n_after; k++)
        cr_assert_eq(a->after[x->after_at + k], b->after[y->after_at + k]);
}

static void expect_same(const struct trace *a, const struct trace *b)
{
    cr_assert_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        expect_same_request(a, b, i);
    cr_assert_eq(a->session.n, b->session.n);
    for (size_t i = 0; i < a->session.n; i++)
        cr_assert_str_eq(a->session.name[i], b->session.name[i]);
    cr_expect_str_eq(a->path, b->path);
    cr_expect_str_eq(a->format, b->format);
    cr_expect_arr_eq(a->skipped, b->skipped, sizeof a->skipped);
    cr_expect_arr_eq(a->noted, b->noted, sizeof a->noted);
    cr_expect_eq(a->out_of_order, b->out_of_order);
    cr_expect_eq(a->block_tokens, b->block_tokens);
    cr_expect_eq(a->calendar, b->calendar);
    cr_expect(a->origin_ps == b->origin_ps);
    cr_expect_eq(a->last_ps, b->last_ps);
}

/* There and back, twice: the second time to the byte. */
static void expect_round_trip(const struct trace *t)
{
    struct trace again;
    struct err err = ERR_NONE;
    struct bytes first = written(t), second;
    cr_assert(load(&again, first.data, first.n, &err) == 0, "%s", err.text);
    expect_same(t, &again);
    second = written(&again);
    cr_expect(first.n == second.n && memcmp(first.data, second.data, first.n) == 0);
    trace_release(&again);
    free(first.data);
    free(second.data);
}

static const char *const files[] = {
    "traces/samples/mooncake_conversation.jsonl.gz",
    "traces/samples/azure_2023_code.csv",
    "traces/samples/vidur_splitwise_conv.csv",
    "traces/samples/servegen_deepseek-r1_chunk-3-trace.csv",
    "../shared/traces/mooncake/synthetic_trace.jsonl",
    "../shared/traces/azure2023/AzureLLMInferenceTrace_conv.csv",
    "../shared/traces/vidur/splitwise_code.csv",
};

Test(trace_wtt, every_format_comes_back_field_by_field)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct trace t;
        struct err err = ERR_NONE;
        struct trace_select some = TRACE_SELECT_ALL;
        if (access(files[i], R_OK) != 0)
            continue; /* the public ones are not with everyone */
        cr_assert(trace_load(&t, files[i], &(struct trace_reading){0}, &err) == 0, "%s", err.text);
        expect_round_trip(&t);
        some.sample_frac = 0.5; /* leaves hashes that are no request's any more */
        some.spread_ps = PS_PER_S;
        cr_assert(trace_select(&t, &some, 1, &err) == 0, "%s", err.text);
        expect_round_trip(&t);
        trace_release(&t);
    }
}

static void add(struct trace *t, int64_t at_s, int hashes)
{
    struct err err = ERR_NONE;
    cr_assert_eq(trace_add(t, at_s * PS_PER_S, 25, 5, (long)t->n + 2, &err), 1);
    for (int i = 0; i < hashes; i++)
        trace_add_hash(t, UINT64_MAX - (uint64_t)i);
}

/* By time: line 3 at 0 s, line 4 (waits 2 s for it) at 2 s, line 2 at 9 s, line 5 (waits 0 s for
 * lines 2 and 4) at 9 s. */
static struct trace made(void)
{
    struct err err = ERR_NONE;
    struct trace t = {.path = xstrdup("made.up"), .format = "mooncake", .block_tokens = 10};
    add(&t, 109, 3);
    trace_set_session(&t, "b");
    add(&t, 100, 2);
    trace_set_session(&t, "a");
    trace_add_waiting(&t, 2 * PS_PER_S, 7, 8, 4, &err);
    trace_wait_for(&t, 1);
    trace_set_session(&t, "a");
    trace_add_waiting(&t, 0, 1, 1, 5, &err);
    trace_wait_for(&t, 0);
    trace_wait_for(&t, 2);
    t.skipped[SKIP_FAILED] = 3;
    t.noted[NOTE_SHRUNK] = 4;
    t.out_of_order = 1;
    t.calendar = true;
    cr_assert_eq(order_requests(&t, &err), 0, "%s", err.text);
    return t;
}

Test(trace_wtt, waits_sessions_and_facts_come_back)
{
    struct trace t = made(), again;
    struct err err = ERR_NONE;
    struct bytes b = written(&t);
    cr_assert(load(&again, b.data, b.n, &err) == 0, "%s", err.text);
    expect_same(&t, &again);
    cr_expect_eq(again.request[3].line, 5);
    cr_expect_eq(again.after[again.request[3].after_at], 2);
    cr_expect_eq(again.after[again.request[3].after_at + 1], 1);
    cr_expect_eq(again.hash[again.request[2].hash_at], UINT64_MAX);
    cr_expect_str_eq(again.session.name[again.request[0].session], "a");
    cr_expect(again.origin_ps == 100 * (__int128)PS_PER_S && again.calendar);
    trace_release(&again);
    expect_round_trip(&t);
    trace_release(&t);
    free(b.data);
}

static uint64_t number_at(const struct bytes *b, size_t at, size_t width)
{
    uint64_t value = 0;
    memcpy(&value, b->data + at, width);
    return value;
}

Test(trace_wtt, its_layout_is_the_documented_one)
{
    struct trace t = made();
    struct bytes b = written(&t);
    size_t counts = 8 * (SKIP_COUNT + NOTE_COUNT), texts = 9 + 8 + 2 + 2;
    cr_assert_eq(b.n, HEAD + 4 * REQUEST + 5 * 8 + counts + 3 * 4 + texts + 4);
    cr_expect_arr_eq(b.data, "\x89WTT\r\n\x1a\n", 8);
    cr_expect_eq(number_at(&b, AT_VERSION, 4), 2);
    cr_expect_eq(number_at(&b, AT_BLOCK_TOKENS, 4), 10);
    cr_expect_eq(number_at(&b, AT_REQUESTS, 8), 4);
    cr_expect_eq(number_at(&b, AT_HASHES, 8), 5);
    cr_expect_eq(number_at(&b, AT_SESSIONS, 8), 2);
    cr_expect_eq(number_at(&b, AT_SKIPS, 4), SKIP_COUNT);
    cr_expect_eq(number_at(&b, HEAD + REQUEST, 8), 2 * PS_PER_S, "arrival of the second");
    cr_expect_eq(number_at(&b, HEAD + REQUEST + 32, 8), 4, "its line");
    cr_expect_eq(number_at(&b, HEAD + 4 * REQUEST, 8), UINT64_MAX, "first hash");
    cr_expect_str_eq(b.data + b.n - 4 - texts, "mooncake");
    cr_expect_str_eq(b.data + b.n - 4 - 2, "a");
    cr_expect_eq(number_at(&b, b.n - 4, 4), crc32(0, (const Bytef *)b.data, (uInt)b.n - 4));
    trace_release(&t);
    free(b.data);
}

static void seal(struct bytes *b)
{
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)b->data, (uInt)b->n - 4);
    memcpy(b->data + b->n - 4, &crc, 4);
}

static const struct {
    size_t at, width;
    uint64_t value;
    const char *message;
} lies[] = {
    {AT_VERSION, 4, 3, "is a .wtt of version 3, this program reads versions 1 to 2"},
    {AT_VERSION, 4, 0, "is a .wtt of version 0, this program reads versions 1 to 2"},
    {AT_REQUESTS, 8, 5, "is not as long as its head says"},
    {AT_REQUESTS, 8, UINT64_MAX, "is not as long as its head says"},
    {AT_HASHES, 8, UINT64_MAX / 8, "is not as long as its head says"},
    {AT_SKIPS, 4, UINT32_MAX, "is not as long as its head says"},
    {AT_SESSIONS, 8, 1, "has texts that are nobody's"},
    {AT_SESSIONS, 8, 3, "has fewer names of sessions than sessions"},
    {AT_SESSIONS, 8, UINT64_MAX, "holds no requests, or too many"},
    {AT_BLOCK_TOKENS, 4, 0, "has hashes of blocks without a size that makes sense"},
    {AT_BLOCK_TOKENS, 4, UINT32_MAX, "has hashes of blocks without a size that makes sense"},
    {AT_ORIGIN_HIGH, 8, UINT64_MAX, "has facts that make no sense"},
    {AT_ORIGIN_HIGH, 8, INT64_MAX, "has facts that make no sense"},
    {AT_OUT_OF_ORDER, 8, UINT64_MAX, "has facts that make no sense"},
    {AT_CALENDAR, 8, 2, "has facts that make no sense"},
    {HEAD + 4 * REQUEST + 5 * 8, 8, UINT64_MAX, "has facts that make no sense"},
    {HEAD, 8, 1, "request 0 is not in the order of time"},
    {HEAD + REQUEST, 8, UINT64_MAX, "request 1 is not in the order of time"},
    {HEAD + 2 * REQUEST, 8, 1, "request 2 is not in the order of time"},
    {HEAD + 3 * REQUEST, 8, INT64_MAX, "request 3 is not in the order of time"},
    {HEAD + REQUEST, 8, 3 * PS_PER_S, "request 1 comes at another time"},
    {HEAD + REQUEST + 8, 8, UINT64_MAX, "request 1 comes at another time"},
    {HEAD + 2 * REQUEST + 8, 8, 5, "request 2 comes at another time"},
    {HEAD + 16, 8, 0, "request 0 has no lengths that make sense"},
    {HEAD + 16, 8, UINT64_MAX, "request 0 has no lengths that make sense"},
    {HEAD + 24, 8, TRACE_TOKENS_MAX + 1, "request 0 has no lengths that make sense"},
    {HEAD + 32, 8, UINT64_MAX, "request 0 has no lengths that make sense"},
    {HEAD + 40, 4, 6, "request 0 has more hashes or waits than are there"},
    {HEAD + 40, 4, UINT32_MAX, "request 0 has more hashes or waits than are there"},
    {HEAD + 40, 4, 1, "has hashes or waits that are no request's"},
    {HEAD + 44, 4, 1, "request 0 waits for one that is not before it"},
    {HEAD + 44, 4, UINT32_MAX, "request 0 shares what one waits for that waits for nothing"},
    {HEAD + 3 * REQUEST + 44, 4, UINT32_MAX, "request 3 shares what one waits for that waits"},
    {HEAD + 48, 8, 2, "request 0 is of a session that does not exist"},
    {HEAD + 48, 8, UINT64_MAX - 1, "request 0 is of a session that does not exist"},
};

Test(trace_wtt, version_1_is_read)
{
    struct trace t = made(), again;
    struct err err = ERR_NONE;
    struct bytes b = written(&t);
    b.data[AT_VERSION] = 1;
    seal(&b);
    cr_assert(load(&again, b.data, b.n, &err) == 0, "%s", err.text);
    expect_same(&t, &again);
    trace_release(&again);
    trace_release(&t);
    free(b.data);
}

/* Four, and four that wait for these. */
Test(trace_wtt, a_list_that_requests_share_is_there_once)
{
    struct err err = ERR_NONE;
    struct trace t = {.path = xstrdup("made.up"), .format = "mooncake"}, again;
    for (long i = 0; i < 8; i++) {
        int rc = i < 4 ? trace_add(&t, 0, 1, 1, i, &err) : trace_add_waiting(&t, 5, 1, 1, i, &err);
        cr_assert_eq(rc, 1);
        for (size_t k = 0; k < 4 && i == 4; k++)
            trace_wait_for(&t, k);
        if (i > 4)
            trace_wait_like(&t, 4);
    }
    cr_assert_eq(order_requests(&t, &err), 0, "%s", err.text);
    struct bytes b = written(&t);
    cr_expect_eq(b.n, HEAD + 8 * REQUEST + 8 * (SKIP_COUNT + NOTE_COUNT) + 4 * 4 + 9 + 8 + 4);
    cr_assert(load(&again, b.data, b.n, &err) == 0, "%s", err.text);
    expect_same(&t, &again);
    cr_expect_eq(again.n_after, 4);
    for (size_t i = 4; i < 8; i++)
        cr_expect(again.request[i].n_after == 4 && again.request[i].arrival_ps == 5);
    trace_release(&again);
    expect_round_trip(&t);
    trace_release(&t);
    free(b.data);
}

Test(trace_wtt, refuses_lies_under_a_checksum_that_fits)
{
    struct trace t = made();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct err err = ERR_NONE;
        struct trace loaded = {.n = 77};
        struct bytes b = written(&t);
        memcpy(b.data + lies[i].at, &lies[i].value, lies[i].width);
        seal(&b);
        cr_expect_eq(load(&loaded, b.data, b.n, &err), -1, "%s", lies[i].message);
        cr_expect_not_null(strstr(err.text, lies[i].message), "%zu: expected \"%s\", got \"%s\"", i,
                           lies[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && loaded.n == 77, "written on failure");
        free(b.data);
    }
    trace_release(&t);
}

Test(trace_wtt, keeps_the_name_of_a_format_that_no_reader_has)
{
    static const struct {
        const char *name;
        int rc;
    } names[] = {{"Mooncake", 0},
                 {"agentic", 0},
                 {"12345678901234567890123456789012", 0},
                 {"123456789012345678901234567890123", -1},
                 {"", -1},
                 {"a\nb", -1}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct trace t = made(), loaded;
        struct err err = ERR_NONE;
        t.format = names[i].name;
        struct bytes b = written(&t);
        cr_assert_eq(load(&loaded, b.data, b.n, &err), names[i].rc, "%s", names[i].name);
        if (names[i].rc == 0) {
            cr_expect_str_eq(loaded.format, names[i].name);
            trace_release(&loaded);
        }
        trace_release(&t);
        free(b.data);
    }
}

Test(trace_wtt, refuses_texts_that_are_no_format_or_do_not_end)
{
    struct trace t = made();
    struct err err = ERR_NONE;
    struct trace loaded;
    struct bytes b = written(&t);
    size_t texts = b.n - 4 - (9 + 8 + 2 + 2);
    b.data[texts] = '\a';
    seal(&b);
    cr_expect_eq(load(&loaded, b.data, b.n, &err), -1);
    cr_expect_not_null(strstr(err.text, "is of a format without a name"), "%s", err.text);

    err = ERR_NONE;
    b.data[texts] = 'm';
    b.data[b.n - 5] = 'x';
    seal(&b);
    cr_expect_eq(load(&loaded, b.data, b.n, &err), -1);
    cr_expect_not_null(strstr(err.text, "has fewer names of sessions"), "%s", err.text);

    err = ERR_NONE;
    memcpy(b.data + b.n - 8, "a\0a", 4);
    seal(&b);
    cr_expect_eq(load(&loaded, b.data, b.n, &err), -1);
    cr_expect_not_null(strstr(err.text, "or one twice"), "%s", err.text);
    trace_release(&t);
    free(b.data);
}

Test(trace_wtt, every_cut_and_every_flipped_bit_is_noticed)
{
    struct trace t = made(), loaded;
    struct bytes b = written(&t);
    for (size_t n = 0; n < b.n; n++) {
        struct err err = ERR_NONE;
        cr_expect_eq(load(&loaded, b.data, n, &err), -1, "cut to %zu bytes", n);
    }
    for (size_t bit = 0; bit < 8 * b.n; bit++) {
        struct err err = ERR_NONE;
        b.data[bit / 8] ^= (char)(1 << bit % 8);
        cr_expect_eq(load(&loaded, b.data, b.n, &err), -1, "bit %zu flipped", bit);
        b.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    trace_release(&t);
    free(b.data);
}
