/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a file in the Trace Event Format, which Perfetto and chrome://tracing open: one JSON
 * object, an event a line, written as it comes and never held. Times are picoseconds, in the file
 * microseconds rounded to whole nanoseconds. Names and arguments are the caller's own words: they
 * hold no quote, backslash or control character.
 */
#ifndef SIM_REPORT_TRACE_EVENTS_H
#define SIM_REPORT_TRACE_EVENTS_H

#include <stdint.h>

#include "sim/base/file.h"

/* Where events are drawn. Threads have numbers of their own over all processes: some readers keep
 * their names by these alone. */
struct track {
    int pid, tid;
};

struct trace_events {
    struct outfile file;
    void *gz;        /* gzFile: compresses where the path ends in .gz, passes on otherwise */
    bool any;        /* an event was written */
    int64_t n_flows; /* whose ids these are */
};

/* Open `path` ("-" is standard output). `about` is a JSON object of what the file is of. */
int trace_events_open(struct trace_events *t, const char *path, const char *about, struct err *err);
/* Finish the file and put it in its place. */
int trace_events_commit(struct trace_events *t, struct err *err);
/* Throw away; does nothing after a commit, or where nothing was opened. */
void trace_events_abort(struct trace_events *t);

/* Names of processes and threads; processes are shown in the order of their numbers. */
void trace_events_process(struct trace_events *t, int pid, const char *name);
void trace_events_thread(struct trace_events *t, struct track at, const char *name);

/* `args` is a JSON object as text, or NULL. */
void trace_events_slice(struct trace_events *t, struct track at, const char *name, int64_t start_ps,
                        int64_t end_ps, const char *args);
void trace_events_instant(struct trace_events *t, struct track at, const char *name, int64_t at_ps,
                          const char *args);
/* A counter of the process; `args` has its series. */
void trace_events_counter(struct trace_events *t, int pid, const char *name, int64_t at_ps,
                          const char *args);
/* An arrow from the slice of the track at from_ps to the one at to_ps. */
void trace_events_flow(struct trace_events *t, struct track at, const char *name, int64_t from_ps,
                       int64_t to_ps);
/* Something that goes on beside the tracks. What has the same id nests; ends repeat the name. */
void trace_events_begin(struct trace_events *t, int pid, const char *name, int64_t id,
                        int64_t at_ps, const char *args);
void trace_events_end(struct trace_events *t, int pid, const char *name, int64_t id, int64_t at_ps);

#endif
