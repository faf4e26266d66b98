/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/validation.h"

/* A plan that compares layouts or switches has hardly a step without one. */
enum { STEADY_STEPS_MIN = 10 };

static const struct step_errors *choose_main(const struct validation *v)
{
    int n = v->steady.all.n;
    return n >= STEADY_STEPS_MIN || n >= v->ready.all.n ? &v->steady : &v->ready;
}

int validation_init(struct validation *v, const struct plan *plan, const char *plan_path,
                    const struct plan *measured, const char *measured_path, struct err *err)
{
    if (joined_init(&v->joined, plan, plan_path, measured, measured_path, err) < 0)
        return -1;
    const struct joined *j = &v->joined;
    step_errors_init(&v->steady, j, STEP_STEADY);
    step_errors_init(&v->ready, j, STEP_READY);
    v->main = choose_main(v);
    schedule_errors_init(&v->schedule, j);
    layout_order_init(&v->order, j);
    hopb_trials_init(&v->hopb, j, &v->order);
    switch_trials_init(&v->trials, j, plan->header.seed);
    first_runs_init(&v->first_runs, j);
    return 0;
}

void validation_release(struct validation *v)
{
    switch_trials_release(&v->trials);
    hopb_trials_release(&v->hopb);
    layout_order_release(&v->order);
    schedule_errors_release(&v->schedule);
    step_errors_release(&v->ready);
    step_errors_release(&v->steady);
    joined_release(&v->joined);
}
