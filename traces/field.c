/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/field.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/units.h"

#define VALUE_MAX ((__int128)1000000000000000000 * 1000000000000000000)

enum { EXPONENT_MAX = 9999, WHOLE_SCALE = 6 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Adds the exponent at *c, if there is one, to *exponent. */
static bool read_exponent(const char **c, long *exponent)
{
    if (**c != 'e' && **c != 'E')
        return true;
    const char *s = *c + 1;
    bool negative = *s == '-';
    s += *s == '-' || *s == '+';
    if (!is_digit(*s))
        return false;
    long e = 0;
    for (; is_digit(*s); s++)
        e = e < EXPONENT_MAX ? 10 * e + (*s - '0') : e;
    *exponent += negative ? -e : e;
    *c = s;
    return true;
}

static const char *shift(__int128 value, long exponent, __int128 *out)
{
    for (; exponent > 0 && value > 0 && value <= VALUE_MAX; exponent--)
        value *= 10;
    for (; exponent < -1 && value > 0; exponent++)
        value /= 10;
    if (exponent < 0)
        value = (value + 5) / 10;
    if (value > VALUE_MAX)
        return "is too large";
    *out = value;
    return NULL;
}

/* Digits beyond what the integer holds are dropped: a half-up rounding never needs them. */
const char *field_decimal(const char *text, int scale, __int128 *out)
{
    __int128 value = 0;
    long exponent = scale;
    bool seen = false, point = false;
    bool negative = *text == '-';
    const char *c = text + negative;
    for (; is_digit(*c) || (*c == '.' && !point); c++) {
        if (*c == '.') {
            point = true;
            continue;
        }
        seen = true;
        bool room = value < VALUE_MAX;
        if (room)
            value = 10 * value + (*c - '0');
        exponent += room ? -point : !point;
    }
    if (!seen || !read_exponent(&c, &exponent) || *c != '\0')
        return "is not a number";
    if (negative)
        return "is negative";
    return shift(value, exponent, out);
}

const char *field_seconds_ps(const char *text, __int128 *out)
{
    return field_decimal(text, 12, out);
}

const char *field_tokens(const char *text, __int128 *out)
{
    __int128 scaled;
    const char *fault = field_decimal(text, WHOLE_SCALE, &scaled);
    if (fault != NULL)
        return fault;
    if (scaled % 1000000 != 0)
        return "is not a whole number";
    if (scaled / 1000000 > INT64_MAX)
        return "is too large";
    *out = scaled / 1000000;
    return NULL;
}

/* Exactly n digits. */
static bool read_digits(const char **c, int n, int *out)
{
    int value = 0;
    for (int i = 0; i < n; i++, ++*c) {
        if (!is_digit(**c))
            return false;
        value = 10 * value + (**c - '0');
    }
    *out = value;
    return true;
}

/* Three numbers of two digits, the first of `first` digits, with a separator. */
static bool read_triple(const char **c, int first, char separator, int out[3])
{
    for (int i = 0; i < 3; i++) {
        if (i > 0 && *(*c)++ != separator)
            return false;
        if (!read_digits(c, i == 0 ? first : 2, &out[i]))
            return false;
    }
    return true;
}

static bool read_fraction(const char **c, int64_t *ps)
{
    int64_t unit = PS_PER_S;
    *ps = 0;
    if (**c != '.')
        return true;
    for (++*c; is_digit(**c) && unit > PS_PER_NS; ++*c) {
        unit /= 10;
        *ps += unit * (**c - '0');
    }
    return unit < PS_PER_S;
}

static bool read_offset(const char **c, int *minutes)
{
    int hh, mm;
    *minutes = 0;
    if (**c == 'Z') {
        ++*c;
        return true;
    }
    if (**c != '+' && **c != '-')
        return true;
    int sign = *(*c)++ == '-' ? -1 : 1;
    if (!read_digits(c, 2, &hh) || *(*c)++ != ':' || !read_digits(c, 2, &mm) || hh > 23 || mm > 59)
        return false;
    *minutes = sign * (60 * hh + mm);
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

static bool exists(const int date[3], const int clock[3])
{
    return date[1] >= 1 && date[1] <= 12 && date[2] >= 1 &&
           date[2] <= month_days(date[0], date[1]) && clock[0] <= 23 && clock[1] <= 59 &&
           clock[2] <= 59;
}

static int leap_years_before(int year)
{
    year--;
    return year / 4 - year / 100 + year / 400;
}

static int64_t days_since_1970(const int date[3])
{
    int days = 365 * (date[0] - 1970) + leap_years_before(date[0]) - leap_years_before(1970);
    for (int month = 1; month < date[1]; month++)
        days += month_days(date[0], month);
    return days + date[2] - 1;
}

const char *field_calendar_ps(const char *text, __int128 *out)
{
    int date[3], clock[3], offset_minutes;
    int64_t fraction_ps;
    const char *c = text;
    if (!read_triple(&c, 4, '-', date) || (*c != ' ' && *c != 'T'))
        return "is not a time such as 2023-11-16 18:17:03.9799600";
    c++;
    if (!read_triple(&c, 2, ':', clock) || !read_fraction(&c, &fraction_ps) ||
        !read_offset(&c, &offset_minutes) || *c != '\0')
        return "is not a time such as 2023-11-16 18:17:03.9799600";
    if (!exists(date, clock))
        return "is a date or time that does not exist";
    int64_t minutes = 60 * (24 * days_since_1970(date) + clock[0]) + clock[1] - offset_minutes;
    if (minutes < 0)
        return "is before 1970";
    *out = (__int128)(60 * minutes + clock[2]) * PS_PER_S + fraction_ps;
    return NULL;
}
