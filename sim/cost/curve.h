/* SPDX-License-Identifier: Apache-2.0
 *
 * A piecewise linear integer function of a request's context length: picoseconds that one decode
 * row costs. Knots come from roofline changes (sparse top-k) and profile tables.
 */
#ifndef SIM_COST_CURVE_H
#define SIM_COST_CURVE_H

#include "sim/cost/seg.h"

enum { CURVE_PIECES_MAX = 40 };

struct curve {
    int n;
    int64_t from[CURVE_PIECES_MAX + 1]; /* piece i covers [from[i], from[i+1]); last is INT64_MAX */
    int64_t value_ps[CURVE_PIECES_MAX]; /* at from[i] */
    int64_t slope_ps[CURVE_PIECES_MAX]; /* per token, an integer: sums of steps stay exact */
};

/* Through the points (tokens[i], ps[i]), ascending, tokens[0] = 0; beyond the last point the slope
 * of the last pair goes on. Slopes are rounded to integers; values restart at each knot. */
void curve_through(struct curve *c, int n, const int64_t *tokens, const double *ps);

/* The cost of a row whose context is `tokens` now and grows by one each step. */
struct seg curve_seg(const struct curve *c, int64_t tokens);

#endif
