/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/cost/seg.h"

static struct seg random_seg(struct rng *r)
{
    struct seg s = {rng_range(r, 0, 200), rng_range(r, -5, 5), rng_range(r, 1, 40)};
    while (s.b_ps < 0 && s.a_ps + s.b_ps * (s.n - 1) < 0)
        s.n--;
    return s;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

Test(seg, operations_equal_single_steps)
{
    struct rng r;
    rng_init(&r, 1);
    for (int round = 0; round < 20000; round++) {
        struct seg x = random_seg(&r), y = random_seg(&r);
        struct seg sum = seg_add(x, y), most = seg_max(x, y), rest = seg_excess(x, y);
        struct seg thrice = seg_scale(x, 3), pipe = seg_pipeline(x, y, 4);
        for (int64_t i = 0; i < sum.n; i++)
            cr_assert_eq(seg_at(sum, i), seg_at(x, i) + seg_at(y, i));
        for (int64_t i = 0; i < most.n; i++)
            cr_assert_eq(seg_at(most, i), max64(seg_at(x, i), seg_at(y, i)));
        for (int64_t i = 0; i < rest.n; i++)
            cr_assert_eq(seg_at(rest, i), max64(seg_at(x, i) - seg_at(y, i), 0));
        for (int64_t i = 0; i < thrice.n; i++)
            cr_assert_eq(seg_at(thrice, i), 3 * seg_at(x, i));
        for (int64_t i = 0; i < pipe.n; i++)
            cr_assert_eq(seg_at(pipe, i),
                         seg_at(x, i) + seg_at(y, i) + 3 * max64(seg_at(x, i), seg_at(y, i)));
    }
}

/* x = 10, 12, 14, ... and y = 15, 16, 17, ...: y leads up to step 5, where both are 20. */
Test(seg, max_is_cut_where_the_other_takes_over)
{
    struct seg x = {10, 2, 100}, y = {15, 1, 100};
    struct seg most = seg_max(x, y);
    cr_expect_eq(most.a_ps, 15);
    cr_expect_eq(most.b_ps, 1);
    cr_expect_eq(most.n, 6);
    struct seg after = seg_max(seg_shift(x, 6), seg_shift(y, 6));
    cr_expect_eq(after.a_ps, 22);
    cr_expect_eq(after.n, 94);
}

Test(seg, sums_and_reaching_invert_each_other)
{
    struct rng r;
    rng_init(&r, 2);
    for (int round = 0; round < 5000; round++) {
        struct seg x = random_seg(&r);
        int64_t elapsed = rng_range(&r, 1, 4000), sum = 0, n = 0;
        while (n < x.n && (n == 0 || sum < elapsed))
            sum += seg_at(x, n++);
        cr_assert_eq(seg_sum(x, n), sum);
        cr_assert_eq(seg_steps_to_reach(x, elapsed), n);
    }
}

Test(seg, sums_are_exact_beyond_64_bits_inside)
{
    struct seg x = {1000000, 2000000000, SEG_FOREVER};
    /* 90000 * 10^6 + 2*10^9 * 90000 * 89999 / 2 */
    cr_expect_eq(seg_sum(x, 90000), 8099910090000000000LL);
}

Test(seg, order_holds_as_long_as_it_says)
{
    struct rng r;
    rng_init(&r, 3);
    for (int round = 0; round < 20000; round++) {
        struct seg x = random_seg(&r), y = random_seg(&r);
        int64_t p = rng_range(&r, 0, 7), q = rng_range(&r, 0, 7);
        int64_t both = x.n < y.n ? x.n : y.n, n = seg_same_order(x, p, y, q);
        bool now = p * x.a_ps > q * y.a_ps;
        cr_assert(n >= 1 && n <= both);
        for (int64_t i = 0; i < n; i++)
            cr_assert_eq(p * seg_at(x, i) > q * seg_at(y, i), now);
        if (n < both)
            cr_assert_neq(p * seg_at(x, n) > q * seg_at(y, n), now);
    }
}

/* A week of ten-millisecond steps that grow by 0.1 us each: k steps take 10^10 k + 10^5 k (k-1) / 2
 * ps, while the sum of all constant steps' worth would not fit 64 bits. */
Test(seg, reaching_far_forms_no_sum_beyond_it)
{
    struct seg x = {10000000000, 100000, SEG_FOREVER};
    int64_t week_ps = 604800000000000000;
    int64_t k = seg_steps_to_reach(x, week_ps);
    cr_expect_geq(seg_sum(x, k), week_ps);
    cr_expect_lt(seg_sum(x, k - 1), week_ps);
    /* 0, 1, 2, 3, 4: ten after five steps. */
    cr_expect_eq(seg_steps_to_reach((struct seg){0, 1, SEG_FOREVER}, 10), 5);
    cr_expect_eq(seg_steps_to_reach((struct seg){0, 1, 4}, 10), 4);
}

/* Helix, section 2.1.3: eight requests of 2.0 compute and 1.2 exchange take 25.6 in lockstep
 * and 17.2 pipelined (the paper prints 17). */
Test(seg, hop_b_pipeline_of_the_paper)
{
    struct seg compute = seg_const(20), exchange = seg_const(12);
    cr_expect_eq(seg_pipeline(compute, exchange, 8).a_ps, 172);
    cr_expect_eq(8 * (compute.a_ps + exchange.a_ps), 256);
}
