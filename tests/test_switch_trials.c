/* SPDX-License-Identifier: Apache-2.0
 *
 * What a switch's time is made of, from trials of one batch and one direction made up by hand.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "sim/study/switch_trials.h"

enum { LINES_MAX = 16 };

/* A step from tp to cp. */
struct line {
    enum mechanism mechanism;
    int64_t step_ns, exposed_ns, first_ns; /* measured */
    int64_t pred_exposed_ns, pred_first_ns;
};

struct trial {
    struct joined_step step[LINES_MAX];
    struct plan_times pred[LINES_MAX], meas[LINES_MAX];
    struct switch_trials trials;
};

static const char *layouts[] = {"tp", "cp"};

static void measure(struct trial *t, const struct line *line, int n)
{
    static struct plan_row row = {.ctx_tokens = 1000, .q = 1};
    static const struct plan_step at = {.row = &row, .n_rows = 1};
    struct joined j = {.step = t->step, .n = n, .layout = layouts, .n_layouts = 2};
    for (int i = 0; i < n; i++) {
        const struct line *l = &line[i];
        t->pred[i] = (struct plan_times){.switch_exposed_ns = l->pred_exposed_ns,
                                         .switch_first_ns = l->pred_first_ns};
        t->meas[i] = (struct plan_times){.step_ns = l->step_ns,
                                         .switch_exposed_ns = l->exposed_ns,
                                         .switch_first_ns = l->first_ns};
        t->step[i] =
            (struct joined_step){.at = &at,
                                 .pred = &t->pred[i],
                                 .meas = &t->meas[i],
                                 .kind = l->mechanism == MECH_FREE ? STEP_READY : STEP_SWITCH,
                                 .from = 0,
                                 .layout = 1,
                                 .mechanism = l->mechanism};
    }
    switch_trials_init(&t->trials, &j, 7);
    cr_assert_eq(t->trials.n, 1);
}

/* Ready takes 100. One of the blocking trials does not say what its first layer waited. */
static const struct line waits[] = {
    {MECH_FREE, 100, 0, 0, 0, 0},           {MECH_OVERLAPPED, 190, 60, 20, 50, 10},
    {MECH_OVERLAPPED, 170, 50, 10, 50, 10}, {MECH_OVERLAPPED, 180, 55, 30, 50, 10},
    {MECH_BLOCKING, 280, 200, 50, 160, 0},  {MECH_BLOCKING, 290, 200, 0, 160, 0},
    {MECH_RESTART, 105, 0, 0, 0, 0},
};

Test(switch_trials, a_switch_is_told_apart_as_far_as_every_trial_says)
{
    struct trial t;
    measure(&t, waits, sizeof waits / sizeof *waits);
    const struct switch_way *way = t.trials.direction[0].way;
    const struct switch_way *overlapped = &way[MECH_OVERLAPPED], *blocking = &way[MECH_BLOCKING];
    cr_expect_eq(overlapped->dt_ns, 80);
    cr_expect_eq(overlapped->measured.waits_ns, 55);
    cr_expect_eq(overlapped->measured.first_ns, 20);
    cr_expect_eq(overlapped->measured.later_ns, 35);
    cr_expect_eq(overlapped->measured.slowed_ns, 25);
    cr_expect_eq(overlapped->predicted.first_ns, 10);
    cr_expect_eq(overlapped->predicted.later_ns, 40);
    cr_expect(isnan(overlapped->predicted.slowed_ns));
    cr_expect_eq(blocking->dt_ns, 180); /* computation was faster than beside nothing */
    cr_expect_eq(blocking->measured.slowed_ns, -20);
    cr_expect(isnan(blocking->measured.first_ns) && isnan(blocking->measured.later_ns));
    cr_expect(isnan(blocking->predicted.first_ns));
    cr_expect_eq(way[MECH_RESTART].measured.first_ns, 0); /* a part of nothing */
    cr_expect(switch_way_has_parts(overlapped) && switch_way_has_parts(blocking));
    switch_trials_release(&t.trials);
}

Test(switch_trials, without_ready_steps_nothing_tells_that_computation_was_slowed)
{
    struct trial t;
    measure(&t, waits + 4, 2);
    const struct switch_way *blocking = &t.trials.direction[0].way[MECH_BLOCKING];
    cr_expect(isnan(blocking->measured.slowed_ns));
    cr_expect_not(switch_trials_have_parts(&t.trials));
    cr_expect(isnan(t.trials.noise_p50_ns));
    switch_trials_release(&t.trials);
}
