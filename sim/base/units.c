/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_S (100.0 * 86400)

int64_t ps_from_s(double seconds)
{
    assert(seconds >= 0 && seconds * 1e12 < 0x1p63);
    return llround(seconds * 1e12);
}

double ps_to_s(int64_t ps)
{
    return (double)ps / 1e12;
}

/* strtod without what it also takes: blanks, a plus sign, hexadecimal, inf, nan. On success *end is
 * behind the number. */
static bool read_number(const char *text, double *x, const char **end)
{
    const char *digits = text + (*text == '-');
    if (!isdigit((unsigned char)*digits) && *digits != '.')
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    char *behind;
    *x = strtod(text, &behind);
    *end = behind;
    return behind != text && isfinite(*x);
}

static const struct suffix {
    const char *text;
    double scale;
} time_suffix[] =
    {
        {"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
        {"ns", 1e-9}, {"m", 60}, {"h", 3600},  {"d", 86400},
},
  token_suffix[] = {
      {"", 1}, {"K", 1024}, {"k", 1024}, {"M", 1024 * 1024}, {"m", 1024 * 1024},
};

static bool read_scaled(const char *text, const struct suffix *table, size_t n, double *out)
{
    double x;
    const char *end;
    if (!read_number(text, &x, &end))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(end, table[i].text) == 0) {
            *out = x * table[i].scale;
            return true;
        }
    }
    return false;
}

int units_parse_time(const char *text, const char *what, int64_t *ps, struct err *err)
{
    double s;
    if (!read_scaled(text, time_suffix, sizeof time_suffix / sizeof *time_suffix, &s))
        return err_set(err, "%s: must be a time such as 50ms, 2s or 1h, got \"%s\"", what, text);
    if (!(s >= 0 && s <= TIME_MAX_S))
        return err_set(err, "%s: must be a time from 0 to 100d, got \"%s\"", what, text);
    *ps = ps_from_s(s);
    return 0;
}

int units_parse_tokens(const char *text, const char *what, int64_t *tokens, struct err *err)
{
    double n;
    if (!read_scaled(text, token_suffix, sizeof token_suffix / sizeof *token_suffix, &n) ||
        !(n >= 0 && n <= 0x1p53) || n != rint(n))
        return err_set(err, "%s: must be a count such as 4096, 64K or 1M, got \"%s\"", what, text);
    *tokens = (int64_t)n;
    return 0;
}

int units_parse_f64(const char *text, const char *what, double min, double max, double *out,
                    struct err *err)
{
    double x;
    const char *end;
    char range[64];
    units_range(min, max, range, sizeof range);
    if (!read_number(text, &x, &end) || *end != '\0')
        return err_set(err, "%s: must be a number such as 0.5, %s, got \"%s\"", what, range, text);
    if (!(x >= min && x <= max))
        return err_set(err, "%s: must be %s, got \"%s\"", what, range, text);
    *out = x;
    return 0;
}

int units_parse_i64(const char *text, const char *what, int64_t min, int64_t max, int64_t *out,
                    struct err *err)
{
    char range[64], *end;
    units_range((double)min, (double)max, range, sizeof range);
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)text[*text == '-']) || *end != '\0')
        return err_set(err, "%s: must be a whole number such as 12, %s, got \"%s\"", what, range,
                       text);
    if (errno == ERANGE || x < min || x > max)
        return err_set(err, "%s: must be %s, got \"%s\"", what, range, text);
    *out = x;
    return 0;
}

char *units_range(double min, double max, char *buf, size_t size)
{
    bool low = min > -0x1p63, high = max < 0x1p63;
    if (low && high)
        snprintf(buf, size, "in [%.15g, %.15g]", min, max);
    else if (low)
        snprintf(buf, size, "at least %.15g", min);
    else if (high)
        snprintf(buf, size, "at most %.15g", max);
    else
        snprintf(buf, size, "finite");
    return buf;
}

/* Three significant digits, but never an exponent for large values. */
static char *write_scaled(double x, const char *unit, char *buf, size_t size)
{
    if (fabs(x) < 999.5)
        snprintf(buf, size, "%.3g %s", x, unit);
    else
        snprintf(buf, size, "%.0f %s", x, unit);
    return buf;
}

char *units_time(int64_t ps, char *buf, size_t size)
{
    static const char *const unit[] = {"ps", "ns", "us", "ms", "s"};
    if (ps == 0)
        return write_scaled(0, "s", buf, size);
    double x = (double)ps;
    int u = 0;
    for (; u < 4 && fabs(x) >= 999.5; u++)
        x /= 1000;
    return write_scaled(x, unit[u], buf, size);
}

char *units_bytes(double bytes, char *buf, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    for (; u < 5 && fabs(bytes) >= 1023.5; u++)
        bytes /= 1024;
    return write_scaled(bytes, unit[u], buf, size);
}

char *units_count(int64_t n, char *buf, size_t size)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t used = 0;
    assert(size >= sizeof digits + 7);
    for (int i = 0; i < len; i++) {
        if (i > (n < 0) && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}
