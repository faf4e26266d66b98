/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts in one piece and in sub-batches, from groups made up by hand.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "sim/study/hopb_trials.h"

static const char *layouts[] = {
    "tp",
    "helix:kvp=4,tpa=2,hopb=4",
    "helix:kvp=4,tpa=2",
    "helix:kvp=4,tpa=2,hopb=2",
    "helix:kvp=8,tpa=1",
    "helix:kvp=8,tpa=1,hopb=2",
    "helix:kvp=2,tpa=4,hopb=2",
};

static const struct joined join = {.layout = layouts, .n_layouts = 7};

static void expect_trial(const struct hopb_trial *t, int layout, int sub_batches, double pred_gain,
                         double gain)
{
    cr_expect_eq(t->layout, layout);
    cr_expect_eq(t->sub_batches, sub_batches);
    cr_expect_float_eq(t->pred_gain, pred_gain, 1e-12);
    cr_expect_float_eq(t->gain, gain, 1e-12);
}

Test(hopb_trials, layouts_that_differ_in_it_alone_are_compared_with_the_one_in_one_piece)
{
    struct order_member first[] = {{0, 50, 50},  {1, 80, 125},  {2, 100, 100},
                                   {3, 125, 80}, {4, 100, 100}, {6, 1, 1}};
    struct order_member second[] = {{5, 100, 99}, {4, 99, 100}, {0, 1, 1}};
    struct order_group group[] = {{.first = 3, .member = first, .n = 6},
                                  {.first = 9, .member = second, .n = 3}};
    struct layout_order order = {.group = group, .n = 2};
    struct hopb_trials t;
    hopb_trials_init(&t, &join, &order);
    cr_assert_eq(t.n, 5);
    cr_expect_eq(t.trial[0].step, 3);
    cr_expect_eq(t.trial[0].sub_batches, 1);
    cr_expect(isnan(t.trial[0].gain) && isnan(t.trial[0].pred_gain));
    expect_trial(&t.trial[1], 2, 2, -0.2, 0.25);
    expect_trial(&t.trial[2], 2, 4, 0.25, -0.2);
    cr_expect_eq(t.trial[3].step, 9);
    expect_trial(&t.trial[4], 4, 2, -0.01, 1.0 / 99);
    cr_expect_eq(t.comparisons, 3);
    cr_expect_eq(t.losses, 1);
    cr_expect_eq(t.misjudged, 2); /* the third is wrong by too little */
    cr_expect_eq(hopb_trials_loss(&t), &t.trial[2]);
    cr_expect_eq(hopb_trials_misjudged(&t), &t.trial[1]);
    hopb_trials_release(&t);
}

Test(hopb_trials, none_without_both)
{
    struct order_member member[] = {{1, 1, 1}, {3, 1, 1}, {4, 1, 1}, {0, 1, 1}};
    struct order_group group = {.member = member, .n = 4};
    struct layout_order order = {.group = &group, .n = 1};
    struct hopb_trials t;
    hopb_trials_init(&t, &join, &order);
    cr_expect_eq(t.n, 0);
    cr_expect_eq(hopb_trials_loss(&t), NULL);
    cr_expect_eq(hopb_trials_misjudged(&t), NULL);
    hopb_trials_release(&t);
}
