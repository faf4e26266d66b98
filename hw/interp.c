/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/interp.h"

#include <assert.h>
#include <math.h>

double interp_log2(double x)
{
    static const double sqrt_half = 0.70710678118654752, log2_e = 1.4426950408889634;
    int exponent;
    assert(x > 0 && isfinite(x));
    double m = frexp(x, &exponent);
    if (m < sqrt_half) {
        m *= 2;
        exponent--;
    }
    /* ln m = 2 (s + s^3/3 + s^5/5 + ...); |s| < 0.172, so s^23 is below the last bit */
    double s = (m - 1) / (m + 1), sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * s * s + 1.0 / k;
    return exponent + 2 * log2_e * s * sum;
}

double interp_linear(double x, double x0, double y0, double x1, double y1)
{
    return y0 + (y1 - y0) * ((x - x0) / (x1 - x0));
}
