/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that wait for others: their times, their order, and what selections do to them. Traces
 * are made as readers make them, then ordered.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/order.h"

static struct trace begin(void)
{
    return (struct trace){.path = xstrdup("made.up"), .block_tokens = 10};
}

static void add(struct trace *t, int64_t at_s)
{
    struct err err = ERR_NONE;
    cr_assert_eq(trace_add(t, at_s * PS_PER_S, 25, 5, (long)t->n + 1, &err), 1, "%s", err.text);
}

static void add_waiting(struct trace *t, int64_t delay_s, size_t request)
{
    struct err err = ERR_NONE;
    cr_assert_eq(trace_add_waiting(t, delay_s * PS_PER_S, 25, 5, (long)t->n + 1, &err), 1, "%s",
                 err.text);
    trace_wait_for(t, request);
}

static void order(struct trace *t)
{
    struct err err = ERR_NONE;
    cr_assert_eq(order_requests(t, &err), 0, "%s", err.text);
}

/* Times in seconds and lines, which count the additions from 1. */
static void expect(const struct trace *t, const int *at_s, const int *line, size_t n)
{
    cr_assert_eq(t->n, n);
    for (size_t i = 0; i < n; i++) {
        const struct trace_request *r = &t->request[i];
        cr_expect_eq(r->arrival_ps, at_s[i] * PS_PER_S, "%zu: %g s", i, ps_to_s(r->arrival_ps));
        cr_expect_eq(r->line, line[i], "%zu: line %ld", i, r->line);
        for (uint32_t k = 0; k < r->n_after; k++)
            cr_expect_lt(t->after[r->after_at + k], i);
    }
}

/* 1 at 10 s, 3 waits 5 s for 2, which comes at 0 s and in the file before it; 4 waits for both. */
static struct trace fan_in(void)
{
    struct trace t = begin();
    add(&t, 10);
    add(&t, 0);
    add_waiting(&t, 5, 1);
    add_waiting(&t, 2, 0);
    trace_wait_for(&t, 2);
    return t;
}

Test(trace_order, what_waits_comes_after_the_last_that_it_waits_for)
{
    struct trace t = fan_in();
    order(&t);
    expect(&t, (int[]){0, 5, 10, 12}, (int[]){2, 3, 1, 4}, 4);
    cr_expect_eq(t.request[3].n_after, 2);
    cr_expect_eq(t.after[t.request[3].after_at], 2);
    cr_expect_eq(t.after[t.request[3].after_at + 1], 1);
    trace_release(&t);
}

Test(trace_order, parents_may_come_later_in_the_file)
{
    struct trace t = begin();
    add_waiting(&t, 0, 2);
    add_waiting(&t, 1, 0);
    add(&t, 7);
    order(&t);
    expect(&t, (int[]){0, 0, 1}, (int[]){3, 1, 2}, 3);
    trace_release(&t);
}

Test(trace_order, refuses_circles_and_too_long_chains)
{
    struct err err = ERR_NONE;
    struct trace t = begin();
    add(&t, 0);
    add_waiting(&t, 0, 2);
    add_waiting(&t, 0, 1);
    cr_expect_eq(order_requests(&t, &err), -1);
    cr_expect_not_null(strstr(err.text, "made.up:3: waits for itself"), "%s", err.text);
    trace_release(&t);

    err = ERR_NONE;
    t = begin();
    add(&t, 0);
    add_waiting(&t, 60 * 86400, 0);
    add_waiting(&t, 60 * 86400, 1);
    cr_expect_eq(order_requests(&t, &err), -1);
    cr_expect_not_null(strstr(err.text, "made.up:3: comes 100 days"), "%s", err.text);
    trace_release(&t);
}

static void choose(struct trace *t, const struct trace_select *s)
{
    struct err err = ERR_NONE;
    cr_assert_eq(trace_select(t, s, 1, &err), 0, "%s", err.text);
}

Test(trace_order, what_waits_goes_with_what_it_waits_for)
{
    struct trace_select s = TRACE_SELECT_ALL;
    struct trace t = fan_in();
    order(&t);
    s.to_ps = 6 * PS_PER_S; /* 1 comes too late, and 4 waits for it */
    choose(&t, &s);
    expect(&t, (int[]){0, 5}, (int[]){2, 3}, 2);
    trace_release(&t);

    t = fan_in();
    order(&t);
    s = TRACE_SELECT_ALL;
    s.rate = 2; /* not the waits */
    choose(&t, &s);
    expect(&t, (int[]){0, 5, 5, 7}, (int[]){2, 3, 1, 4}, 4);
    trace_release(&t);
}

