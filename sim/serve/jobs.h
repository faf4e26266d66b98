/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that the server knows, in one SQLite file: runs of the simulator, and traces that are
 * uploaded or drawn. A job's state is written before anybody is told of it, so a server that is
 * killed loses nothing; what was running then is marked when the file is opened again.
 */
#ifndef SIM_SERVE_JOBS_H
#define SIM_SERVE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/err.h"

enum { ID_SIZE = 33 }; /* 128 random bits in hex: to know a job's id is the right to see it */

/* From the system's random numbers. */
int id_make(char id[ID_SIZE], struct err *err);
/* Has `text` the form of one? */
bool id_is(const char *text);

enum job_kind { JOB_RUN, JOB_TRACE, JOB_KIND_COUNT };

enum job_state {
    JOB_OPEN, /* an upload that has not all its parts yet */
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_INTERRUPTED, /* the server ended while it ran */
    JOB_STATE_COUNT
};
extern const char *const job_state_names[JOB_STATE_COUNT];

/* Will it change no more by itself? */
bool job_has_ended(enum job_state state);

struct job {
    char id[ID_SIZE];
    int kind, state;              /* enum job_kind, enum job_state */
    char *name, *order, *message; /* order: JSON, what was asked for; message: why it failed */
    int64_t created_s, started_s, ended_s; /* since 1970; 0: not yet */
};
void job_release(struct job *j);

struct jobs;
/* Opens or makes the file, which no other process may have open; marks what was running as
 * interrupted. NULL with a message. */
struct jobs *jobs_open(const char *path, struct err *err);
void jobs_close(struct jobs *s);

int jobs_add(struct jobs *s, const struct job *j, struct err *err);
/* 1: *out holds it, to be released; 0: there is none of this kind and id; -1. */
int jobs_get(struct jobs *s, enum job_kind kind, const char *id, struct job *out, struct err *err);
/* The queued job that has waited longest; 1, 0 or -1 as above. */
int jobs_next(struct jobs *s, struct job *out, struct err *err);
/* The newest jobs of a kind, at most `max`, into `out`; of those older than the job `before`, where
 * it is not NULL. Returns their number or -1. */
int jobs_list(struct jobs *s, enum job_kind kind, const char *before, struct job *out, int max,
              struct err *err);
/* Moves a job to a state, now, with a message (NULL: none). */
int jobs_move(struct jobs *s, const char *id, enum job_state state, const char *message,
              struct err *err);
int jobs_remove(struct jobs *s, const char *id, struct err *err);
/* Grows with every change: what was read at the same number is still so. */
int64_t jobs_changes(struct jobs *s);
/* Jobs of a kind in a state; -1 where the file cannot be read. */
int64_t jobs_count(struct jobs *s, enum job_kind kind, enum job_state state);

#endif
