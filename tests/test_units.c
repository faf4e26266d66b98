/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/units: what is accepted, what is refused and how, and the forms for people.
 */
#include "sim/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static const struct {
    const char *text;
    int64_t ps;
} good_time[] = {
    {"0", 0},
    {"2s", 2 * PS_PER_S},
    {"50ms", 50 * PS_PER_MS},
    {"10us", 10 * PS_PER_US},
    {"5ns", 5 * PS_PER_NS},
    {"0.001ns", 1},
    {".5", PS_PER_S / 2},
    {"1e-3", PS_PER_MS},
    {"3m", 180 * PS_PER_S},
    {"1h", 3600 * PS_PER_S},
    {"2d", 172800 * PS_PER_S},
    {"100d", 8640000 * PS_PER_S},
};

ParameterizedTestParameters(units, reads_times)
{
    static size_t row[sizeof good_time / sizeof *good_time];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, units, reads_times)
{
    struct err err = ERR_NONE;
    int64_t ps = -1;
    cr_assert_eq(units_parse_time(good_time[*i].text, "--t", &ps, &err), 0, "%s", err.text);
    cr_assert_eq(ps, good_time[*i].ps, "%s gave %lld", good_time[*i].text, (long long)ps);
}

static const char *const bad_number[] = {
    "",      " ",    " 1",  "1 ", "+1", "0x10", "nan", "inf",   "-inf",
    "1e400", "1..2", "--1", "-",  ".",  "e5",   "1s2", "1_000", "1,5",
};

ParameterizedTestParameters(units, refuses_what_is_no_number)
{
    static size_t row[sizeof bad_number / sizeof *bad_number];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, units, refuses_what_is_no_number)
{
    const char *text = bad_number[*i];
    struct err err[4] = {ERR_NONE, ERR_NONE, ERR_NONE, ERR_NONE};
    int64_t n = 77;
    double x = 77;
    cr_assert_eq(units_parse_time(text, "--x", &n, &err[0]), -1, "time \"%s\"", text);
    cr_assert_eq(units_parse_tokens(text, "--x", &n, &err[1]), -1, "tokens \"%s\"", text);
    cr_assert_eq(units_parse_f64(text, "--x", -1e9, 1e9, &x, &err[2]), -1, "f64 \"%s\"", text);
    cr_assert_eq(units_parse_i64(text, "--x", -9, 99, &n, &err[3]), -1, "i64 \"%s\"", text);
    cr_assert(n == 77 && x == 77, "an out-parameter was written on failure");
    for (int k = 0; k < 4; k++) {
        char quoted[32];
        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        cr_assert(strncmp(err[k].text, "--x: must be ", 13) == 0, "%s", err[k].text);
        cr_assert_not_null(strstr(err[k].text, quoted), "%s", err[k].text);
    }
}

Test(units, time_errors_say_what_to_write)
{
    struct err unit = ERR_NONE, sign = ERR_NONE, far = ERR_NONE;
    int64_t ps;
    cr_assert_eq(units_parse_time("5parsec", "--dwell", &ps, &unit), -1);
    cr_assert_str_eq(unit.text, "--dwell: must be a time such as 50ms, 2s or 1h, got \"5parsec\"");
    cr_assert_eq(units_parse_time("-1s", "--dwell", &ps, &sign), -1);
    cr_assert_str_eq(sign.text, "--dwell: must be a time from 0 to 100d, got \"-1s\"");
    cr_assert_eq(units_parse_time("101d", "--dwell", &ps, &far), -1);
}

Test(units, reads_token_counts_in_powers_of_two)
{
    struct err err = ERR_NONE;
    int64_t n;
    cr_assert_eq(units_parse_tokens("65536", "x", &n, &err), 0);
    cr_assert_eq(n, 65536);
    cr_assert_eq(units_parse_tokens("256K", "x", &n, &err), 0);
    cr_assert_eq(n, 262144);
    cr_assert_eq(units_parse_tokens("1M", "x", &n, &err), 0);
    cr_assert_eq(n, 1048576);
    cr_assert_eq(units_parse_tokens("1.5K", "x", &n, &err), 0);
    cr_assert_eq(n, 1536);
    cr_assert_eq(units_parse_tokens("0.3K", "x", &n, &err), -1, "307.2 is no count");
    cr_assert_eq(units_parse_tokens("-1", "x", &n, &err), -1);
    cr_assert_eq(units_parse_tokens("1G", "x", &n, &err), -1);
    cr_assert_eq(units_parse_tokens("1e17", "x", &n, &err), -1);
}

