/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fitted profile predicts, beside what was measured.
 */
#ifndef SIM_STUDY_FIT_PAIRS_H
#define SIM_STUDY_FIT_PAIRS_H

#include "sim/study/speed_fit.h"

/* Of a stage or a whole step; of a table's row. */
struct fit_pair {
    const char *of, *layout; /* "step", "proj", ...; "burst"; borrowed */
    double measured_s, predicted_s;
};

enum { FIT_PAIRS_MAX = 1000 }; /* of each kind: of more, evenly chosen ones */

struct fit_pairs {
    struct fit_pair *pair;
    size_t n, cap;
};

/* Whole steps and stages, but for the rest, which may be below zero. */
void fit_pairs_of_plans(struct fit_pairs *p, const struct fit *f, const struct fit_data *d);
void fit_pairs_of_speeds(struct fit_pairs *p, const struct speed_fit *f, const struct speeds *s);
void fit_pairs_release(struct fit_pairs *p);

#endif
