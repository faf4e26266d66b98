/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a plan on the GPUs: requests in, rows sorted by owner, the switch if there is one,
 * all layers, and how long each stage took. Collective.
 */
#ifndef REPLAY_CUDA_STEP_H
#define REPLAY_CUDA_STEP_H

#include "replay/cuda/rank.h"

/* Run the step under `to`. Steps without a switch are replayed from a graph, as often as asked for,
 * captured after a first run that is not timed; a switch's step is enqueued as it goes, with the
 * mechanism `free` too, whose switch is over before the clock starts. Unless unchecked, what a step
 * works on is poisoned first, and KV is compared over a switch. */
int step_run(struct gpu_rank *r, const struct plan_step *s, const struct layout *to,
             struct backend_times *times, struct err *err);

/* A switch on its own, not timed. */
int step_switch(struct gpu_rank *r, const struct layout *to, struct err *err);

#endif
