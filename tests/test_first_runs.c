/* SPDX-License-Identifier: Apache-2.0
 *
 * First runs against median ones, of steps made up by hand.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "sim/study/first_runs.h"

static const struct plan_times took_100 = {.step_ns = 100}, took_200 = {.step_ns = 200};

#define STEP(step_kind, of_layout, times, first)                                                   \
    {                                                                                              \
        .kind = step_kind, .layout = of_layout, .meas = &times, .first_ns = first                  \
    }

Test(first_runs, those_right_after_a_switch_are_counted_apart)
{
    struct joined_step step[] = {
        STEP(STEP_STEADY, 0, took_100, 101), STEP(STEP_SWITCH, 1, took_100, 190),
        STEP(STEP_STEADY, 1, took_200, 230), STEP(STEP_STEADY, 1, took_200, 198),
        STEP(STEP_READY, 0, took_100, 190),  STEP(STEP_STEADY, 0, took_100, 120),
        STEP(STEP_STEADY, 0, took_100, 0), /* not said */
        STEP(STEP_SWITCH, 1, took_100, 0),   STEP(STEP_STEADY, 0, took_100, 103),
    };
    struct joined j = {.step = step, .n = sizeof step / sizeof *step};
    struct first_runs f;
    first_runs_init(&f, &j);
    cr_expect_eq(f.after_switch.n, 2);
    cr_expect_float_eq(f.after_switch.p50, 0.15, 1e-12);
    cr_expect_float_eq(f.after_switch.p95, 0.2, 1e-12);
    cr_expect_eq(f.others.n, 3); /* +1%, -1%, +3%: the last is under another layout */
    cr_expect_float_eq(f.others.p50, 0.01, 1e-12);
    cr_expect_float_eq(f.others.p95, 0.03, 1e-12);
}

Test(first_runs, without_any_there_is_no_number)
{
    struct joined_step step[] = {STEP(STEP_STEADY, 0, took_100, 0)};
    struct joined j = {.step = step, .n = 1};
    struct first_runs f;
    first_runs_init(&f, &j);
    cr_expect_eq(f.after_switch.n + f.others.n, 0);
    cr_expect(isnan(f.after_switch.p50) && isnan(f.others.p95));
}
