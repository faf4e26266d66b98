/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine segment: the cost of step i of the next n steps is a_ps + b_ps * i. Between two events
 * every stage of a decode step is one, so the engine may jump k steps in closed form and land on
 * the very picosecond that k single steps would reach. Operations cut n where the result would
 * stop being affine; evaluating the shifted operands there continues the same integer function.
 */
#ifndef SIM_COST_SEG_H
#define SIM_COST_SEG_H

#include <stdint.h>

#define SEG_FOREVER INT64_MAX

struct seg {
    int64_t a_ps, b_ps; /* value and growth per step; the value stays >= 0 for i < n */
    int64_t n;          /* steps it holds for, >= 1 */
};

struct seg seg_const(int64_t a_ps);
struct seg seg_add(struct seg x, struct seg y);
/* Larger of the two at every step; n is cut at the first step where the other takes over. */
struct seg seg_max(struct seg x, struct seg y);
/* max(x - y, 0): what is left of x when y hides it. */
struct seg seg_excess(struct seg x, struct seg y);
struct seg seg_scale(struct seg x, int64_t times);
/* Makespan of `parts` equal sub-batches through two resources in order, c then x each (HOP-B, Helix
 * section 2.1.3): c + x + (parts - 1) * max(c, x). */
struct seg seg_pipeline(struct seg c, struct seg x, int64_t parts);

int64_t seg_at(struct seg x, int64_t i);
/* The segment seen k steps later. k < n. */
struct seg seg_shift(struct seg x, int64_t k);
/* Sum of the first k steps, exact (128-bit inside; asserts that the result fits). k <= n. */
int64_t seg_sum(struct seg x, int64_t k);
/* The fewest steps, at least 1, whose sum reaches elapsed_ps; n when even all n do not. */
int64_t seg_steps_to_reach(struct seg x, int64_t elapsed_ps);
/* Steps for which the truth of p * x > q * y stays what it is at step 0, at least 1 and at most
 * what both segments hold for. p, q >= 0. */
int64_t seg_same_order(struct seg x, int64_t p, struct seg y, int64_t q);

#endif