Test(units, ranges_hold_at_their_ends)
{
    struct err err = ERR_NONE, high = ERR_NONE, wide = ERR_NONE;
    double x;
    int64_t n;
    cr_assert_eq(units_parse_f64("0", "--f", 0, 1, &x, &err), 0);
    cr_assert_eq(units_parse_f64("1", "--f", 0, 1, &x, &err), 0);
    cr_assert_eq(units_parse_f64("1.0000001", "--f", 0, 1, &x, &high), -1);
    cr_assert_str_eq(high.text, "--f: must be in [0, 1], got \"1.0000001\"");
    cr_assert_eq(units_parse_i64("-9223372036854775808", "--n", INT64_MIN, 0, &n, &err), 0);
    cr_assert_eq(n, INT64_MIN);
    cr_assert_eq(units_parse_i64("9223372036854775808", "--n", 0, INT64_MAX, &n, &wide), -1);
    cr_assert_str_eq(wide.text, "--n: must be at least 0, got \"9223372036854775808\"");
    cr_assert_eq(units_parse_i64("1.5", "--n", 0, 9, &n, &err), -1);
}

Test(units, range_in_words)
{
    char buf[64];
    cr_assert_str_eq(units_range(0, 0.25, buf, sizeof buf), "in [0, 0.25]");
    cr_assert_str_eq(units_range(1, INFINITY, buf, sizeof buf), "at least 1");
    cr_assert_str_eq(units_range(-INFINITY, 9, buf, sizeof buf), "at most 9");
    cr_assert_str_eq(units_range(1, 4294967295.0, buf, sizeof buf), "in [1, 4294967295]");
    cr_assert_str_eq(units_range(-INFINITY, INFINITY, buf, sizeof buf), "finite");
}

Test(units, seconds_round_to_the_nearest_picosecond)
{
    cr_assert_eq(ps_from_s(0), 0);
    cr_assert_eq(ps_from_s(1.4e-12), 1);
    cr_assert_eq(ps_from_s(1.6e-12), 2);
    cr_assert_eq(ps_from_s(0.05), 50000000000);
    cr_assert_float_eq(ps_to_s(1500000000), 0.0015, 1e-18);
}

Test(units, forms_for_people)
{
    char buf[40];
    cr_assert_str_eq(units_time(0, buf, sizeof buf), "0 s");
    cr_assert_str_eq(units_time(12345000000, buf, sizeof buf), "12.3 ms");
    cr_assert_str_eq(units_time(999400000, buf, sizeof buf), "999 us");
    cr_assert_str_eq(units_time(999600000, buf, sizeof buf), "1 ms");
    cr_assert_str_eq(units_time(7200 * PS_PER_S, buf, sizeof buf), "7200 s");
    cr_assert_str_eq(units_time(-2 * PS_PER_NS, buf, sizeof buf), "-2 ns");
    cr_assert_str_eq(units_bytes(1.25 * GIB, buf, sizeof buf), "1.25 GiB");
    cr_assert_str_eq(units_bytes(1000 * KIB, buf, sizeof buf), "1000 KiB");
    cr_assert_str_eq(units_bytes(512, buf, sizeof buf), "512 B");
    cr_assert_str_eq(units_count(12031, buf, sizeof buf), "12,031");
    cr_assert_str_eq(units_count(999, buf, sizeof buf), "999");
    cr_assert_str_eq(units_count(-123456, buf, sizeof buf), "-123,456");
    cr_assert_str_eq(units_count(INT64_MIN, buf, sizeof buf), "-9,223,372,036,854,775,808");
}
