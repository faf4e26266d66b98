/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that put the simulator on trial: a replay measures their steps beside what the cost model
 * predicts for them. docs/plans.md says what each holds.
 *
 * A trial of some requests under a layout is a step without a switch; when the last step ran under
 * another layout, one more comes before it that switches there by mechanism free. The same rows are
 * run again and again, so that every layout does the same work on the same numbers.
 */
#ifndef SIM_STUDY_TRIAL_PLANS_H
#define SIM_STUDY_TRIAL_PLANS_H

#include "sim/cost/cost.h"
#include "sim/plan/plan.h"

enum { TRIAL_PAGE_TOKENS = 64 }; /* wavetank-replay's pages on GPUs */

/* Whom a plan is for; borrowed. */
struct trial_setting {
    const struct cost *cost; /* its layouts are those to try; compiled for TRIAL_PAGE_TOKENS */
    const char *cluster;     /* name, for the header */
    uint64_t seed;           /* of the draws and of the replay's made-up numbers */
};

/* For calibration: decode, prefill, both at once, and uneven owners over a grid of shapes under
 * every layout that holds them; then blocking switches, every directed pair once at three contexts.
 * Requests never hold more than max_tokens in all: larger shapes are left out, and having none is
 * an error. */
int trial_plans_grid(struct plan *out, const struct trial_setting *t, int64_t max_tokens,
                     struct err *err);

struct trial_source {
    const char *path; /* for messages */
    const struct plan *plan;
    int64_t every; /* takes steps 0, every, 2 every, ... of it */
};

/* Steps of another plan under every layout that holds their requests.
 * *left_out counts the (step, layout) pairs that memory forbids. Refuses other ranks, and steps too
 * large to be timed. */
int trial_plans_compare(struct plan *out, const struct trial_setting *t,
                        const struct trial_source *source, int *left_out, struct err *err);

/* The same steps with the cost model's predictions of today, `every` ignored. Refuses what the
 * comparison does. The cost model has the plan's layouts (plan_layouts). */
int trial_plans_predict(struct plan *out, const struct trial_setting *t,
                        const struct trial_source *source, struct err *err);

struct trial_switches {
    int64_t batch;      /* decoding requests, owners round robin */
    int64_t ctx_tokens; /* their mean context, */
    double spread_frac; /* drawn evenly from this share below to this share above it */
    int64_t repeats;    /* trials of each directed pair and mechanism */
    int64_t chunk_rows; /* of a prompt, that the last request of each owner has; 0: it decodes */
};

/* Three-way trials of every directed pair of layouts: a step under the first, then the step that
 * switches to the second, free, blocking or overlapped. Each of the rounds has every pair and
 * mechanism once, in random order. Refuses what some layout cannot hold. */
int trial_plans_switches(struct plan *out, const struct trial_setting *t,
                         const struct trial_switches *s, struct err *err);

#endif
