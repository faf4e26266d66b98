/* SPDX-License-Identifier: Apache-2.0
 *
 * Effective bandwidth of each primitive in figures 5, 9 and 11: bytes that the busiest rank
 * receives in a second, fitted by least squares of the relative error.
 */
#ifndef SIM_REPRODUCE_PRIMITIVES_H
#define SIM_REPRODUCE_PRIMITIVES_H

#include "sim/reproduce/paper.h"
#include "sim/reproduce/platform.h"

enum transported { WEIGHTS_GATHERED, KV_GATHERED, KV_EXCHANGED, TRANSPORTED_COUNT };

struct bandwidths {
    double bytes_per_s[TRANSPORTED_COUNT]; /* all-gather of weights, of KV; all-to-all of KV */
};

int primitives_fit(const struct platform *p, struct bandwidths *out, struct err *err);

#endif
