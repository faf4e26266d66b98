/* SPDX-License-Identifier: Apache-2.0
 *
 * How long each collective takes by itself: the calls that a step makes for it, many in one graph,
 * on GPUs that do nothing else.
 */
#ifndef REPLAY_CUDA_LINK_TIMES_H
#define REPLAY_CUDA_LINK_TIMES_H

#include "replay/backend.h"

/* What backend.collectives does once the device is taken. After a failure calls may still be in
 * flight, so that the process has to end. */
int link_times_measure(const struct backend_options *o, struct comm *comm,
                       backend_collective_fn *deliver, void *context, struct err *err);

#endif
