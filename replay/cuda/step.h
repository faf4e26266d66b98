/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a plan on the GPUs: requests in, rows sorted by owner, the switch if there is one,
 * all layers, and how long each stage took. Collective.
 */
#ifndef REPLAY_CUDA_STEP_H
#define REPLAY_CUDA_STEP_H

#include "replay/cuda/rank.h"

/* Run the step under `to`, each layer as one graph unless eager. A step without a switch runs as
 * often as asked for, after a first run that is not timed when its shape is new; one with a switch
 * runs once, and the mechanism `free` has its switch done before the clock starts. A request whose
 * last rows come again is taken back to before them. Unless unchecked, what a step works on is
 * poisoned first, and KV is compared over a switch. */
int step_run(struct gpu_rank *r, const struct plan_step *s, const struct layout *to,
             struct backend_times *times, struct err *err);

/* A switch on its own, not timed. */
int step_switch(struct gpu_rank *r, const struct layout *to, struct err *err);

#endif
