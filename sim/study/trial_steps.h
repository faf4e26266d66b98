/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial plan in the making: the requests of the coming step, and the steps so far, each with what
 * the cost model predicts. Not for anyone outside sim/study.
 */
#ifndef SIM_STUDY_TRIAL_STEPS_H
#define SIM_STUDY_TRIAL_STEPS_H

#include "sim/cost/transition.h"
#include "sim/study/trial_plans.h"

struct trial_steps {
    const struct trial_setting *setting; /* borrowed */
    struct plan plan;
    size_t cap_steps;
    int layout;              /* of the last step, -1 before the first */
    int64_t at_ns;           /* end of the last step */
    struct plan_row *row;    /* the coming step's */
    struct batch_item *item; /* room for the same */
    int n_rows;
    size_t cap_rows, cap_items;
};

void trial_steps_init(struct trial_steps *t, const struct trial_setting *setting);
void trial_steps_release(struct trial_steps *t);
/* Hand the plan over; nothing is left to release. */
struct plan trial_steps_take(struct trial_steps *t);

/* Change the coming step's requests. */
void trial_steps_clear(struct trial_steps *t);
void trial_steps_add(struct trial_steps *t, int64_t req, int owner, int64_t ctx_tokens, int64_t q);

/* Whether they fit a layout's memory. */
bool trial_steps_fit(const struct trial_steps *t, int layout);

/* Append the step under a layout, entered by the mechanism when the last step had another one. */
void trial_steps_run(struct trial_steps *t, int layout, enum mechanism mechanism);

/* Try every layout that the requests fit, in turn, the last step's first. Appends up to 2 steps for
 * each; returns how many layouts were left out. */
int trial_steps_run_each(struct trial_steps *t);

#endif
