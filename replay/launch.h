/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a run as processes connected to each other, with a coordinator: forked here, one
 * each, or started by a launcher, in which case rank 0's process forks and coordinates.
 */
#ifndef REPLAY_LAUNCH_H
#define REPLAY_LAUNCH_H

#include "replay/client.h"
#include "replay/comm.h"
#include "replay/control.h"
#include "replay/world.h"

/* What a rank is given, however it was started. */
struct rank_context {
    int rank, ranks;
    int local_rank; /* among the ranks of this host */
    struct comm comm;
    struct client *client;
    void *arg; /* the launcher's, as it was before the fork */
};

struct launch {
    struct world world;
    double stall_s;
    int (*body)(struct rank_context *ctx, struct err *err); /* runs in each rank */
    control_step_fn on_step;                                /* runs in the coordinator */
    void *arg;                                              /* for both */
};

/* Run body in every rank and wait for all of them; of those started here none is left when this
 * returns. In a process that a launcher started as another rank than 0 it runs body and ends the
 * process. Call it before starting threads or touching a GPU. Fails as control_run() does. */
int launch_run(const struct launch *l, struct err *err);

#endif
