/* SPDX-License-Identifier: Apache-2.0
 *
 * Where not to believe the simulator: plain sentences that follow from a validation's numbers by
 * the rules of docs/metrics.md.
 */
#ifndef SIM_REPORT_DOUBTS_H
#define SIM_REPORT_DOUBTS_H

#include <stddef.h>

#include "sim/study/validation.h"

struct doubts {
    char **sentence;
    int n;
    size_t cap;
};

/* At least one sentence: when no rule finds anything, that. */
void doubts_init(struct doubts *d, const struct validation *v);
void doubts_release(struct doubts *d);

#endif
