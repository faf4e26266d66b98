/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a plan: what each rank does, step by step, on any backend, and how the ranks' results
 * become measured lines. Knows nothing of how ranks are started or how results travel.
 */
#ifndef REPLAY_DRIVER_H
#define REPLAY_DRIVER_H

#include "replay/backend.h"
#include "replay/comm.h"
#include "replay/slice.h"
#include "sim/layout/layout.h"
#include "sim/plan/plan.h"

struct driver_job {
    struct plan plan;
    struct slice slice;
    const struct backend *backend;
    struct backend_options options;
};

/* What a rank says of a step: fixed size, sent as bytes. */
struct driver_result {
    struct backend_times times;
    double check_error; /* rank 0's: see backend.compare; the others say 0 */
};

/* Load the plan and its model into a job whose backend and options are set; `layers` > 0 shortens
 * the slice. Refuses, saying why, what cannot be run: layouts that do not suit the model, sparse or
 * linear attention, what the backend refuses. */
int driver_load(struct driver_job *job, const char *path, int layers, struct err *err);
void driver_release(struct driver_job *job);

/* The step's layout, which driver_load() has checked. */
struct layout driver_layout(const struct driver_job *job, const char *name);

/* Whether a step from `index` on has rows of this request. */
bool driver_needs(const struct driver_job *job, int index, int64_t req);

/* Query rows of a step. */
int64_t driver_count_rows(const struct plan_step *s);

/* Deliver one step's result; -1 stops the rank. */
typedef int driver_deliver_fn(void *context, int index, const struct driver_result *r,
                              struct err *err);

/* One rank's whole run. Collective over comm. */
int driver_run_rank(const struct driver_job *job, struct comm *comm, int local_rank,
                    driver_deliver_fn *deliver, void *context, struct err *err);

/* Join what all ranks said of a step into a measured plan step: the slowest rank's times, and of
 * exchanges the time of the rank that waited least. */
void driver_join(struct plan_step *s, const struct driver_result *r, int ranks);

#endif
