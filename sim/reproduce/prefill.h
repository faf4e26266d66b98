/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of a prefill pool for a burst of equal prompts, by the step cost model.
 */
#ifndef SIM_REPRODUCE_PREFILL_H
#define SIM_REPRODUCE_PREFILL_H

#include "sim/cost/cost.h"

enum { PREFILL_CHUNK_TOKENS = 8192 };

/* Seconds from the arrival of `batch` prompts of `tokens` each to the end of the last one's
 * prefill. Chunks of up to PREFILL_CHUNK_TOKENS a step, first come first served; owners share them
 * evenly, each with its own prompts. */
double prefill_s(const struct cost *c, int layout, int batch, int64_t tokens);

#endif
