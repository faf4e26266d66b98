/* SPDX-License-Identifier: Apache-2.0
 *
 * What a validation is of: files, machine, profile and program, as the lines that open each of its
 * reports.
 */
#ifndef SIM_REPORT_VALIDATION_ABOUT_H
#define SIM_REPORT_VALIDATION_ABOUT_H

#include <stdbool.h>

#include <jansson.h>

#include "sim/study/validation.h"

/* All borrowed. */
struct validation_about {
    const char *version, *command; /* of this program, and how it was called */
    const char *plan_path, *measured_path;
    const struct plan_header *plan, *measured;
    const char *profile, *profile_kind; /* NULL when it could not be loaded */
    const char *profile_fault;          /* why not */
    bool profile_predicts;              /* PLAN's predictions are this profile's */
    const json_t *profile_source;       /* where its numbers come from: array of strings, or NULL */
};

enum { ABOUT_FACTS_MAX = 9 };

struct about_facts {
    int n;
    struct {
        const char *label;
        char text[768];
    } fact[ABOUT_FACTS_MAX];
};

/* One line each; what is not known has none. */
void about_facts_init(struct about_facts *f, const struct validation_about *a,
                      const struct joined *j);

#endif
