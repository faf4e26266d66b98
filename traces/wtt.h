/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace in binary form (.wtt): what was loaded, ready to be loaded again without parsing. Its
 * layout is in docs/formats.md.
 */
#ifndef TRACES_WTT_H
#define TRACES_WTT_H

#include <stdbool.h>
#include <stdio.h>

#include "traces/trace.h"

/* Whether the path is a plain file that begins as a .wtt does. */
bool wtt_is(const char *path);
/* Everything is checked: size, checksum, and each request as if it came from a reader. What is told
 * of the original (path, format, lines, what was skipped) becomes the trace's own. */
int wtt_load(struct trace *t, const char *path, struct err *err);
/* Of a trace from trace_load(), with or without selections; hashes of requests that are gone are
 * left out. Same trace, same bytes. Faults are left on `out`, for outfile_commit(). */
void wtt_write(const struct trace *t, FILE *out);

#endif
