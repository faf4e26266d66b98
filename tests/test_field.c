/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of numbers and calendar times.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "sim/base/units.h"
#include "traces/field.h"

Test(field, decimals_are_exact_integers)
{
    static const struct {
        const char *text;
        int scale;
        int64_t value;
    } good[] = {
        {"0", 12, 0},
        {"0.052", 12, 52000000000},
        {"3435.948056", 12, 3435948056000000},
        {"0.1", 12, 100000000000}, /* no double is 0.1 */
        {"1234567.123456789012", 12, 1234567123456789012},
        {".5", 1, 5},
        {"5.", 1, 50},
        {"0007", 0, 7},
        {"1e-3", 12, 1000000000},
        {"1.5E+2", 0, 150},
        {"5.2e-05", 12, 52000000},
        {"0.0000000000005", 12, 1}, /* half a picosecond rounds up */
        {"0.000000000000499999", 12, 0},
        {"0.0000000000015", 12, 2},
        {"1e-9999999999", 12, 0},
        {"0e9999999999", 12, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        __int128 value = -1;
        const char *fault = field_decimal(good[i].text, good[i].scale, &value);
        cr_expect(fault == NULL && value == good[i].value, "%s: %s", good[i].text, fault);
    }
}

Test(field, decimals_refuse_what_is_no_number)
{
    static const struct {
        const char *text, *fault;
    } bad[] = {
        {"", "is not a number"},    {".", "is not a number"},     {"nan", "is not a number"},
        {"inf", "is not a number"}, {"-inf", "is not a number"},  {"1e", "is not a number"},
        {"1e+", "is not a number"}, {"0x10", "is not a number"},  {"1,5", "is not a number"},
        {"+1", "is not a number"},  {"1.2.3", "is not a number"}, {"1 2", "is not a number"},
        {"-1", "is negative"},      {"-0.5", "is negative"},      {"1e30", "is too large"},
        {"1e9999", "is too large"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        __int128 value = 77;
        const char *fault = field_decimal(bad[i].text, 12, &value);
        cr_expect(fault != NULL && strcmp(fault, bad[i].fault) == 0, "\"%s\": %s", bad[i].text,
                  fault);
        cr_expect(value == 77, "written on failure");
    }
}

Test(field, tokens_are_whole_numbers)
{
    __int128 n = 0;
    cr_expect(field_tokens("472.0", &n) == NULL && n == 472);
    cr_expect(field_tokens("9223372036854775807", &n) == NULL && n == INT64_MAX);
    cr_expect_str_eq(field_tokens("4.5", &n), "is not a whole number");
    cr_expect_str_eq(field_tokens("9223372036854775808", &n), "is too large");
    cr_expect_str_eq(field_tokens("-3", &n), "is negative");
}

/* Seconds since 1970 from `date -u +%s`. */
Test(field, calendar_times_count_from_1970)
{
    static const struct {
        const char *text;
        int64_t s, ps;
    } good[] = {
        {"1970-01-01 00:00:00", 0, 0},
        {"2023-11-16 18:17:03.9799600", 1700158623, 979960000000},
        {"2024-05-10 00:00:00.009930+00:00", 1715299200, 9930000000},
        {"2024-05-10T00:00:00Z", 1715299200, 0},
        {"2024-05-10 00:00:00+05:30", 1715279400, 0},
        {"2024-05-09 19:00:00-05:00", 1715299200, 0},
        {"2024-02-29 23:59:59.123456789", 1709251199, 123456789000},
        {"2000-03-01 00:00:00.5", 951868800, 500000000000},
        {"9999-12-31 23:59:59", 253402300799, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        __int128 ps = -1, expected = (__int128)good[i].s * PS_PER_S + good[i].ps;
        const char *fault = field_calendar_ps(good[i].text, &ps);
        cr_expect(fault == NULL && ps == expected, "%s: %s", good[i].text, fault);
    }
}

Test(field, calendar_refuses_dates_that_do_not_exist)
{
    static const struct {
        const char *text, *fault;
    } bad[] = {
        {"2023-02-30 00:00:00", "does not exist"},
        {"2023-02-29 00:00:00", "does not exist"},
        {"1900-02-29 00:00:00", "does not exist"},
        {"2023-13-01 00:00:00", "does not exist"},
        {"2023-00-01 00:00:00", "does not exist"},
        {"2023-01-00 00:00:00", "does not exist"},
        {"2023-01-01 24:00:00", "does not exist"},
        {"2023-01-01 00:60:00", "does not exist"},
        {"2023-01-01 00:00:60", "does not exist"},
        {"1969-12-31 23:59:59", "before 1970"},
        {"1970-01-01 00:00:00+00:01", "before 1970"},
        {"", "not a time"},
        {"2023-11-16", "not a time"},
        {"2023-11-16 18:17", "not a time"},
        {"2023-11-16_18:17:03", "not a time"},
        {"2023-11-16 18:17:03.", "not a time"},
        {"2023-11-16 18:17:03.1234567890", "not a time"},
        {"2023-11-16 18:17:03+24:00", "not a time"},
        {"2023-11-16 18:17:03+0100", "not a time"},
        {"2023-11-16 18:17:03 UTC", "not a time"},
        {"16-11-2023 18:17:03", "not a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        __int128 ps = 77;
        const char *fault = field_calendar_ps(bad[i].text, &ps);
        cr_expect(fault != NULL && strstr(fault, bad[i].fault), "\"%s\": %s", bad[i].text, fault);
        cr_expect(ps == 77, "written on failure");
    }
}
