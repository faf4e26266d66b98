/* SPDX-License-Identifier: Apache-2.0
 *
 * The two-resource pipeline of HOP-B, by hand.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "sim/pareto/pipeline.h"

static double even_end_s(double compute_s, double exchange_s, int n)
{
    struct pipeline_part part[PIPELINE_PARTS_MAX];
    for (int i = 0; i < n; i++)
        part[i] = (struct pipeline_part){compute_s, exchange_s};
    return pipeline_end_s(part, n, NULL);
}

Test(pipeline, the_papers_eight_requests_end_at_25_6_in_lockstep_and_17_2_with_hopb)
{
    cr_assert_float_eq(even_end_s(8 * 2.0, 8 * 1.2, 1), 25.6, 1e-12);
    cr_assert_float_eq(even_end_s(2.0, 1.2, 8), 17.2, 1e-12);
}

Test(pipeline, a_slow_link_is_never_idle_once_it_started)
{
    cr_assert_float_eq(even_end_s(1.0, 2.0, 8), 17, 1e-12);
}

Test(pipeline, uneven_parts_wait_for_what_is_before_them)
{
    /* compute ends 3, 4, 9; exchanges 3-5, 5-9 (waits for the link), 9-10 (for its compute). */
    static const struct pipeline_part part[] = {{3, 2}, {1, 4}, {5, 1}};
    struct pipeline_span span[3];
    cr_assert_float_eq(pipeline_end_s(part, 3, span), 10, 1e-12);
    cr_assert_float_eq(span[1].compute_end_s, 4, 1e-12);
    cr_assert_float_eq(span[1].exchange_start_s, 5, 1e-12);
    cr_assert_float_eq(span[2].exchange_start_s, 9, 1e-12);
}

Test(pipeline, nothing_takes_no_time)
{
    cr_assert_float_eq(pipeline_end_s(NULL, 0, NULL), 0, 0);
}
