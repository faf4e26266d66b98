/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Lines: one object a line, read key by key with messages that name FILE:LINE and the key.
 * Keys that nobody asks for are ignored; null is as good as absent. Names are "key" or
 * "key|alias"; a row with two of them is refused, messages use the first.
 */
#ifndef TRACES_ROW_H
#define TRACES_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "sim/base/file.h"

/* Borrows all. */
struct row {
    const struct lines *lines;
    json_t *object;    /* of the current line, or inside it */
    const char *array; /* of a row inside another, where: array[index]; else NULL */
    size_t index;
};

/* What times are counted in. */
enum row_unit { ROW_NS, ROW_MS, ROW_S };

enum { ROW_LABEL_BYTES = 128 };

/* Give every line that is not blank to `add`, which returns -1 on error. 0 or -1. */
typedef int row_fn(void *to, const struct row *r, struct err *err);
int row_each(struct lines *l, row_fn *add, void *to, struct err *err);
/* In the file, for messages. */
long row_line(const struct row *r);

/* Fail with "FILE:LINE: " and, in a row inside another, the place in front. */
int row_fail(const struct row *r, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Typed reads. With `required` false an absent key leaves *out alone. 0 or -1. */
int row_value(const struct row *r, const char *names, bool required, json_t **out, struct err *err);
int row_array(const struct row *r, const char *names, bool required, json_t **out, struct err *err);
/* A whole number, which may be negative. */
int row_whole(const struct row *r, const char *names, bool required, int64_t *out, struct err *err);
/* The same as row_whole() of a number of tokens; for messages. */
int row_tokens(const struct row *r, const char *names, bool required, int64_t *out,
               struct err *err);
/* A number, or a string that holds one, in picoseconds; not negative. */
int row_time(const struct row *r, const char *names, enum row_unit unit, bool required,
             __int128 *out_ps, struct err *err);
/* A string that is a calendar time, in picoseconds since 1970. */
int row_calendar(const struct row *r, const char *names, bool required, __int128 *out_ps,
                 struct err *err);
/* A name: a string, or a whole number as its digits. Writes "" when absent and !required. */
int row_label(const struct row *r, const char *names, bool required, char out[ROW_LABEL_BYTES],
              struct err *err);
/* Element i of an array of objects as a row inside r. */
int row_inside(struct row *in, const struct row *r, const char *key, size_t i, struct err *err);

/* The label that a value is: its string, or digits in buf; NULL when it is neither. */
const char *row_label_of(const json_t *value, char buf[ROW_LABEL_BYTES]);
/* A whole number from 0 to 2^64 - 1. */
bool row_hash_of(const json_t *value, uint64_t *out);

#endif
