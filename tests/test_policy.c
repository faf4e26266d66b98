/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/policy/lead.h"

enum { TP, CP, DP, N };

static struct layout layouts[N] = {{.name = "tp"}, {.name = "cp"}, {.name = "dp"}};
static int64_t price_ps; /* of any switch */

static int64_t price(const struct policy_view *view, int to)
{
    (void)view, (void)to;
    return price_ps;
}

/* Three candidates that cost a + b * i, all of which fit. */
static struct policy_view view_of(struct candidate c[N], const int64_t a[N], const int64_t b[N],
                                  int current)
{
    for (int l = 0; l < N; l++)
        c[l] = (struct candidate){.verdict = FITS, .score = {a[l], b[l], 1000000}};
    return (struct policy_view){
        .current = current, .n = N, .candidate = c, .steps_left = 10, .switch_cost_ps = price};
}

static struct policy made(const char *text)
{
    struct policy p;
    struct err err = ERR_NONE;
    cr_assert_eq(policy_new(&p, text, layouts, N, &err), 0, "%s", err.text);
    return p;
}

static struct decision decide(struct policy *p, const struct policy_view *view)
{
    return p->kind->decide(p->state, view);
}

Test(policy, fixed_stays_for_ever)
{
    struct policy p = made("dp");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1, 1, 100}, (int64_t[]){0, 0, 0}, DP);
    struct decision d = decide(&p, &v);
    cr_expect_eq(p.start, DP);
    cr_expect_not(p.may_switch);
    cr_expect_str_eq(p.name, "fixed:dp");
    cr_expect_eq(d.layout, DP);
    cr_expect_eq(d.hold, SEG_FOREVER);
    policy_release(&p);
}

Test(policy, splash_switches_only_beyond_the_margin)
{
    struct policy p = made("splash:margin=0.05");
    struct candidate c[N];
    struct policy_view at = view_of(c, (int64_t[]){1000, 950, 2000}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(decide(&p, &at).layout, TP, "a lead of exactly the margin is not beyond it");
    struct policy_view past = view_of(c, (int64_t[]){1000, 949, 2000}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(decide(&p, &past).layout, CP);
    policy_release(&p);
}

/* TP costs 1000 + 10 i, CP stays at 1000. The lead passes 5% when 0.95 (1000 + 10 i) > 1000:
 * i > 5.26, so the answer holds for steps 0 to 5. */
Test(policy, the_answer_holds_until_the_margin_is_crossed)
{
    struct policy p = made("splash:margin=0.05");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 1000, 9000}, (int64_t[]){10, 0, 0}, TP);
    struct decision d = decide(&p, &v);
    cr_expect_eq(d.layout, TP);
    cr_expect_eq(d.hold, 6);
    policy_release(&p);
}

Test(policy, a_hold_is_what_asking_at_every_step_would_answer)
{
    struct policy p = made("greedy");
    srand(1);
    for (int round = 0; round < 2000; round++) {
        struct candidate c[N];
        int64_t a[N], b[N];
        for (int l = 0; l < N; l++) {
            a[l] = 900 + rand() % 200;
            b[l] = rand() % 21 - 10;
        }
        struct policy_view v = view_of(c, a, b, rand() % N);
        c[rand() % N].verdict = FITS_NOT;
        c[v.current].verdict = FITS;
        struct decision first = decide(&p, &v);
        int64_t hold = first.hold < 60 ? first.hold : 60;
        for (int64_t i = 0; i <= hold && first.layout == v.current; i++) {
            for (int l = 0; l < N; l++)
                c[l].score.a_ps = a[l] + b[l] * i;
            struct decision d = decide(&p, &v);
            if (i < hold) {
                cr_assert_eq(d.layout, first.layout, "round %d step %d", round, (int)i);
                cr_assert_eq(d.wanted, first.wanted, "round %d step %d", round, (int)i);
            }
        }
    }
    policy_release(&p);
}

Test(policy, a_lead_must_persist)
{
    struct policy p = made("splash:margin=0,persist=3");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 2000}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(decide(&p, &v).layout, TP);
    cr_expect_eq(decide(&p, &v).layout, TP);
    cr_expect_eq(decide(&p, &v).layout, CP);
    policy_release(&p);
}

Test(policy, dwell_counts_from_the_last_switch)
{
    struct policy p = made("splash:margin=0,dwell_ms=2");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 2000}, (int64_t[]){0, 0, 0}, TP);
    p.kind->switched(p.state, DP, TP, 5 * PS_PER_MS);
    v.now_ps = 7 * PS_PER_MS - 1;
    cr_expect_eq(decide(&p, &v).layout, TP);
    v.now_ps = 7 * PS_PER_MS;
    cr_expect_eq(decide(&p, &v).layout, CP);
    policy_release(&p);
}

Test(policy, going_straight_back_needs_the_return_margin_as_well)
{
    struct policy p = made("splash:margin=0.1,return_margin=0.2");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 800, 2000}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(decide(&p, &v).layout, CP);
    p.kind->switched(p.state, CP, TP, 0);
    cr_expect_eq(decide(&p, &v).layout, TP);
    policy_release(&p);
}

