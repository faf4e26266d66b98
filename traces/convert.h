/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces written: .wtt for all that was loaded, .jsonl (Mooncake's rows) and .csv (the plain
 * format) for other programs. Times count from the first request.
 */
#ifndef TRACES_CONVERT_H
#define TRACES_CONVERT_H

#include "traces/trace.h"

struct trace_form {
    const char *ending;                                   /* ".csv" */
    int (*check)(const struct trace *t, struct err *err); /* or NULL: takes every trace */
    void (*write)(const struct trace *t, FILE *out);      /* faults are left on `out` */
    void (*warn)(const struct trace *t, FILE *out);       /* of what gets lost; or NULL */
};

/* The form that a file of this name has; NULL with a message. */
const struct trace_form *trace_form_of(const char *path, struct err *err);
/* Write the file, whole or not at all; what the form cannot say is refused where a replay would
 * mislead, else told on `warnings`. */
int trace_convert(const struct trace *t, const struct trace_form *form, const char *path,
                  FILE *warnings, struct err *err);

#endif
