/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefill of a burst of equal prompts, by the step cost model. Chunks of up to PREFILL_CHUNK_TOKENS
 * a step, first come first served; owners share them evenly, each with its own prompts.
 */
#ifndef SIM_STUDY_PREFILL_H
#define SIM_STUDY_PREFILL_H

#include "sim/cost/cost.h"

enum { PREFILL_CHUNK_TOKENS = 8192 };

/* Told of every step, in order. */
typedef void prefill_fn(void *state, const struct step_cost *step);

/* The steps of `batch` prompts of `tokens` each. */
void prefill_steps(const struct cost *c, int layout, int batch, int64_t tokens, prefill_fn *tell,
                   void *state);

/* Seconds from the arrival of all to the end of the last one's prefill. */
double prefill_s(const struct cost *c, int layout, int batch, int64_t tokens);

#endif
