/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans with today's predictions: the same steps, other times.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "sim/study/trial_plans.h"

struct bench {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    struct cost *cost;
    struct trial_setting setting;
};

static void bench_init(struct bench *b, const char *layouts)
{
    struct err err = ERR_NONE;
    model_load(&b->model, "tiny-mla", &err);
    cluster_load(&b->cluster, "h200x2", &err);
    profile_load(&b->profile, b->cluster.profile, &err);
    int n = layout_parse_list(b->layout, layouts, &b->model, b->cluster.ranks, &err);
    cr_assert_not(err.set, "%s", err.text);
    b->cost = cost_new(&b->model, &b->cluster, &b->profile, b->layout, n, TRIAL_PAGE_TOKENS);
    b->setting = (struct trial_setting){b->cost, "h200x2", 5};
}

static void bench_release(struct bench *b)
{
    cost_free(b->cost);
    profile_release(&b->profile);
}

/* Predicting what was predicted gives it again; a faster machine, other times for the same steps.
 */
Test(trial_predict, keeps_the_steps_and_says_what_they_take_today)
{
    struct bench b, fast;
    struct err err = ERR_NONE;
    struct plan made, again, sooner;
    bench_init(&b, "tp,cp,dp,dop,helix:kvp=2,tpa=1");
    bench_init(&fast, "tp,cp,dp,dop,helix:kvp=2,tpa=1");
    fast.profile.layer_launch_us = 0;
    const struct trial_switches s = {4, 1000, 0.5, 1, 0};
    cr_assert_eq(trial_plans_switches(&made, &b.setting, &s, &err), 0, "%s", err.text);
    const struct trial_source source = {"made", &made, 1};
    cr_assert_eq(trial_plans_predict(&again, &b.setting, &source, &err), 0, "%s", err.text);
    cr_assert_eq(trial_plans_predict(&sooner, &fast.setting, &source, &err), 0, "%s", err.text);
    cr_assert_eq(again.n, made.n);
    for (int i = 0; i < made.n; i++) {
        const struct plan_step *x = &made.step[i], *y = &again.step[i], *z = &sooner.step[i];
        cr_assert_eq(memcmp(&x->pred, &y->pred, sizeof x->pred), 0, "step %d", i);
        cr_assert_str_eq(x->layout, y->layout);
        cr_assert_str_eq(x->from, y->from);
        cr_assert_str_eq(x->mechanism, y->mechanism);
        cr_assert_eq(x->n_rows, y->n_rows);
        cr_assert_eq(memcmp(x->row, y->row, (size_t)x->n_rows * sizeof *x->row), 0);
        cr_assert_lt(z->pred.step_ns, x->pred.step_ns);
    }
    plan_release(&made);
    plan_release(&again);
    plan_release(&sooner);
    bench_release(&b);
    bench_release(&fast);
}
