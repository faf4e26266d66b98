/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of `sim` as a page (docs/report.md): its policies beside each other, and what each did
 * over time and why.
 */
#ifndef SIM_REPORT_SIM_HTML_H
#define SIM_REPORT_SIM_HTML_H

#include "sim/report/course.h"
#include "sim/report/page.h"
#include "sim/report/summary.h"

/* A run that was watched. */
struct sim_course {
    const char *policy;
    const struct course *course;
};

/* All borrowed. */
struct sim_page {
    struct page_about about;
    const struct summary *summary;
    const json_t *result; /* the document of --json */
    const struct sim_course *course;
    int n_courses;
};

void sim_html(const struct sim_page *p, FILE *out);

#endif
