/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/experts.h"

/* By squaring: libm's pow may differ in its last bit between processors. */
static double power(double base, int64_t n)
{
    double result = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result *= base;
        base *= base;
    }
    return result;
}

static double chosen_frac(int experts, int topk, int64_t rows)
{
    return 1 - power(1 - (double)topk / experts, rows);
}

double experts_chosen(int experts, int topk, int64_t rows)
{
    return experts * chosen_frac(experts, topk, rows);
}

/* Where p > 1/2 the idle ones are counted, from the other end, so that no first term underflows:
 * the busiest group has the fewest idle. */
static double fewest(int n, double p, int groups)
{
    double term = power(1 - p, n), below = 0, sum = 0;
    for (int x = 0; x < n; x++) {
        below += term;
        sum += below < 1 ? power(1 - below, groups) : 0;
        term *= (double)(n - x) / (x + 1) * (p / (1 - p));
    }
    return sum;
}

static double most(int n, double p, int groups)
{
    double term = power(1 - p, n), below = 0, sum = 0;
    for (int x = 0; x < n; x++) {
        below += term;
        sum += below < 1 ? 1 - power(below, groups) : 0;
        term *= (double)(n - x) / (x + 1) * (p / (1 - p));
    }
    return sum;
}

double experts_busiest(int experts, int topk, int64_t rows, int groups)
{
    double p = chosen_frac(experts, topk, rows);
    int n = (experts + groups - 1) / groups;
    if (groups == 1)
        return experts * p;
    return p > 0.5 ? n - fewest(n, 1 - p, groups) : most(n, p, groups);
}
