/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a plan: what each rank does, step by step, on the host backend, and how the ranks'
 * results become measured lines. Knows nothing of how ranks are started or how results travel.
 */
#ifndef REPLAY_DRIVER_H
#define REPLAY_DRIVER_H

#include "replay/comm.h"
#include "replay/slice.h"
#include "sim/layout/layout.h"
#include "sim/plan/plan.h"

struct driver_job {
    struct plan plan;
    struct slice slice;
};

/* What a rank says of a step: fixed size, sent as bytes. */
struct driver_result {
    struct plan_times times;
    double check_error; /* rank 0's: largest error of any rank's hidden rows against the reference,
                           relative to the largest value; the others say 0 */
};

/* Load the plan and its model; `layers` > 0 shortens the slice. Refuses, saying why, what the host
 * backend cannot run: sparse or linear attention, layouts that do not suit the model, shapes too
 * large. */
int driver_load(struct driver_job *job, const char *path, int layers, struct err *err);
void driver_release(struct driver_job *job);

/* Deliver one step's result; -1 stops the rank. */
typedef int driver_deliver_fn(void *context, int index, const struct driver_result *r,
                              struct err *err);

/* One rank's whole run. Collective over comm. */
int driver_run_rank(const struct driver_job *job, struct comm *comm, driver_deliver_fn *deliver,
                    void *context, struct err *err);

/* Join what all ranks said of a step into a measured plan step: the slowest rank's times. */
void driver_join(struct plan_step *s, const struct driver_result *r, int ranks);

#endif
