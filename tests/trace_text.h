/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of traces: one loaded from text, by way of a file that is gone afterwards.
 */
#ifndef TESTS_TRACE_TEXT_H
#define TESTS_TRACE_TEXT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "traces/trace.h"

static inline int load_text_as(struct trace *t, const char *text,
                               const struct trace_reading *reading, struct err *err)
{
    char path[] = "/tmp/test_trace_XXXXXX";
    int fd = mkstemp(path);
    size_t len = strlen(text);
    cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    close(fd);
    int rc = trace_load(t, path, reading, err);
    unlink(path);
    return rc;
}

static inline int load_text(struct trace *t, const char *text, struct err *err)
{
    return load_text_as(t, text, &(struct trace_reading){0}, err);
}

/* JSON with single quotes for double ones. */
static inline int load_quoted(struct trace *t, const char *text, struct err *err)
{
    char *json = xstrdup(text);
    for (char *c = json; (c = strchr(c, '\'')) != NULL;)
        *c = '"';
    int rc = load_text(t, json, err);
    free(json);
    return rc;
}

#endif
