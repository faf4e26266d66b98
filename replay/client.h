/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's side of the control plane: a thread that tells the coordinator every 200 ms where the
 * rank is, and that ends the process with _exit(1) when the coordinator says so or is gone,
 * whatever the main thread is stuck in. The functions below are for the main thread.
 */
#ifndef REPLAY_CLIENT_H
#define REPLAY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "replay/tcp.h"
#include "replay/world.h"
#include "sim/base/err.h"

struct client;

/* Join the coordinator as w->rank, which has 10 s to show up; returns once all ranks have joined.
 * `listen_port` is where this rank awaits others, 0 for nowhere; at[rank] becomes where each rank
 * does, seen from here. */
struct client *client_new(const struct world *w, int listen_port, struct tcp_address *at,
                          struct err *err);

/* What the heartbeats say from now on: the step this rank works in, and whether it waits in it for
 * other ranks (then it is not the first to be blamed for a stall). A new step does not wait. */
void client_at_step(struct client *c, int step);
void client_set_waits(struct client *c, bool waits);

/* Rank 0's bytes arrive in every rank. Collective, in the same order everywhere. */
void client_broadcast(struct client *c, void *data, size_t bytes);

/* Hand over what this rank measured in a step: once per step, in the same order on every rank. The
 * data is copied. */
void client_send_result(struct client *c, int step, const void *data, size_t bytes);

/* Say goodbye, wait until all that was sent has arrived, and free the client. */
void client_leave(struct client *c);

/* Tell the coordinator why this rank cannot go on; it ends the run, and this process with it. */
_Noreturn void client_fail(struct client *c, const struct err *why);

#endif
