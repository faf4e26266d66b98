/* SPDX-License-Identifier: Apache-2.0
 *
 * The edge of a range, by bisection, against looking at every number of it.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "sim/study/bisection.h"

/* What holds is drawn: '+' at low, low + 1, ... */
struct picture {
    const char *holds;
    int64_t low, fails_at;
    int tries;
};

static int look(void *context, struct bisection_trial *t, struct err *err)
{
    struct picture *p = context;
    p->tries++;
    t->holds = p->holds[t->at - p->low] == '+';
    t->score = (double)t->at;
    return t->at == p->fails_at ? err_set(err, "no such number") : 0;
}

static struct bisection search_of(struct picture *p, bool rising, int extra)
{
    return (struct bisection){.low = p->low,
                              .high = p->low + (int64_t)strlen(p->holds) - 1,
                              .rising = rising,
                              .extra = extra,
                              .try = look,
                              .context = p};
}

static struct bisection_result run(const char *holds, bool rising, int extra)
{
    struct picture p = {.holds = holds, .low = 1};
    struct bisection s = search_of(&p, rising, extra);
    struct bisection_result r;
    struct err err = ERR_NONE;
    cr_assert_eq(bisection_run(&s, &r, &err), 0);
    cr_assert_eq((size_t)p.tries, r.n, "none is tried twice");
    return r;
}

static int64_t answer(const struct bisection_result *r)
{
    return r->trial[r->answer].at;
}

/* Every edge of every range up to 33, in both directions. */
Test(bisection, finds_what_looking_at_every_number_finds)
{
    char holds[34] = "";
    for (int n = 1; n <= 33; n++) {
        for (int edge = 0; edge <= n; edge++) {
            memset(holds, '+', (size_t)edge);
            memset(holds + edge, '-', (size_t)(n - edge));
            holds[n] = '\0';
            struct bisection_result falling = run(holds, false, 0);
            enum bisection_end end = edge == 0   ? BISECTION_NEVER
                                     : edge == n ? BISECTION_ALWAYS
                                                 : BISECTION_FOUND;
            cr_assert_eq(falling.end, end, "%s", holds);
            cr_assert(edge == 0 || answer(&falling) == edge, "%s", holds);
            cr_assert(bisection_is_monotone(&falling));
            bisection_result_release(&falling);
            memset(holds, '-', (size_t)(n - edge));
            memset(holds + n - edge, '+', (size_t)edge);
            struct bisection_result rising = run(holds, true, 0);
            cr_assert_eq(rising.end, end, "%s", holds);
            cr_assert(edge == 0 || answer(&rising) == n - edge + 1, "%s", holds);
            bisection_result_release(&rising);
        }
    }
}

/* 1 and 9 first; the middle of 1 and 9 is 5, of 5 and 9 7, of 5 and 7 6. */
Test(bisection, shows_the_bracket_after_each_trial)
{
    static const int64_t at[] = {1, 9, 5, 7, 6}, low[] = {1, 1, 5, 5, 6}, high[] = {9, 9, 9, 7, 7};
    struct bisection_result r = run("++++++---", false, 0);
    cr_assert_eq(r.n, 5);
    for (size_t i = 0; i < r.n; i++) {
        cr_expect_eq(r.trial[i].at, at[i]);
        cr_expect_eq(r.trial[i].low, low[i]);
        cr_expect_eq(r.trial[i].high, high[i]);
        cr_expect_eq(r.trial[i].score, (double)at[i]);
    }
    cr_expect_eq(answer(&r), 6);
    bisection_result_release(&r);
}

/* The same, then from 6: 7, 5, 8 and 4, of which 7 and 5 are known. */
Test(bisection, tries_what_is_new_next_to_the_edge)
{
    struct bisection_result r = run("++++++---", false, 2);
    cr_assert_eq(r.n, 7);
    cr_expect_eq(r.trial[5].at, 8);
    cr_expect_eq(r.trial[6].at, 4);
    cr_expect_eq(r.trial[6].low, 6);
    cr_expect_eq(r.trial[6].high, 7);
    cr_expect(bisection_is_monotone(&r));
    bisection_result_release(&r);
    r = run("++++++---", false, 100);
    cr_expect_eq(r.n, 9, "the range has no more");
    bisection_result_release(&r);
}

/* Bisection tries 1, 9, 5, 3, 4 and comes upon 4; 8 holds too, and only an extra trial sees it. */
Test(bisection, says_when_there_is_more_than_one_edge)
{
    struct bisection_result r = run("++++---+-", false, 0);
    cr_expect_eq(answer(&r), 4);
    cr_expect(bisection_is_monotone(&r), "nothing seen speaks against it");
    bisection_result_release(&r);
    r = run("++++---+-", false, 5);
    cr_expect_eq(answer(&r), 4);
    cr_assert_not(bisection_is_monotone(&r));
    cr_expect_eq(r.trial[r.breach].at, 8);
    cr_expect_eq(r.trial[r.broken].at, 5);
    bisection_result_release(&r);
}

/* Ends are enough for that: 1 does not hold, 5 does. */
Test(bisection, sees_ends_the_wrong_way_round)
{
    struct bisection_result r = run("--+++", false, 0);
    cr_expect_eq(r.end, BISECTION_NEVER);
    cr_expect_not(bisection_is_monotone(&r));
    bisection_result_release(&r);
    r = run("++---", true, 0);
    cr_expect_eq(r.end, BISECTION_NEVER);
    cr_expect_not(bisection_is_monotone(&r));
    bisection_result_release(&r);
}

/* Nothing to bisect: three more, a quarter of the way from 1 to 9 apart. */
Test(bisection, spreads_extra_trials_where_no_edge_is)
{
    static const int64_t at[] = {1, 9, 3, 5, 7};
    struct bisection_result r = run("++++-++++", false, 3);
    cr_assert_eq(r.n, 5);
    for (size_t i = 0; i < r.n; i++)
        cr_expect_eq(r.trial[i].at, at[i]);
    cr_expect_eq(r.end, BISECTION_ALWAYS);
    cr_expect_eq(answer(&r), 9);
    cr_expect_not(bisection_is_monotone(&r));
    bisection_result_release(&r);
}

Test(bisection, ends_with_a_trial_that_fails)
{
    struct picture p = {.holds = "++++++---", .low = 1, .fails_at = 7};
    struct bisection s = search_of(&p, false, 0);
    struct bisection_result r;
    struct err err = ERR_NONE;
    cr_expect_eq(bisection_run(&s, &r, &err), -1);
    cr_expect_str_eq(err.text, "no such number");
    cr_expect_eq(p.tries, 4);
    bisection_result_release(&r);
}
