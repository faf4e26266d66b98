/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws from continuous distributions. Each takes what it needs from the generator, so the same
 * state gives the same value.
 */
#ifndef SIM_BASE_DRAW_H
#define SIM_BASE_DRAW_H

#include "sim/base/rng.h"

/* Mean 0, standard deviation 1. */
double draw_normal(struct rng *r);
/* Gamma of scale 1: mean `shape`, variance `shape`; shape > 0. A shape far below 1 draws zeros
 * among the rest, as a double cannot hold what is that small. */
double draw_gamma(struct rng *r, double shape);
/* Weibull of scale 1: mean Gamma(1 + 1 / shape); shape > 0. */
double draw_weibull(struct rng *r, double shape);

#endif
