/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws: means and variances against the formulas, within five standard errors.
 */
#include "sim/base/draw.h"

#include <criterion/criterion.h>
#include <math.h>

enum { DRAWS = 200000 };

static const double pi = 3.14159265358979324;

struct moments {
    double mean, variance, least;
};

static struct moments measure(double (*draw)(struct rng *, double), double shape)
{
    struct rng r;
    double sum = 0, squares = 0, least = INFINITY;
    rng_init(&r, 7);
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(&r, shape);
        sum += x;
        squares += x * x;
        least = fmin(least, x);
    }
    double mean = sum / DRAWS;
    return (struct moments){mean, squares / DRAWS - mean * mean, least};
}

static double normal(struct rng *r, double unused)
{
    (void)unused;
    return draw_normal(r);
}

Test(draw, normal_has_mean_0_and_variance_1)
{
    struct moments m = measure(normal, 0);
    cr_expect_float_eq(m.mean, 0, 5 / sqrt(DRAWS));
    cr_expect_float_eq(m.variance, 1, 5 * sqrt(2.0 / DRAWS));
    cr_expect_lt(m.least, -3.5);
}

/* Variance of the sample variance: (fourth central moment - variance^2) / n; of Gamma k it is
 * 3k^2 + 6k - k^2. */
Test(draw, gamma_has_its_shape_as_mean_and_variance)
{
    static const double shapes[] = {0.2, 0.5, 1, 1.15, 17.28};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double k = shapes[i];
        struct moments m = measure(draw_gamma, k);
        cr_expect_float_eq(m.mean, k, 5 * sqrt(k / DRAWS), "%g: %g", k, m.mean);
        cr_expect_float_eq(m.variance, k, 5 * sqrt((2 * k * k + 6 * k) / DRAWS), "%g: %g", k,
                           m.variance);
        cr_expect_geq(m.least, 0);
    }
}

/* Shape 2: mean sqrt(pi) / 2, variance 1 - pi / 4; shape 1/2: mean 2, variance 20. */
Test(draw, weibull_has_the_moments_of_its_shape)
{
    struct moments two = measure(draw_weibull, 2), half = measure(draw_weibull, 0.5);
    cr_expect_float_eq(two.mean, sqrt(pi) / 2, 5 * sqrt((1 - pi / 4) / DRAWS));
    cr_expect_float_eq(two.variance, 1 - pi / 4, 0.005);
    cr_expect_float_eq(half.mean, 2, 5 * sqrt(20.0 / DRAWS));
    cr_expect_geq(half.least, 0);
}

Test(draw, extreme_shapes_stay_finite)
{
    struct rng r;
    rng_init(&r, 1);
    for (int i = 0; i < 1000; i++) {
        cr_assert(isfinite(draw_gamma(&r, 0.01)) && isfinite(draw_gamma(&r, 1e6)));
        cr_assert(isfinite(draw_weibull(&r, 0.01)) && isfinite(draw_weibull(&r, 1e6)));
    }
}
