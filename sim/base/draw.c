/* SPDX-License-Identifier: Apache-2.0
 *
 * Normal: the polar method (G. Marsaglia and T. A. Bray, SIAM Review 6(3), 1964). Gamma: squeeze
 * (G. Marsaglia and W. W. Tsang, TOMS 26(3), 2000). Weibull: inversion.
 */
#include "sim/base/draw.h"

#include <assert.h>
#include <math.h>

double draw_normal(struct rng *r)
{
    double u, v, s;
    do {
        u = 2 * rng_f64(r) - 1;
        v = 2 * rng_f64(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

/* In (0, 1], for logarithms. */
static double above_zero(struct rng *r)
{
    return 1 - rng_f64(r);
}

/* shape >= 1 */
static double squeeze(struct rng *r, double shape)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = draw_normal(r), t = 1 + c * x, v = t * t * t;
        if (v > 0 && log(above_zero(r)) < x * x / 2 + d * (1 - v + log(v)))
            return d * v;
    }
}

double draw_gamma(struct rng *r, double shape)
{
    assert(shape > 0);
    if (shape >= 1)
        return squeeze(r, shape);
    double above = squeeze(r, shape + 1);
    return above * pow(above_zero(r), 1 / shape);
}

double draw_weibull(struct rng *r, double shape)
{
    assert(shape > 0);
    return pow(-log(above_zero(r)), 1 / shape);
}
