/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer arithmetic that C leaves out.
 */
#ifndef SIM_BASE_INTS_H
#define SIM_BASE_INTS_H

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

#endif
