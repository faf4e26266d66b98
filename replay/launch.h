/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting the ranks of a run on this host: one forked process each, connected to all the others,
 * with this process as their coordinator.
 */
#ifndef REPLAY_LAUNCH_H
#define REPLAY_LAUNCH_H

#include "replay/client.h"
#include "replay/comm.h"
#include "replay/control.h"

/* What a rank is given, however it was started. */
struct rank_context {
    int rank, ranks;
    struct comm comm;
    struct client *client;
    void *arg; /* the launcher's, as it was before the fork */
};

struct launch {
    int ranks;
    int port; /* of the coordinator on 127.0.0.1; 0: any */
    double stall_s;
    int (*body)(struct rank_context *ctx, struct err *err); /* runs in each rank */
    control_step_fn on_step;                                /* runs here */
    void *arg;                                              /* for both */
};

/* Run body in `ranks` processes and wait for all of them; none is left when this returns. Call it
 * before starting threads or touching a GPU. Fails as control_run() does. */
int launch_run(const struct launch *l, struct err *err);

#endif
