/* SPDX-License-Identifier: Apache-2.0
 *
 * One reader per format, one const table entry each. A reader says from the first non-blank line
 * whether the file is its own, then adds every row.
 */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "sim/base/file.h"
#include "traces/trace.h"

struct trace_reader {
    const char *name; /* "mooncake" */
    const char *what; /* one line for lists and messages */
    bool (*detect)(const char *first_line);
    int (*read)(struct trace *t, struct lines *l, struct err *err);
};

extern const struct trace_reader reader_mooncake, reader_azure, reader_vidur, reader_plain;
extern const struct trace_reader *const trace_readers[]; /* NULL-terminated, in order of trial */

/* lines_next() that passes over blank lines. */
int reader_next(struct lines *l, struct err *err);

#endif
