/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/mem.h"
#include "sim/policy/external.h"

enum { TP, CP, DP, N };

static const struct layout layouts[N] = {{.name = "tp"}, {.name = "cp"}, {.name = "dp"}};

static int64_t price(const struct policy_view *view, int to)
{
    (void)view;
    return 1000 * to;
}

static struct policy_request request(const struct policy_view *view, int64_t i)
{
    (void)view;
    return (struct policy_request){100 + i, 10 * i, 7 - i, (int)i};
}

static struct policy_view view_of(struct candidate c[N])
{
    static const int64_t a[N] = {1000, 950, 4000};
    for (int l = 0; l < N; l++)
        c[l] = (struct candidate){.verdict = FITS, .score = {a[l], 0, 1000000}, .cost.rows = 5};
    c[TP].score.b_ps = 10;
    c[CP].cost.attn = (struct seg){321, 1, 9};
    return (struct policy_view){
        .now_ps = (1LL << 60) + 7,
        .step = 42,
        .current = TP,
        .n = N,
        .candidate = c,
        .steps_left = 10,
        .switch_cost_ps = price,
        .load = {.decoding = 2, .prefilling = 1, .waiting = 4, .waiting_tokens = 77},
        .request = request,
    };
}

/* The policy of a script with this text, in a file that is gone when it runs. */
static int make(struct policy *p, const char *script, const char *options, struct err *err)
{
    char folder[] = "/tmp/wavetank-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char *path = xasprintf("%s/x.lua", folder);
    FILE *out = fopen(path, "w");
    fputs(script, out);
    fclose(out);
    char *text = xasprintf("%s%s", path, options);
    int rc = policy_new(p, text, layouts, N, err);
    free(text);
    unlink(path);
    rmdir(folder);
    free(path);
    return rc;
}

static struct decision ask(struct policy *p, const struct policy_view *view)
{
    return p->kind->decide(p->state, view);
}

static struct decision answer_of(const char *script, const char *options)
{
    struct policy p;
    struct err err = ERR_NONE;
    struct candidate c[N];
    struct policy_view view = view_of(c);
    cr_assert_eq(make(&p, script, options, &err), 0, "%s", err.text);
    struct decision d = ask(&p, &view);
    cr_expect_null(d.fault, "%s", d.fault);
    policy_release(&p);
    return d;
}

Test(external, a_path_is_told_from_a_name)
{
    cr_expect_eq(external_path_len("./mine.so"), 9);
    cr_expect_eq(external_path_len("./mine.so:margin=0.1"), 9);
    cr_expect_eq(external_path_len("a.b/x.lua:file=y.so"), 9);
    cr_expect_eq(external_path_len("splash:margin=0.1"), 0);
    cr_expect_eq(external_path_len("x.sob"), 0);
}

Test(external, silence_means_stay_and_ask_again)
{
    struct decision d = answer_of("return {decide = function() end}", "");
    cr_expect_eq(d.layout, TP);
    cr_expect_eq(d.wanted, TP);
    cr_expect_eq(d.hold, 1);
    cr_expect_eq(d.admit_most, 0);
}

Test(external, an_answer_has_four_parts)
{
    struct decision d = answer_of("return {decide = function() return 2, 9, 'dp', 3 end}", "");
    cr_expect_eq(d.layout, CP);
    cr_expect_eq(d.wanted, DP);
    cr_expect_eq(d.hold, 9);
    cr_expect_eq(d.admit_most, 3);
    d = answer_of("return {decide = function() return 'cp', math.huge end}", "");
    cr_expect_eq(d.layout, CP);
    cr_expect_eq(d.hold, SEG_FOREVER);
}

/* The script checks what it sees itself; a failed assert is a fault. */
Test(external, a_script_sees_all_fields)
{
    answer_of("local function decide(v)\n"
              "  assert(v.step == 42 and v.current == 1 and v.steps_left == 10)\n"
              "  assert(v.since_switch_ps == -1 and v.now_ps == 2^60)\n"
              "  assert(v.n_decoding == 2 and v.n_prefilling == 1)\n"
              "  assert(v.n_waiting == 4 and v.waiting_tokens == 77)\n"
              "  local l = v.layouts[1]\n"
              "  assert(#v.layouts == 3 and l.name == 'tp' and l.fits and not l.never)\n"
              "  assert(l.a_ps == 1000 and l.b_ps == 10 and l.n == 1000000 and l.rows == 5)\n"
              "  assert(v:switch_cost_ps('dp') == 2000 and v:switch_cost_ps(1) == 0)\n"
              "  local proj, attn = v:stages('cp')\n"
              "  assert(proj == 0 and attn == 321)\n"
              "  local ctx, prompt, output, owner = v:request(3)\n"
              "  assert(ctx == 102 and prompt == 20 and output == 5 and owner == 3)\n"
              "  assert(v:request(4) == nil and v:request(0) == nil)\n"
              "end\n"
              "return {decide = decide}",
              "");
}

/* TP costs 1000 + 10 i, CP 950. CP leads by 5% when 0.95 (1000 + 10 i) > 950: from i = 1 on. By
 * 10% when 0.9 (1000 + 10 i) > 950: i > 5.6, from 6 on. */
Test(external, a_lead_is_exact_and_says_how_long_it_stays)
{
    answer_of("local function decide(v)\n"
              "  local yes, hold = v:leads(1, 2, 50000)\n"
              "  assert(not yes and hold == 1)\n"
              "  yes, hold = v:leads('tp', 'cp', 49999)\n"
              "  assert(yes and hold == 1000000)\n"
              "  yes, hold = v:leads(1, 2, 100000)\n"
              "  assert(not yes and hold == 6)\n"
              "end\n"
              "return {decide = decide}",
              "");
}

