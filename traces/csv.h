/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV by the names in its header line: columns in any order, unknown ones ignored, names compared
 * without case, fields plain or in double quotes (RFC 4180, on one line). Strict about the rest:
 * every row has as many fields as the header.
 */
#ifndef TRACES_CSV_H
#define TRACES_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/file.h"
#include "traces/trace.h"

struct csv_column {
    const char *names; /* "arrived_at|arrived_at_s"; messages use the first */
    const char *(*parse)(const char *text, __int128 *out); /* from traces/field.h */
    const char *missing; /* what it means when the column is not there, or NULL */
};

#define CSV_ARRIVALS_MISSING "arrivals are missing, and a table of lengths cannot be replayed"

enum { CSV_COLUMNS_MAX = 8 };

struct csv {
    struct lines *lines; /* borrowed, like the columns */
    const struct csv_column *column;
    size_t width;               /* fields in the header */
    size_t at[CSV_COLUMNS_MAX]; /* where each column is */
    char **field;               /* of the current line, inside its buffer */
    size_t n, cap;
};

/* Read the header and find the columns. A missing or repeated one is an error that names it and
 * those that there are. */
int csv_open(struct csv *c, struct lines *l, const struct csv_column *column, int n_columns,
             struct err *err);
/* 1: a row, 0: the end, -1: error. Passes over blank lines. */
int csv_next(struct csv *c, struct err *err);
/* The value of a column (by its index in the table) in the current row. */
int csv_get(const struct csv *c, int column, __int128 *out, struct err *err);
void csv_close(struct csv *c);

/* Whether a header line has a column of one of these names. */
bool csv_has_column(const char *header, const char *names);

/* Read a table of requests; the columns are arrival (in picoseconds), input and output tokens. */
int csv_read_requests(struct trace *t, struct lines *l, const struct csv_column column[3],
                      struct err *err);

#endif
