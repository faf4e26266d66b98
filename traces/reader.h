/* SPDX-License-Identifier: Apache-2.0
 *
 * One reader per format, one const table entry each. A reader says from the beginning of the file
 * whether it is its own, then adds every row.
 */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "sim/base/file.h"
#include "traces/trace.h"

/* How a file begins: its first line that is not blank, and up to 64 KiB of what follows. */
struct trace_head {
    const char *line, *text; /* both NUL-terminated */
};

struct trace_reader {
    const char *name; /* "mooncake" */
    const char *what; /* one line for lists and messages */
    bool (*detect)(const struct trace_head *h);
    int (*read)(struct trace *t, struct lines *l, const struct trace_reading *reading,
                struct err *err);
};

extern const struct trace_reader reader_mooncake, reader_azure, reader_vidur, reader_plain;
extern const struct trace_reader reader_qwen, reader_ragpulse, reader_llmservingsim;
extern const struct trace_reader reader_aibrix, reader_tracelab_rounds;
extern const struct trace_reader reader_servegen;
extern const struct trace_reader reader_burstgpt, reader_sarathi, reader_splitwise, reader_lengths;
extern const struct trace_reader reader_tracelab_csv, reader_blis, reader_openhands_csv;
extern const struct trace_reader reader_weka_csv;
extern const struct trace_reader reader_weka, reader_otel, reader_sweagent, reader_openhands;
extern const struct trace_reader *const trace_readers[]; /* NULL-terminated, in order of trial */

/* The reader that knows the beginning, which is given back to it; NULL with a message. */
const struct trace_reader *reader_find(struct lines *l, struct err *err);
/* lines_next() that passes over blank lines. */
int reader_next(struct lines *l, struct err *err);
/* All that is left as one JSON value, for formats that are one document: a message with the line
 * when it is none. NULL on error. */
json_t *reader_json(struct lines *l, struct err *err);
/* Whether the beginning has "key" as JSON writes a key. */
bool reader_has_key(const struct trace_head *h, const char *key);
/* For formats of two files: `path` with `ending` replaced, in fresh memory; NULL when it does not
 * end so, or there is no such file. */
char *reader_beside(const char *path, const char *ending, const char *other);

#endif
