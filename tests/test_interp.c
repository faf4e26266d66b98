/* SPDX-License-Identifier: Apache-2.0
 *
 * hw/interp: our log2 against exact values and libm.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "hw/interp.h"

Test(interp, log2_is_exact_at_powers_of_two)
{
    for (int k = -1000; k <= 1000; k++)
        cr_assert_eq(interp_log2(ldexp(1, k)), k);
}

Test(interp, log2_agrees_with_libm)
{
    for (double x = 1e-3; x < 1e12; x *= 1.0137) {
        double want = log2(x);
        cr_assert(fabs(interp_log2(x) - want) <= 4e-16 * (1 + fabs(want)), "x = %.17g", x);
    }
}

Test(interp, log2_never_falls_at_the_seam)
{
    double x = sqrt(0.5) * 1024, before = interp_log2(nextafter(x, 0));
    for (int i = 0; i < 100; i++, x = nextafter(x, 2e3)) {
        double at = interp_log2(x);
        cr_assert(before <= at + 4e-15);
        before = at;
    }
}

Test(interp, line_passes_through_its_points)
{
    cr_assert_eq(interp_linear(2, 2, 10, 6, 30), 10);
    cr_assert_eq(interp_linear(3, 2, 10, 6, 30), 15);
    cr_assert_eq(interp_linear(6, 2, 10, 6, 30), 30);
    cr_assert_eq(interp_linear(8, 2, 10, 6, 30), 40);
}
