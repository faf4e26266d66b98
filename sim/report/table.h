/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain text table: cells of text in columns as wide as they need, two blanks apart, the last
 * one without blanks behind it. Where it would be wider than TABLE_WIDTH, its first column is as
 * narrow as that takes, and longer names in it stand on a line of their own.
 */
#ifndef SIM_REPORT_TABLE_H
#define SIM_REPORT_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 24, TABLE_WIDTH = 80 };

struct table {
    int columns;
    char align[TABLE_COLUMNS_MAX + 1]; /* 'l', 'r' or 'w' by column */
    char **cell;                       /* row by row */
    size_t n, cap;
};

/* One letter per column: "lrr" has names on the left and numbers on the right. In the last one 'w'
 * is for words: broken at blanks where a line would be wider than TABLE_WIDTH. */
void table_init(struct table *t, const char *align);
void table_release(struct table *t);

/* Append the next cell, left to right and on to the next row. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append n empty cells. A row of a first cell and then empty ones is a heading: no column is the
 * wider for it. */
void table_skip(struct table *t, int n);

/* Asserts that the last row is complete. */
void table_print(const struct table *t, FILE *out);

/* One line of text, broken at blanks as a cell of words is; lines that follow begin at `column`,
 * where the first one does. */
void table_words(const char *text, int column, FILE *out);

/* A number >= 0 in three significant digits without exponent: "0.123", "12.3", "1234"; a zero
 * without decimals is exactly that. */
char *table_number(double x, char *buf, size_t size);

enum { TABLE_MS_SIZE = 40 };

/* A time in milliseconds, which may be negative; what is NAN has no value: "-". */
char *table_ms(double ns, char buf[TABLE_MS_SIZE]);

#endif
