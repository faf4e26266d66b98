/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV by the names in its header line: columns in any order, unknown ones ignored, names compared
 * without case, fields plain or in double quotes, then also over several lines (RFC 4180). Strict
 * about the rest: every row has as many fields as the header.
 */
#ifndef TRACES_CSV_H
#define TRACES_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/file.h"
#include "traces/trace.h"

enum csv_need {
    CSV_REQUIRED,
    CSV_OPTIONAL, /* the column may be absent, its field empty */
};

struct csv_column {
    const char *names; /* "arrived_at|arrived_at_s"; messages use the first */
    const char *(*parse)(const char *text, __int128 *out); /* from traces/field.h; NULL: text */
    enum csv_need need;
};

enum { CSV_COLUMNS_MAX = 16 };

struct csv {
    struct lines *lines; /* borrowed, like the columns */
    const struct csv_column *column;
    long line;                  /* where the current row begins */
    size_t width;               /* fields in the header */
    size_t at[CSV_COLUMNS_MAX]; /* where each column is, or CSV_ABSENT */
    char **field;               /* of the current row, inside its text */
    size_t n, cap;
    char *joined; /* text of a row of several lines */
    size_t cap_joined;
};

#define CSV_ABSENT ((size_t)-1)

/* Read the header and find the columns. A missing or repeated one is an error that names it and
 * those that there are. */
int csv_open(struct csv *c, struct lines *l, const struct csv_column *column, int n_columns,
             struct err *err);
/* 1: a row, 0: the end, -1: error. Passes over blank lines. */
int csv_next(struct csv *c, struct err *err);
/* The value of a column (by its index in the table) in the current row. 1: there; 0: optional and
 * not there, *out is left alone; -1: error. */
int csv_get(const struct csv *c, int column, __int128 *out, struct err *err);
/* The same for a column of text, which is borrowed until the next row; "" where it is not there. */
int csv_get_text(const struct csv *c, int column, const char **out, struct err *err);
void csv_close(struct csv *c);

/* Whether a header line has a column of one of these names. */
bool csv_has_column(const char *header, const char *names);

/* What a format makes of its rows. */
struct csv_table {
    const struct csv_column *column;
    int n_columns;
    int (*add)(struct trace *t, const struct csv *row, void *state, struct err *err);
};

/* Read every row; `state` goes to add(). */
int csv_read_table(struct trace *t, struct lines *l, const struct csv_table *table, void *state,
                   struct err *err);
/* Read a table of requests; the columns are arrival (in picoseconds), input and output tokens. */
int csv_read_requests(struct trace *t, struct lines *l, const struct csv_column column[3],
                      struct err *err);

#endif
