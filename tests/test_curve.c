/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/cost/curve.h"

Test(curve, is_one_integer_function_in_single_steps_and_in_segments)
{
    static const int64_t tokens[] = {0, 100, 150, 1000};
    static const double ps[] = {7.4, 1000.2, 1200, 90000.7};
    struct curve c;
    curve_through(&c, 4, tokens, ps);
    cr_expect_eq(curve_seg(&c, 0).a_ps, 7);
    cr_expect_eq(curve_seg(&c, 100).a_ps, 1000);
    cr_expect_eq(curve_seg(&c, 99).n, 1);
    cr_expect_eq(curve_seg(&c, 149).a_ps, 1000 + 49 * 4);
    cr_expect_eq(curve_seg(&c, 2000).n, SEG_FOREVER);
    for (int64_t at = 0; at < 1500; at += 7) {
        struct seg s = curve_seg(&c, at);
        for (int64_t i = 0; i < s.n && i < 200; i++)
            cr_assert_eq(curve_seg(&c, at + i).a_ps, seg_at(s, i));
    }
}

/* Slopes (1000.2 - 7.4) / 100 = 9.93 and (1200 - 1000.2) / 50 = 4.00 are rounded once; each piece
 * restarts at its knot, and the last one goes on. */
Test(curve, pieces_restart_at_knots)
{
    static const int64_t tokens[] = {0, 100, 150};
    static const double ps[] = {7.4, 1000.2, 1200};
    struct curve c;
    curve_through(&c, 3, tokens, ps);
    cr_expect_eq(curve_seg(&c, 99).a_ps, 7 + 99 * 10);
    cr_expect_eq(curve_seg(&c, 100).a_ps, 1000);
    cr_expect_eq(curve_seg(&c, 100).b_ps, 4);
    cr_expect_eq(curve_seg(&c, 1100).a_ps, 1000 + 1000 * 4);
    cr_expect_eq(curve_seg(&c, 40).n, 60);
}
