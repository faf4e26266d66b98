/* SPDX-License-Identifier: Apache-2.0
 *
 * Objectives: what they mean and what is refused.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/tune/formula.h"

static struct metrics sample(void)
{
    struct metrics m = {{0}};
    m.value[metric_find("switches")] = 10;
    m.value[metric_find("steps")] = 40;
    m.value[metric_find("e2e_s_mean")] = 2;
    m.value[metric_find("goodput_req_s")] = 3;
    m.value[metric_find("ttft_s_p99")] = 0.5;
    return m;
}

static double value(const char *text)
{
    struct formula f;
    struct err err = ERR_NONE;
    struct metrics m = sample();
    cr_assert_eq(formula_parse(&f, "--objective", text, &err), 0, "%s", err.text);
    return formula_value(&f, &m);
}

Test(formula, follows_the_rules_of_arithmetic)
{
    cr_expect_eq(value("1 + 2 * 3"), 7);
    cr_expect_eq(value("(1 + 2) * 3"), 9);
    cr_expect_eq(value("8 / 4 / 2"), 1);
    cr_expect_eq(value("8 - 4 - 2"), 2);
    cr_expect_eq(value("-2 * -3"), 6);
    cr_expect_eq(value("--2"), 2);
    cr_expect_eq(value("1.5e1"), 15);
    cr_expect_eq(value("min(3, 2) + max(3,2)"), 5);
}

Test(formula, reads_metrics)
{
    cr_expect_eq(value("e2e_s_mean + 0.1 * switches"), 3);
    cr_expect_eq(value(" ttft_s_p99 "), 0.5);
}

Test(formula, names_stand_for_expressions)
{
    cr_expect_eq(value("e2e"), 2);
    cr_expect_eq(value("goodput"), -3);
    cr_expect_eq(value("ttft-p99"), 0.5);
    cr_expect_eq(value("switch-penalty"), 2.5); /* 2 (1 + 10 / 40) */
}

Test(formula, every_name_parses)
{
    for (const struct objective *o = objectives; o->name != NULL; o++)
        value(o->name);
}

Test(formula, what_has_no_value_is_nan)
{
    cr_expect(isnan(value("1 / 0")));
    cr_expect(isnan(value("0 / 0 + 1")));
    cr_expect(isnan(value("1e300 * 1e300")));
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "--objective: expected a number, a metric or \"(\" at the end of \"\""},
    {"1 +", "--objective: expected a number, a metric or \"(\" at the end of \"1 +\""},
    {"1 2", "--objective: expected an operator at \"2\""},
    {"(1", "--objective: expected \")\" at the end of \"(1\""},
    {"min(1)", "--objective: expected \",\" at \")\""},
    {"0x10", "--objective: expected a number at \"0x10\""},
    {"1e999", "--objective: expected a number at \"1e999\""},
    {"inf", "--objective: unknown metric \"inf\"; docs/metrics.md has them"},
    {"e2e_s_men", "--objective: unknown metric \"e2e_s_men\" (did you mean \"e2e_s_mean\"?); "
                  "docs/metrics.md has them"},
};

Test(formula, what_is_wrong_is_said)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct formula f;
        struct err err = ERR_NONE;
        cr_expect_eq(formula_parse(&f, "--objective", bad[i].text, &err), -1);
        cr_expect_str_eq(err.text, bad[i].message);
    }
}

Test(formula, depth_and_length_have_limits)
{
    char deep[FORMULA_DEPTH_MAX * 2 + 8], wide[FORMULA_OPS_MAX * 2 + 8];
    struct formula f;
    struct err err = ERR_NONE, other = ERR_NONE;
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    cr_expect_eq(formula_parse(&f, "x", deep, &err), -1);
    cr_expect_str_eq(err.text, "x: nested deeper than 32");
    for (size_t i = 0; i < sizeof wide; i++)
        wide[i] = i % 2 == 0 ? '1' : '+';
    wide[sizeof wide - 1] = '\0';
    cr_expect_eq(formula_parse(&f, "x", wide, &other), -1);
    cr_expect_str_eq(other.text, "x: longer than 128 operations");
}