Test(external, options_reach_init_and_it_may_name_the_start)
{
    struct policy p;
    struct err err = ERR_NONE;
    cr_assert_eq(make(&p,
                      "return {decide = function() end, init = function(s)\n"
                      "  assert(s.options.a == '1' and s.options.b == 'x=y' and s.layouts[3] == "
                      "'dp')\n"
                      "  assert(s.options.mechanism == nil)\n"
                      "  return 'cp' end}",
                      ":a=1,mechanism=blocking,b=x=y", &err),
                 0, "%s", err.text);
    cr_expect_eq(p.start, CP);
    cr_expect_eq(p.common.mechanism, MECH_BLOCKING);
    policy_release(&p);
}

Test(external, chance_repeats_with_the_seed)
{
    static const char script[] = "return {decide = function() return 1, math.random(1000000) end}";
    int64_t zero = answer_of(script, "").hold;
    cr_expect_eq(answer_of(script, "").hold, zero);
    cr_expect_eq(answer_of(script, ":seed=0").hold, zero);
    cr_expect_neq(answer_of(script, ":seed=1").hold, zero);
}

/* now_ps is too large for a double here; the difference is exact. */
Test(external, the_time_since_a_switch_is_exact)
{
    struct policy p;
    struct err err = ERR_NONE;
    struct candidate c[N];
    struct policy_view view = view_of(c);
    cr_assert_eq(
        make(&p, "return {decide = function(v) return 1, v.since_switch_ps end}", "", &err), 0);
    p.kind->switched(p.state, CP, TP, view.now_ps - 12345);
    cr_expect_eq(ask(&p, &view).hold, 12345);
    policy_release(&p);
}

Test(external, what_is_told_is_what_happened)
{
    struct policy p;
    struct err err = ERR_NONE;
    struct candidate c[N];
    struct policy_view view = view_of(c);
    cr_assert_eq(make(&p,
                      "local sum = 0\n"
                      "local function done(layout, n, elapsed_ps, now_ps)\n"
                      "  assert(layout == 3 and now_ps == 99)\n"
                      "  sum = sum + n * elapsed_ps\n"
                      "end\n"
                      "local function switched(from, to, now_ps) sum = sum + 10 * from + to end\n"
                      "return {decide = function() return 1, sum end, step_done = done,\n"
                      "        switched = switched}",
                      "", &err),
                 0, "%s", err.text);
    p.kind->step_done(p.state, DP, 4, 500, 99);
    p.kind->switched(p.state, DP, TP, 100);
    cr_expect_eq(ask(&p, &view).hold, 2000 + 31);
    policy_release(&p);
}

static const struct {
    const char *script, *part;
} faults[] = {
    {"return {decide = function() return 4 end}", "count from 1 to 3"},
    {"return {decide = function() return 0 end}", "count from 1 to 3"},
    {"return {decide = function() return 1.5 end}", "count from 1 to 3"},
    {"return {decide = function() return 0/0 end}", "count from 1 to 3"},
    {"return {decide = function() return {} end}", "not table"},
    {"return {decide = function() return 'xp' end}", "\"xp\" is not in --layouts"},
    {"return {decide = function() return 1, 0 end}", "hold of 0 steps"},
    {"return {decide = function() return 1, 0/0 end}", "hold of -1 steps"},
    {"return {decide = function() return 1, -math.huge end}", "hold of -1 steps"},
    {"return {decide = function() return 1, 1, nil, -1 end}", "admits -1 requests"},
    {"return {decide = function() return 3 end}", "chose layout 2, which does not fit"},
    {"return {decide = function() error('sour') end}", "sour"},
    {"return {decide = function() error({}) end}", "no text"},
    {"return {decide = function() while true do end end}", "more than 1000000 instructions"},
    {"return {decide = function() local s = 'x' while true do s = s .. s end end}",
     "more than 64 MiB of memory"},
    {"return {decide = function() end, switched = function() error('late') end}", "late"},
};

Test(external, a_fault_is_told_once_decide_is_asked)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct policy p;
        struct err err = ERR_NONE;
        struct candidate c[N];
        struct policy_view view = view_of(c);
        c[DP].verdict = FITS_NOT;
        cr_assert_eq(make(&p, faults[i].script, "", &err), 0, "%s", err.text);
        p.kind->switched(p.state, CP, TP, 0);
        struct decision d = ask(&p, &view);
        cr_assert_not_null(d.fault, "%s", faults[i].script);
        cr_expect_not_null(strstr(d.fault, faults[i].part), "%s: %s", faults[i].script, d.fault);
        policy_release(&p);
    }
}

static const struct {
    const char *script, *part;
} bad[] = {
    {"return 1", "returns no table"},
    {"return {}", "no function decide"},
    {"return {decide = 1}", "decide is no function"},
    {"return {decide", "expected"},
    {"\033LJ\002", "attempt to load"},
    {"while true do end", "more than 1000000 instructions"},
    {"return {decide = function() end, init = function() error('bad option') end}", "bad option"},
};

Test(external, a_bad_script_is_refused_at_once)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct policy p;
        struct err err = ERR_NONE;
        cr_assert_eq(make(&p, bad[i].script, "", &err), -1, "%s", bad[i].script);
        cr_expect_not_null(strstr(err.text, bad[i].part), "%s: %s", bad[i].script, err.text);
        cr_expect_eq(err.kind, ERR_INPUT);
    }
}
