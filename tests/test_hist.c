/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/hist: exact small values, the error bound against a sorted array, extremes.
 */
#include "sim/base/hist.h"

#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/base/rng.h"

static struct hist filled(const int64_t *value, size_t n)
{
    struct hist h;
    hist_init(&h);
    for (size_t i = 0; i < n; i++)
        hist_add(&h, value[i], 1);
    return h;
}

Test(hist, empty_gives_zero)
{
    struct hist h;
    hist_init(&h);
    cr_assert_eq(hist_quantile(&h, 0.5), 0);
    cr_assert_eq(hist_mean(&h), 0.0);
    hist_release(&h);
}

Test(hist, values_below_512_are_exact)
{
    struct hist h;
    hist_init(&h);
    for (int64_t v = 0; v < 512; v++)
        hist_add(&h, v, 1);
    for (int64_t v = 0; v < 512; v++)
        cr_assert_eq(hist_quantile(&h, (double)(v + 1) / 512), v);
    hist_release(&h);
}

Test(hist, quantile_is_the_smallest_value_that_covers_the_share)
{
    static const int64_t value[] = {40, 10, 30, 20};
    struct hist h = filled(value, 4);
    cr_assert_eq(hist_quantile(&h, 0), 10);
    cr_assert_eq(hist_quantile(&h, 0.25), 10);
    cr_assert_eq(hist_quantile(&h, 0.26), 20);
    cr_assert_eq(hist_quantile(&h, 0.5), 20);
    cr_assert_eq(hist_quantile(&h, 0.75), 30);
    cr_assert_eq(hist_quantile(&h, 0.76), 40);
    cr_assert_eq(hist_mean(&h), 25.0);
    hist_release(&h);
}

Test(hist, decimal_shares_do_not_skip_a_rank)
{
    struct hist h;
    hist_init(&h);
    for (int64_t v = 1; v <= 100; v++)
        hist_add(&h, v, 1);
    for (int percent = 1; percent <= 100; percent++)
        cr_assert_eq(hist_quantile(&h, percent / 100.0), percent);
    hist_release(&h);
}

Test(hist, times_weigh_a_value)
{
    struct hist h;
    hist_init(&h);
    hist_add(&h, 1, 99);
    hist_add(&h, 400, 1);
    hist_add(&h, 7, 0);
    cr_assert_eq(h.n, 100);
    cr_assert_eq(hist_quantile(&h, 0.99), 1);
    cr_assert_eq(hist_quantile(&h, 0.991), 400);
    cr_assert_float_eq(hist_mean(&h), 4.99, 1e-12);
    hist_release(&h);
}

Test(hist, one_large_value_is_exact_everywhere)
{
    struct hist h;
    hist_init(&h);
    hist_add(&h, INT64_MAX, 3);
    cr_assert_eq(h.octaves, 56);
    cr_assert_eq(hist_quantile(&h, 0), INT64_MAX);
    cr_assert_eq(hist_quantile(&h, 0.5), INT64_MAX);
    cr_assert_eq(hist_quantile(&h, 1), INT64_MAX);
    cr_assert_float_eq(hist_mean(&h), 0x1p63, 1);
    hist_release(&h);
}

Test(hist, bucket_edges_stay_in_order)
{
    /* 1022 and 1023 share the last bucket of their octave, 1024 opens the next */
    static const int64_t value[] = {1022, 1023, 1024, 1028};
    struct hist h = filled(value, 4);
    cr_assert_eq(hist_quantile(&h, 0.5), 1022);
    cr_assert_eq(hist_quantile(&h, 0.75), 1025);
    cr_assert_eq(hist_quantile(&h, 1), 1028);
    cr_assert_eq(h.min, 1022);
    hist_release(&h);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

Test(hist, error_is_within_one_in_512_of_a_sorted_array)
{
    enum { N = 20000 };
    static int64_t value[N];
    struct rng r;
    rng_init(&r, 3);
    for (int i = 0; i < N; i++) /* even over the magnitudes: 2^0 to 2^60 */
        value[i] = (int64_t)exp2(60 * rng_f64(&r));
    struct hist h = filled(value, N);
    qsort(value, N, sizeof *value, compare);
    double worst = 0;
    for (int k = 1; k <= N; k++) {
        double exact = (double)value[k - 1];
        double off = fabs((double)hist_quantile(&h, (double)k / N) - exact) / exact;
        worst = off > worst ? off : worst;
    }
    cr_assert_leq(worst, 1.0 / 512);
    cr_assert_gt(worst, 1.0 / 1024, "the bound should be nearly reached");
    hist_release(&h);
}