Test(policy, a_direction_may_have_its_own_margin)
{
    struct policy p = made("splash:margin=0,margin.tp-cp=0.6");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 700}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(decide(&p, &v).layout, DP);
    policy_release(&p);
}

/* 500 ps a step over 10 steps repay 4999 but not 5000. */
Test(policy, a_charged_switch_must_repay_itself)
{
    struct policy p = made("splash:margin=0,charge=1");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 2000}, (int64_t[]){0, 0, 0}, TP);
    price_ps = 5000;
    cr_expect_eq(decide(&p, &v).layout, TP);
    price_ps = 4999;
    cr_expect_eq(decide(&p, &v).layout, CP);
    policy_release(&p);
}

Test(policy, what_does_not_fit_is_wanted_but_not_chosen)
{
    struct policy p = made("greedy");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 700}, (int64_t[]){0, 0, 0}, TP);
    c[CP].verdict = FITS_NOT;
    struct decision d = decide(&p, &v);
    cr_expect_eq(d.layout, DP);
    cr_expect_eq(d.wanted, CP);
    c[TP].verdict = FITS_NOT;
    c[DP].score.a_ps = 90000;
    cr_expect_eq(decide(&p, &v).layout, DP, "forced out of a layout that does not fit");
    policy_release(&p);
}

static const struct layout kinds[N] = {{.name = "tp", .kind = LAYOUT_TP},
                                       {.name = "cp", .kind = LAYOUT_CP},
                                       {.name = "dp", .kind = LAYOUT_DP}};

static struct policy made_of_kinds(const char *text)
{
    struct policy p;
    struct err err = ERR_NONE;
    cr_assert_eq(policy_new(&p, text, kinds, N, &err), 0, "%s", err.text);
    return p;
}

Test(policy, flying_leaves_other_layouts_alone)
{
    struct policy p = made_of_kinds("flying");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 100, 949}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(p.common.mechanism, MECH_BLOCKING);
    cr_expect_eq(decide(&p, &v).layout, DP, "cp is faster, and not its own");
    c[DP].score.a_ps = 950;
    cr_expect_eq(decide(&p, &v).layout, TP, "a lead of exactly the margin is not beyond it");
    c[TP].verdict = c[DP].verdict = FITS_NOT;
    cr_expect_eq(decide(&p, &v).layout, CP, "a request that only cp holds is served there");
    policy_release(&p);
}

Test(policy, shift_goes_by_rows)
{
    struct policy p = made_of_kinds("shift:threshold=100");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 100, 50}, (int64_t[]){0, 0, 0}, TP);
    c[TP].cost.rows = 100;
    cr_expect_eq(decide(&p, &v).layout, TP, "whatever the times are");
    cr_expect_eq(decide(&p, &v).hold, SEG_FOREVER);
    c[TP].cost.rows = 101;
    cr_expect_eq(decide(&p, &v).layout, CP);
    c[CP].verdict = FITS_NOT;
    cr_expect_eq(decide(&p, &v).layout, TP);
    cr_expect_eq(decide(&p, &v).wanted, CP);
    policy_release(&p);
}

Test(policy, a_restart_waits_for_its_dwell)
{
    struct policy p = made_of_kinds("drain-restart:dwell_ms=2");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){1000, 500, 2000}, (int64_t[]){0, 0, 0}, TP);
    cr_expect_eq(p.common.mechanism, MECH_RESTART);
    p.kind->switched(p.state, DP, TP, 0);
    v.now_ps = 2 * PS_PER_MS - 1;
    cr_expect_eq(decide(&p, &v).layout, TP);
    v.now_ps = 2 * PS_PER_MS;
    cr_expect_eq(decide(&p, &v).layout, CP);
    policy_release(&p);
}

Test(policy, loong_goes_between_its_widths)
{
    struct policy p = made_of_kinds("loong:margin=0");
    struct candidate c[N];
    struct policy_view v = view_of(c, (int64_t[]){10, 600, 500}, (int64_t[]){0, 0, 0}, CP);
    cr_expect_eq(p.start, CP);
    cr_expect_eq(decide(&p, &v).layout, DP);
    policy_release(&p);
}

static const struct {
    const char *text, *part;
} bad[] = {
    {"splsh", "did you mean \"splash\"?"},
    {"splash:margn=0.1", "did you mean \"margin\"?"},
    {"splash:margin=2", "margin"},
    {"splash:margin=nan", "margin"},
    {"splash:margin.tp-xx=0.1", "margin.tp-xx"},
    {"splash:mechanism=teleport", "overlapped"},
    {"fixed:dpp", "did you mean \"dp\"?"},
    {"fixed", "write fixed:"},
    {"greedy:margin=0.1", "margin"},
};

Test(policy, bad_text_is_refused_with_advice)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct policy p;
        struct err err = ERR_NONE;
        cr_assert_eq(policy_new(&p, bad[i].text, layouts, N, &err), -1, "%s", bad[i].text);
        cr_expect_neq(strstr(err.text, bad[i].part), NULL, "%s: %s", bad[i].text, err.text);
    }
}
