/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the fit share. Not for anyone outside sim/study/fit_*.
 */
#ifndef SIM_STUDY_FIT_INTERNAL_H
#define SIM_STUDY_FIT_INTERNAL_H

#include "sim/study/fit.h"

enum { FIT_STAGE_PARAMS_MAX = 24 };

/* A profile under trial and the cost model that stands on it. Must not be moved. */
struct trial {
    const struct fit_data *data;
    struct profile profile;
    struct cost *cost;
};

/* Starts as a copy of `p`. */
void trial_init(struct trial *t, const struct fit_data *d, const struct profile *p);
void trial_release(struct trial *t);
/* `start` with these parameters in it, those kept left alone. */
void trial_set(struct trial *t, const struct profile *start, const struct fit_param *param, int n);
/* Predicted seconds of a stage, or of FIT_STEP. */
double trial_predict_s(const struct trial *t, int stage, const struct fit_step *s);

/* The measured time of the same. */
int64_t fit_measured_ns(int stage, const struct fit_step *s);

/* Predicted / measured - 1; of the rest the difference over the whole step. */
double fit_error(const struct trial *t, int stage, const struct fit_step *s);
/* Whether a step says anything about a stage. */
bool fit_observes(const struct trial *t, int stage, const struct fit_step *s);

/* The candidates of a stage, at the values of `p`. Gives `p` the knots that they set. */
int fit_params(enum fit_stage stage, const struct fit_data *d, struct profile *p,
               struct fit_param *out);

/* Steps to fit a stage to. */
struct fit_problem {
    struct trial *trial;
    const struct profile *start; /* all that this stage does not set */
    enum fit_stage stage;
    const struct fit_step **step;
    int n;
    struct fit_param *param;
    int n_params;
};

/* Find values, states and sigmas; the trial ends up holding them. */
void fit_solve(struct fit_problem *p);

#endif
