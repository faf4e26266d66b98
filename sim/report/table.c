/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/table.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

void table_init(struct table *t, const char *align)
{
    size_t n = strlen(align);
    assert(n > 0 && n <= TABLE_COLUMNS_MAX);
    *t = (struct table){.columns = (int)n};
    memcpy(t->align, align, n);
}

void table_release(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cell[i]);
    free(t->cell);
    *t = (struct table){0};
}

void table_add(struct table *t, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->cell = xgrow(t->cell, &t->cap, t->n + 1, sizeof *t->cell);
    t->cell[t->n++] = xstrdup(text);
}

void table_skip(struct table *t, int n)
{
    for (int i = 0; i < n; i++)
        table_add(t, "%s", "");
}

static bool is_heading(const struct table *t, size_t at)
{
    for (int c = 1; c < t->columns; c++)
        if (t->cell[at + (size_t)c][0] != '\0')
            return false;
    return t->columns > 1;
}

static void measure(const struct table *t, int *width)
{
    for (size_t i = 0; i < t->n; i++) {
        int *w = &width[i % (size_t)t->columns], len = (int)strlen(t->cell[i]);
        if (len > *w && !(i % (size_t)t->columns == 0 && is_heading(t, i)))
            *w = len;
    }
}

/* As far as names can still be told apart from numbers. Words find their own room. */
static void narrow(const struct table *t, int *width)
{
    enum { NARROWEST = 12 };
    int whole = 2 * (t->columns - 1);
    for (int c = 0; c < t->columns; c++)
        whole += width[c];
    if (whole <= TABLE_WIDTH || t->align[0] != 'l' || t->align[t->columns - 1] == 'w')
        return;
    int room = width[0] - (whole - TABLE_WIDTH);
    if (width[0] > NARROWEST)
        width[0] = room > NARROWEST ? room : NARROWEST;
}

void table_words(const char *text, int column, FILE *out)
{
    int room = TABLE_WIDTH - column;
    while ((int)strlen(text) > room) {
        int len = room;
        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0)
            len = (int)strcspn(text, " ");
        if (text[len] == '\0')
            break;
        fprintf(out, "%.*s\n%*s", len, text, column, "");
        text += len + 1;
    }
    fputs(text, out);
}

/* Blanks are owed until something follows them, so that no line ends in blanks. */
static void print_row(const struct table *t, size_t at, const int *width, FILE *out)
{
    int owed = 0, column = 0;
    for (int c = 0; c < t->columns; c++) {
        const char *text = t->cell[at + (size_t)c];
        int len = (int)strlen(text);
        if (c == 0 && len > width[0] && !is_heading(t, at)) {
            fprintf(out, "%s\n", text);
            len = 0;
        }
        int pad = width[c] - len;
        bool right = t->align[c] == 'r';
        if (len > 0 && t->align[c] == 'w')
            table_words(text, column + fprintf(out, "%*s", owed, ""), out);
        else if (len > 0)
            column += fprintf(out, "%*s%s", owed + (right ? pad : 0), "", text);
        owed = len > 0 ? 2 + (right ? 0 : pad) : owed + 2 + width[c];
    }
    fputc('\n', out);
}

void table_print(const struct table *t, FILE *out)
{
    int width[TABLE_COLUMNS_MAX] = {0};
    assert(t->n % (size_t)t->columns == 0);
    measure(t, width);
    narrow(t, width);
    for (size_t at = 0; at < t->n; at += (size_t)t->columns)
        print_row(t, at, width, out);
}

char *table_number(double x, char *buf, size_t size)
{
    int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    for (double y = x; y > 0 && y < 0.9995 && decimals < 6; y *= 10)
        decimals++;
    snprintf(buf, size, "%.*f", x == 0 ? 0 : decimals, x);
    return buf;
}

char *table_ms(double ns, char buf[TABLE_MS_SIZE])
{
    char number[32];
    snprintf(buf, TABLE_MS_SIZE, "%s%s", ns < 0 ? "-" : "",
             isnan(ns) ? "-" : table_number(fabs(ns) / 1e6, number, sizeof number));
    return buf;
}
