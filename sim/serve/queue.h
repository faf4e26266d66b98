/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs wait here for one of a few workers, run, and end. Every change of a job's state passes
 * through this file: to the store first, then to those who watch.
 */
#ifndef SIM_SERVE_QUEUE_H
#define SIM_SERVE_QUEUE_H

#include "sim/serve/choices.h"
#include "sim/serve/config.h"
#include "sim/serve/events.h"
#include "sim/serve/jobs.h"
#include "sim/serve/metrics.h"

struct queue_parts { /* all borrowed */
    struct event_base *base;
    struct jobs *jobs;
    struct events *events;
    struct metrics *metrics;
    const struct serve_config *config;
    const struct choices *choices;
};

struct queue;
/* Starts what waited when the last server ended. NULL with a message. */
struct queue *queue_new(const struct queue_parts *parts, struct err *err);
/* Kills what runs and marks it as interrupted. */
void queue_free(struct queue *q);

bool queue_is_full(const struct queue *q);
/* Takes a job in: stores it and starts it when a worker is free. */
int queue_add(struct queue *q, const struct job *j, struct err *err);
/* An upload that is complete. */
int queue_check(struct queue *q, const struct job *j, struct err *err);
/* A job that has not ended. */
void queue_cancel(struct queue *q, const struct job *j);
/* Into the metrics: workers, jobs that wait, watchers. */
void queue_count(const struct queue *q, struct metrics *m);

/* The job as the API shows it; with how far it is, when it runs. A new reference. */
json_t *queue_job_json(const struct queue *q, const struct job *j);

#endif
