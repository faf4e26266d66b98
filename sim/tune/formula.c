/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/formula.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

const struct objective objectives[] = {
    {"e2e", "e2e_s_mean", "mean E2E latency"},
    {"makespan", "makespan_s", "first arrival to last finish"},
    {"goodput", "-goodput_req_s", "most requests a second within --slo"},
    {"ttft-p99", "ttft_s_p99", "99th percentile of the time to the first token"},
    {"tpot-p99", "tpot_s_p99", "99th percentile of the time per output token"},
    {"switch-penalty", "e2e_s_mean * (1 + switches / steps)",
     "mean E2E latency, twice that for a switch at every step"},
    {0},
};

struct parser {
    struct formula *f;
    const char *what, *text, *at;
    int depth;
    struct err *err;
};

static int parse_sum(struct parser *p);

static int fail(struct parser *p, const char *expected)
{
    if (*p->at == '\0')
        return err_set(p->err, "%s: expected %s at the end of \"%s\"", p->what, expected, p->text);
    return err_set(p->err, "%s: expected %s at \"%s\"", p->what, expected, p->at);
}

static void skip_blanks(struct parser *p)
{
    p->at += strspn(p->at, " \t");
}

/* Takes the character if it comes next. */
static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    bool there = *p->at == c;
    p->at += there;
    return there;
}

static int emit(struct parser *p, enum formula_op op, int metric, double number)
{
    struct formula *f = p->f;
    if (f->n == FORMULA_OPS_MAX)
        return err_set(p->err, "%s: longer than %d operations", p->what, FORMULA_OPS_MAX);
    f->step[f->n].op = op;
    f->step[f->n].metric = metric;
    f->step[f->n++].number = number;
    return 0;
}

static int parse_number(struct parser *p)
{
    size_t len = strspn(p->at, DIGITS ".");
    char *end;
    /* strtod alone would take names such as "inf", and hexadecimals. */
    double x = strtod(p->at, &end);
    if (end < p->at + len || !isfinite(x) ||
        (p->at[0] == '0' && strchr("xX", p->at[1]) != NULL && p->at[1] != '\0'))
        return fail(p, "a number");
    p->at = end;
    return emit(p, OP_NUMBER, 0, x);
}

static int parse_two(struct parser *p, enum formula_op op)
{
    if (!take(p, '('))
        return fail(p, "\"(\"");
    if (parse_sum(p) < 0)
        return -1;
    if (!take(p, ','))
        return fail(p, "\",\"");
    if (parse_sum(p) < 0)
        return -1;
    return take(p, ')') ? emit(p, op, 0, 0) : fail(p, "\")\"");
}

static int parse_name(struct parser *p)
{
    char name[48];
    size_t len = strspn(p->at, LETTERS DIGITS);
    snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), p->at);
    p->at += len;
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
        return parse_two(p, name[1] == 'i' ? OP_MIN : OP_MAX);
    int metric = metric_find(name);
    if (metric >= 0)
        return emit(p, OP_METRIC, metric, 0);
    const char *near = metric_nearest(name);
    return err_set(p->err, "%s: unknown metric \"%s\"%s%s%s; docs/metrics.md has them", p->what,
                   name, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static int parse_unit(struct parser *p)
{
    if (p->depth == FORMULA_DEPTH_MAX)
        return err_set(p->err, "%s: nested deeper than %d", p->what, FORMULA_DEPTH_MAX);
    p->depth++;
    int rc;
    skip_blanks(p);
    if (take(p, '-')) {
        rc = parse_unit(p) < 0 ? -1 : emit(p, OP_NEGATE, 0, 0);
    } else if (take(p, '(')) {
        rc = parse_sum(p);
        if (rc == 0 && !take(p, ')'))
            rc = fail(p, "\")\"");
    } else if (*p->at != '\0' && strchr(DIGITS ".", *p->at) != NULL) {
        rc = parse_number(p);
    } else if (*p->at != '\0' && strchr(LETTERS, *p->at) != NULL) {
        rc = parse_name(p);
    } else {
        rc = fail(p, "a number, a metric or \"(\"");
    }
    p->depth--;
    return rc;
}

static int parse_term(struct parser *p)
{
    if (parse_unit(p) < 0)
        return -1;
    for (;;) {
        enum formula_op op = take(p, '*') ? OP_MULTIPLY : take(p, '/') ? OP_DIVIDE : OP_NUMBER;
        if (op == OP_NUMBER)
            return 0;
        if (parse_unit(p) < 0 || emit(p, op, 0, 0) < 0)
            return -1;
    }
}

static int parse_sum(struct parser *p)
{
    if (parse_term(p) < 0)
        return -1;
    for (;;) {
        enum formula_op op = take(p, '+') ? OP_ADD : take(p, '-') ? OP_SUBTRACT : OP_NUMBER;
        if (op == OP_NUMBER)
            return 0;
        if (parse_term(p) < 0 || emit(p, op, 0, 0) < 0)
            return -1;
    }
}

int formula_parse(struct formula *f, const char *what, const char *text, struct err *err)
{
    struct formula made = {.n = 0};
    for (const struct objective *o = objectives; o->name != NULL; o++)
        if (strcmp(o->name, text) == 0)
            text = o->text;
    struct parser p = {.f = &made, .what = what, .text = text, .at = text, .err = err};
    if (parse_sum(&p) < 0)
        return -1;
    skip_blanks(&p);
    if (*p.at != '\0')
        return fail(&p, "an operator");
    *f = made;
    return 0;
}

static double combine(enum formula_op op, double a, double b)
{
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return a * b;
    case OP_DIVIDE: return a / b;
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    default: assert(false); return NAN;
    }
}

double formula_value(const struct formula *f, const struct metrics *m)
{
    double stack[FORMULA_OPS_MAX] = {0};
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        enum formula_op op = f->step[i].op;
        assert(n >= (op >= OP_ADD ? 2 : op == OP_NEGATE ? 1 : 0));
        if (op == OP_NUMBER) {
            stack[n++] = f->step[i].number;
        } else if (op == OP_METRIC) {
            stack[n++] = m->value[f->step[i].metric];
        } else if (op == OP_NEGATE) {
            stack[n - 1] = -stack[n - 1];
        } else {
            n--;
            stack[n - 1] = combine(op, stack[n - 1], stack[n]);
        }
    }
    assert(n == 1);
    return isfinite(stack[0]) ? stack[0] : NAN;
}
