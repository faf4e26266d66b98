/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that a report writes, for tests that read it.
 */
#ifndef TESTS_REPORT_SINK_H
#define TESTS_REPORT_SINK_H

#include <stdio.h>

/* To be freed. */
struct sink {
    char *text;
    size_t size;
    FILE *f;
};

static inline void sink_open(struct sink *s)
{
    s->f = open_memstream(&s->text, &s->size);
}

static inline const char *sink_text(struct sink *s)
{
    fclose(s->f);
    return s->text;
}

#endif
