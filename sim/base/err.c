/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int record(struct err *err, enum err_kind kind, const char *prefix, const char *fmt,
                  va_list ap)
{
    if (err->set)
        return -1;
    err->set = true;
    err->kind = kind;
    size_t used = (size_t)snprintf(err->text, sizeof err->text, "%s", prefix);
    if (used < sizeof err->text)
        vsnprintf(err->text + used, sizeof err->text - used, fmt, ap);
    return -1;
}

int err_set(struct err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(err, ERR_INPUT, "", fmt, ap);
    va_end(ap);
    return -1;
}

int err_at(struct err *err, const char *file, long line, const char *fmt, ...)
{
    char prefix[512];
    va_list ap;
    if (line > 0)
        snprintf(prefix, sizeof prefix, "%s:%ld: ", file, line);
    else
        snprintf(prefix, sizeof prefix, "%s: ", file);
    va_start(ap, fmt);
    record(err, ERR_INPUT, prefix, fmt, ap);
    va_end(ap);
    return -1;
}

int err_run(struct err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(err, ERR_RUN, "", fmt, ap);
    va_end(ap);
    return -1;
}

int err_report(const struct err *err, const char *program)
{
    fprintf(stderr, "%s: %s\n", program, err->text);
    return err->kind == ERR_RUN ? 1 : 2;
}

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein distance with one row; words longer than the row count as far apart. */
static int distance(const char *a, const char *b)
{
    enum { LEN_MAX = 63 };
    int row[LEN_MAX + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > LEN_MAX || lb > LEN_MAX)
        return LEN_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}

const char *err_nearest(const char *word, const char *const *candidates, int n)
{
    const char *best = NULL;
    int best_distance = 0;
    for (int i = 0; i < n; i++) {
        size_t la = strlen(word), lb = strlen(candidates[i]);
        int d = distance(word, candidates[i]);
        /* near: at least half of the longer word agrees ("hbm_gbs" is near "hbm_gb_per_s") */
        bool near = d <= (int)(la > lb ? la : lb) / 2;
        if (near && (best == NULL || d < best_distance)) {
            best_distance = d;
            best = candidates[i];
        }
    }
    return best;
}