Test(trace_order, a_session_is_sampled_as_one)
{
    struct trace_select s = TRACE_SELECT_ALL;
    struct trace t = begin();
    char name[8];
    int of_session[100] = {0}, kept = 0;
    for (int i = 0; i < 400; i++) {
        add(&t, i);
        snprintf(name, sizeof name, "%d", i % 100);
        trace_set_session(&t, name);
    }
    order(&t);
    s.sample_frac = 0.5;
    choose(&t, &s);
    for (size_t i = 0; i < t.n; i++)
        of_session[t.request[i].session]++;
    for (int i = 0; i < 100; i++) {
        cr_expect(of_session[i] == 0 || of_session[i] == 4, "%d", of_session[i]);
        kept += of_session[i] > 0;
    }
    cr_expect(kept > 30 && kept < 70, "%d", kept);
    trace_release(&t);
}

/* Of 25 tokens in blocks of 10: 3 blocks. */
Test(trace_order, prompts_share_whole_blocks)
{
    struct trace t = begin();
    add(&t, 0);
    trace_share_prompt(&t, 0, 0);
    add(&t, 1);
    trace_share_prompt(&t, 0, 19);
    add(&t, 2);
    trace_share_prompt(&t, 1, 1000);
    cr_assert_eq(t.n_hashes, 9);
    cr_expect_eq(t.hash[3], t.hash[0]);
    cr_expect_neq(t.hash[4], t.hash[1]);
    cr_expect_eq(t.hash[6], t.hash[3]);
    cr_expect_eq(t.hash[7], t.hash[4]);
    cr_expect_neq(t.hash[8], t.hash[5], "the third block is half full");
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 1 + 2);
    trace_release(&t);
}

Test(trace_order, a_cap_cuts_waits_and_is_counted)
{
    struct trace_select s = TRACE_SELECT_ALL;
    struct trace t = fan_in();
    order(&t);
    s.wait_cap_ps = 3 * PS_PER_S; /* of 5 s and 2 s */
    choose(&t, &s);
    expect(&t, (int[]){0, 3, 10, 12}, (int[]){2, 3, 1, 4}, 4);
    cr_expect_eq(t.waits_capped, 1);
    cr_expect_eq(t.request[1].delay_ps, 3 * PS_PER_S);
    trace_release(&t);
}

Test(trace_order, prompts_of_impossible_length_have_no_blocks)
{
    struct err err = ERR_NONE;
    struct trace t = begin();
    cr_assert_eq(trace_add(&t, 0, 1LL << 25, 5, 1, &err), 1);
    trace_share_prompt(&t, 0, 0);
    cr_expect_eq(t.n_hashes, 0);
    trace_release(&t);
}

/* Blocks of 10: 0 1 | 0 1 2, kept once | 0 1 2 again, since there is no other end to it | 0 and a
 * block of its own | nothing shared. */
Test(trace_order, prompts_of_whole_blocks_grow_in_place)
{
    static const int64_t input[] = {25, 39, 39, 25, 10};
    static const uint64_t hash[][3] = {{0, 1}, {0, 1, 2}, {0, 1, 2}, {0, 3}, {4}};
    static const size_t before[] = {0, 0, 1, 1, 0}, at[] = {0, 0, 0, 3, 5};
    static const int64_t shared[] = {0, 25, 39, 19, 0};
    struct trace t = {.path = xstrdup("t"), .format = "mooncake", .block_tokens = 10};
    struct err err = ERR_NONE;
    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(trace_add(&t, (int64_t)i, input[i], 1, 1, &err), 1);
        trace_grow_prompt(&t, before[i], shared[i]);
        const struct trace_request *r = &t.request[i];
        cr_assert_eq(r->n_hashes, input[i] / 10);
        cr_expect_eq(r->hash_at, at[i], "%zu", i);
        cr_expect_arr_eq(&t.hash[r->hash_at], hash[i], r->n_hashes * sizeof *t.hash);
    }
    cr_expect_eq(t.n_hashes, 6);
    cr_assert_eq(trace_finish(&t, &err), 0);
    struct trace_prefix p = trace_prefix_max(&t);
    cr_expect_eq(p.hit_blocks, 0 + 2 + 3 + 1 + 0);
    cr_expect_eq(p.full_hits, 1);
    trace_release(&t);
}
