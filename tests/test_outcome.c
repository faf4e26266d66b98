/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run is to who operates it, by hand.
 */
#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/study/outcome.h"

/* 100 requests, 98 of them within the limits, 99 completed in half an hour: 0.9 million tokens in,
 * 0.1 million out. */
static struct run_result half_an_hour(void)
{
    struct run_result r = {.requests = 100,
                           .completed = 99,
                           .slo_met = 98,
                           .input_tokens = 900000,
                           .output_tokens = 100000,
                           .makespan_ps = 1800 * PS_PER_S};
    hist_init(&r.ttft_ps);
    hist_init(&r.tpot_ps);
    hist_init(&r.e2e_ps);
    return r;
}

static void expect_near(double x, double expected)
{
    cr_expect(fabs(x - expected) <= 1e-12 * expected, "%.17g, expected %.17g", x, expected);
}

/* 16 GPUs for half an hour are 8 GPU-hours, at 3 each 24. */
Test(outcome, is_paid_by_gpu_hours)
{
    struct run_result r = half_an_hour();
    struct outcome_terms terms = {.slo_attained_frac = 0.98, .price_per_gpu_hour = 3, .gpus = 16};
    struct outcome o = outcome_of(&r, &terms);
    expect_near(o.gpu_hours, 8);
    expect_near(o.price_per_m_output_tokens, 240);
    expect_near(o.price_per_m_total_tokens, 24);
    expect_near(o.total_tok_s, 1e6 / 1800);
    expect_near(o.output_tok_s, 1e5 / 1800);
}

/* Of all 100, not of the 99 that completed; the share asked for is enough. */
Test(outcome, counts_what_was_promised_to_all_requests)
{
    struct run_result r = half_an_hour();
    struct outcome_terms terms = {.slo_attained_frac = 0.98, .gpus = 8};
    expect_near(outcome_of(&r, &terms).slo_met_frac, 0.98);
    cr_expect(outcome_of(&r, &terms).meets_slo);
    terms.slo_attained_frac = 0.985;
    cr_expect_not(outcome_of(&r, &terms).meets_slo);
    cr_expect_eq(outcome_of(&r, &terms).price_per_m_total_tokens, 0);
}

/* Every share with three decimals is met by as many of 1000, and by no fewer. */
Test(outcome, has_no_rounding_at_the_share_asked_for)
{
    struct run_result r = half_an_hour();
    char text[16];
    r.requests = 1000;
    for (int k = 1; k <= 1000; k++) {
        snprintf(text, sizeof text, "%d.%03d", k / 1000, k % 1000);
        struct outcome_terms terms = {.slo_attained_frac = strtod(text, NULL), .gpus = 8};
        r.slo_met = k;
        cr_assert(outcome_of(&r, &terms).meets_slo, "%s", text);
        r.slo_met = k - 1;
        cr_assert_not(outcome_of(&r, &terms).meets_slo, "%s", text);
    }
}

Test(outcome, has_tails_of_what_completed)
{
    struct run_result r = half_an_hour();
    struct outcome_terms terms = {.gpus = 8};
    hist_add(&r.ttft_ps, PS_PER_S, 98);
    hist_add(&r.ttft_ps, 2 * PS_PER_S, 1);
    hist_add(&r.e2e_ps, 5 * PS_PER_S, 99);
    struct outcome o = outcome_of(&r, &terms);
    cr_expect(fabs(o.ttft_p99_s - 2) < 2. / 512);
    cr_expect(fabs(o.e2e_p99_s - 5) < 5. / 512);
    cr_expect(isnan(o.tpot_p99_s), "no request had a second token");
    hist_release(&r.ttft_ps);
    hist_release(&r.e2e_ps);
}

Test(outcome, of_nothing_served_has_no_price)
{
    struct run_result r = {.requests = 3};
    struct outcome_terms terms = {.slo_attained_frac = 0.99, .price_per_gpu_hour = 3, .gpus = 8};
    struct outcome o = outcome_of(&r, &terms);
    cr_expect(isnan(o.price_per_m_output_tokens));
    cr_expect(isnan(o.price_per_m_total_tokens));
    cr_expect_eq(o.total_tok_s, 0);
    cr_expect_not(o.meets_slo);
}
