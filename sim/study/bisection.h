/* SPDX-License-Identifier: Apache-2.0
 *
 * The edge of a range of whole numbers: up to it a trial holds and behind it not, or the other way
 * round. Found by bisection, which takes for granted that there is one edge; its ends and extra
 * trials put that to the test.
 */
#ifndef SIM_STUDY_BISECTION_H
#define SIM_STUDY_BISECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/err.h"

struct bisection_trial {
    int64_t at;
    bool holds;
    double score;      /* what it held by, for reports */
    int64_t choice;    /* how it was tried, where there are several ways to */
    int64_t low, high; /* the edge lies between these two, after this trial */
};

enum bisection_end {
    BISECTION_FOUND,
    BISECTION_ALWAYS, /* it holds at both ends of the range */
    BISECTION_NEVER,  /* it does not hold at the end where it should first */
};
extern const char *const bisection_end_names[];

struct bisection {
    int64_t low, high;
    bool rising; /* does not hold at low but at high; else the other way round */
    int extra;   /* trials after the bisection: next to the edge; all over the range without one */
    /* Sets holds, score and choice of the trial at t->at. */
    int (*try)(void *context, struct bisection_trial *t, struct err *err);
    void *context;
};

struct bisection_result {
    enum bisection_end end;
    size_t answer; /* the trial at the edge that holds; of no use after BISECTION_NEVER */
    struct bisection_trial *trial;
    size_t n, cap;
    /* Two trials that speak against a single edge, or twice the same: `breach` holds although
     * `broken`, which should hold the sooner, does not. */
    size_t breach, broken;
};

/* Both ends first, then the bisection, then the extra trials, none of them twice. Release the
 * result in any case. */
int bisection_run(const struct bisection *s, struct bisection_result *r, struct err *err);
bool bisection_is_monotone(const struct bisection_result *r);
void bisection_result_release(struct bisection_result *r);

#endif
