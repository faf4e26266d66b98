/* SPDX-License-Identifier: Apache-2.0
 *
 * Who does a study's runs: threads of this process and, when a launcher started several, the other
 * processes. Each takes the next job as soon as it is free. Results come back to the one thread
 * that leads, in any order.
 */
#ifndef SIM_TUNE_TEAM_H
#define SIM_TUNE_TEAM_H

#include "sim/base/ranks.h"
#include "sim/tune/metrics.h"

/* What a worker is and does. Each thread has a worker of its own. */
struct team_task {
    void *(*worker_new)(const void *context);
    void (*worker_free)(void *worker);
    void (*work)(void *worker, int64_t job, struct outcome *out);
    const void *context;
};

/* Where the leader's jobs come from and go to. */
struct team_flow {
    int (*next)(void *context, int64_t *job, struct err *err); /* 1 a job, 0 no more, -1 stop */
    int (*done)(void *context, int64_t job, const struct outcome *out, struct err *err);
    void *context;
};

struct team;

/* `threads` are this process's; both are borrowed. */
struct team *team_new(const struct ranks *ranks, int threads, const struct team_task *task);
void team_free(struct team *t);

/* Rank 0: all jobs, until next() has no more and the last is done. On an error no new job is begun
 * and those under way are waited for and lost. */
int team_lead(struct team *t, const struct team_flow *flow, struct err *err);
/* Rank 0, once: lets the others return from team_follow(). */
void team_dismiss(struct team *t);
/* The other ranks: work until dismissed. */
void team_follow(const struct team_task *task);

/* Threads and other processes that work. */
int team_size(const struct team *t);

#endif
