/* SPDX-License-Identifier: Apache-2.0
 *
 * Pareto frontiers against the definition, whatever the order, and their ratios by hand.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/pareto/frontier.h"
#include "sim/pareto/gain.h"

enum { POINTS = 400 };

static struct pareto_point point(double user, double gpu, uint64_t number)
{
    return (struct pareto_point){.tok_s_user = user, .tok_s_gpu = gpu, .number = number};
}

/* Few values, so that there are equal points and equal coordinates. */
static void draw(struct pareto_point *p, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    for (int i = 0; i < POINTS; i++)
        p[i] = point(1 + (double)rng_range(&rng, 0, 39), 1 + (double)rng_range(&rng, 0, 39),
                     (uint64_t)i);
}

/* Nobody is at least as good in both, nor equal with a lower number. */
static bool belongs(const struct pareto_point *all, int i)
{
    for (int k = 0; k < POINTS; k++) {
        bool as_good =
            all[k].tok_s_user >= all[i].tok_s_user && all[k].tok_s_gpu >= all[i].tok_s_gpu;
        bool equal = all[k].tok_s_user == all[i].tok_s_user && all[k].tok_s_gpu == all[i].tok_s_gpu;
        if (as_good && (!equal || all[k].number < all[i].number))
            return false;
    }
    return true;
}

static bool has(const struct frontier *f, uint64_t number)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->point[i].number == number)
            return true;
    return false;
}

Test(frontier, is_what_nothing_beats)
{
    struct pareto_point all[POINTS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct frontier f = {0};
        size_t n = 0;
        draw(all, seed);
        for (int i = 0; i < POINTS; i++)
            frontier_add(&f, &all[i]);
        for (int i = 0; i < POINTS; i++) {
            cr_assert_eq(has(&f, (uint64_t)i), belongs(all, i), "seed %d, point %d", (int)seed, i);
            n += belongs(all, i);
        }
        cr_assert_eq(f.n, n);
        for (size_t i = 1; i < f.n; i++)
            cr_assert(f.point[i].tok_s_user < f.point[i - 1].tok_s_user &&
                      f.point[i].tok_s_gpu > f.point[i - 1].tok_s_gpu);
        frontier_release(&f);
    }
}

Test(frontier, is_the_same_whatever_the_order_and_the_parts)
{
    struct pareto_point all[POINTS];
    draw(all, 7);
    struct frontier forward = {0}, part[3], merged = {0};
    memset(part, 0, sizeof part);
    for (int i = 0; i < POINTS; i++)
        frontier_add(&forward, &all[i]);
    for (int i = POINTS - 1; i >= 0; i--)
        frontier_add(&part[i % 3], &all[i]);
    for (int k = 2; k >= 0; k--)
        frontier_merge(&merged, &part[k]);
    cr_assert_eq(merged.n, forward.n);
    for (size_t i = 0; i < forward.n; i++)
        cr_assert_eq(merged.point[i].number, forward.point[i].number);
    for (int k = 0; k < 3; k++)
        frontier_release(&part[k]);
    frontier_release(&forward);
    frontier_release(&merged);
}

/* Two frontiers of two steps each: base (10, 1) (4, 5), better (20, 2) (5, 10). */
static void two(struct frontier *f, struct frontier *base)
{
    const struct pareto_point b[] = {point(10, 1, 0), point(4, 5, 1)};
    const struct pareto_point a[] = {point(20, 2, 2), point(5, 10, 3)};
    *f = *base = (struct frontier){0};
    for (int i = 0; i < 2; i++) {
        frontier_add(base, &b[i]);
        frontier_add(f, &a[i]);
    }
}

Test(frontier, answers_as_a_function)
{
    struct frontier f, base;
    two(&f, &base);
    cr_assert_float_eq(frontier_gpu_at(&f, 20), 2, 0);
    cr_assert_float_eq(frontier_gpu_at(&f, 20.5), 0, 0);
    cr_assert_float_eq(frontier_gpu_at(&f, 6), 2, 0);
    cr_assert_float_eq(frontier_gpu_at(&f, 1), 10, 0);
    cr_assert_float_eq(frontier_user_at(&f, 2), 20, 0);
    cr_assert_float_eq(frontier_user_at(&f, 2.5), 5, 0);
    cr_assert_float_eq(frontier_user_at(&f, 11), 0, 0);
    cr_assert(frontier_covers(&f, 20, 2));
    cr_assert_not(frontier_covers(&f, 20, 2.5));
    cr_assert_not(frontier_covers(&f, 21, 1));
    frontier_release(&f);
    frontier_release(&base);
}

/* At 1, 2 and 5 tokens/s/GPU: 20/10, 20/4, 5/4; the base does not reach 10. */
Test(frontier, interactivity_is_compared_at_equal_throughput)
{
    struct frontier f, base;
    struct ratio_curve c;
    two(&f, &base);
    ratio_interactivity(&c, &f, &base);
    cr_assert_eq(c.n, 3);
    cr_assert_float_eq(c.point[0].ratio, 2, 1e-12);
    cr_assert_float_eq(c.point[1].ratio, 5, 1e-12);
    cr_assert_float_eq(c.point[2].ratio, 1.25, 1e-12);
    cr_assert_float_eq(ratio_max(&c).at, 2, 0);
    cr_assert_float_eq(ratio_median(&c), 2, 1e-12);
    ratio_release(&c);
    frontier_release(&f);
    frontier_release(&base);
}

/* At 4, 5 and 10 tokens/s/user: 10/5, 10/1, 2/1; the base does not reach 20. */
Test(frontier, concurrency_is_compared_at_equal_ttl)
{
    struct frontier f, base;
    two(&f, &base);
    struct gain g = gain_of(&f, &base);
    cr_assert_float_eq(g.concurrency.ratio, 10, 1e-12);
    cr_assert_float_eq(g.concurrency.at, 5, 0);
    cr_assert_float_eq(g.concurrency_median, 2, 1e-12);
    cr_assert_float_eq(g.fastest_ratio, 2, 1e-12);
    cr_assert_float_eq(g.densest_ratio, 2, 1e-12);
    frontier_release(&f);
    frontier_release(&base);
}

Test(frontier, without_a_base_there_is_no_ratio)
{
    struct frontier f, base, none = {0};
    two(&f, &base);
    struct gain g = gain_of(&f, &none);
    cr_assert_float_eq(g.interactivity.ratio, 0, 0);
    cr_assert_float_eq(g.concurrency_median, 0, 0);
    cr_assert_float_eq(g.fastest_ratio, 0, 0);
    frontier_release(&f);
    frontier_release(&base);
}
