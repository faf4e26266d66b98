/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator of a group of ranks: it lets them meet, passes rank 0's broadcasts on, gathers
 * what they measure step by step, and ends the run when one of them fails, dies or stalls.
 */
#ifndef REPLAY_CONTROL_H
#define REPLAY_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

#include "sim/base/err.h"

/* What one rank delivered for a step; borrowed until the callback returns. */
struct control_result {
    const void *data;
    size_t bytes;
};

/* All ranks have delivered this step: results[rank]. Steps come in the order of delivery. Failing
 * ends the run with this error. */
typedef int (*control_step_fn)(void *arg, int step, const struct control_result *results,
                               struct err *err);

struct control_config {
    int ranks;
    const pid_t *pid; /* of the ranks that are children of this process, 0 for others; NULL: none */
    double stall_s;   /* a rank that stays this long in one step has stalled */
    control_step_fn on_step;
    void *arg; /* for on_step */
};

/* Serve the ranks that come to this listening socket until all have ended. Takes the socket, and
 * collects the children. On a failure it tells all ranks to exit, kills after 2 s those of its
 * children that did not, and names the rank and its step as last heard of (at most 200 ms old). A
 * death outranks a lost connection, which outranks a rank's own error: that may be no more than its
 * echo. SIGINT and SIGTERM are a failure too, the last to be named: a launcher sends them when it
 * sees a rank die. */
int control_run(const struct control_config *config, int listen_fd, struct err *err);

#endif
