/* SPDX-License-Identifier: Apache-2.0
 *
 * How far predicted step times were from measured ones: over steps of one kind, by layout, by part
 * of the step, and summed over the schedule. An error is predicted / measured - 1.
 */
#ifndef SIM_STUDY_STEP_ERRORS_H
#define SIM_STUDY_STEP_ERRORS_H

#include "sim/study/joined.h"
#include "sim/study/sample.h"

enum { STEP_ERRORS_WORST = 10 };

struct part_error {
    struct error_summary error; /* of the part itself, over steps where it took measured time */
    double share_frac;          /* of the measured time of all steps */
    double blame; /* mean of (predicted - measured) / measured step: adds up over parts to the mean
                     error of the step */
};

/* Over the steps of one kind; all NAN without any. */
struct step_errors {
    struct error_summary all;
    struct error_summary *layout; /* [n_layouts of the join] */
    struct part_error part[PART_COUNT];
    int worst[STEP_ERRORS_WORST], n_worst; /* indices of the steps furthest off, worst first */
};

void step_errors_init(struct step_errors *e, const struct joined *j, enum step_kind kind);
void step_errors_release(struct step_errors *e);

/* The steps from one switch up to the next. */
struct window {
    int first, n;                   /* steps of the join */
    double pred_ns, meas_ns, error; /* sums, and the error of these */
};

/* All steps with their switches: what a clock on the wall would show. */
struct schedule_errors {
    double pred_ns, meas_ns, error;
    struct window *window;
    int n_windows;
    struct error_summary windows;
};

void schedule_errors_init(struct schedule_errors *e, const struct joined *j);
void schedule_errors_release(struct schedule_errors *e);

#endif
