/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer arithmetic that C leaves out.
 */
#ifndef SIM_BASE_INTS_H
#define SIM_BASE_INTS_H

#include <assert.h>
#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of non-negative a and positive b. */
static inline int64_t ceil_div_i64(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The least common multiple of positive a and b. */
static inline int64_t lcm_i64(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    assert(a > 0 && b > 0);
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

#endif
