/* SPDX-License-Identifier: Apache-2.0
 *
 * One search and what is read off it: the frontiers with and without Helix, one over the other, and
 * what each of Helix's choices bought.
 */
#ifndef SIM_PARETO_STUDY_H
#define SIM_PARETO_STUDY_H

#include "sim/pareto/gain.h"

struct pareto_study {
    const struct search *search; /* borrowed */
    unsigned families, baseline; /* bits; the baseline's are among the families */
    double wall_s;
    struct search_result result;
    struct frontier all, base; /* of all families, and of the baseline */
    struct frontier helix;     /* of the baseline and Helix */
    struct gain gain;          /* helix over base */
    struct gain step[GAIN_STEPS];
};

void pareto_study_run(struct pareto_study *s, const struct search *search, unsigned families,
                      unsigned baseline, const struct searchers *by);
void pareto_study_release(struct pareto_study *s);

#endif
