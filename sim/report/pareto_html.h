/* SPDX-License-Identifier: Apache-2.0
 *
 * A search over mappings as a page (docs/report.md): frontiers, one over the other, what each of
 * Helix's choices bought, and HOP-B's pipelines drawn.
 */
#ifndef SIM_REPORT_PARETO_HTML_H
#define SIM_REPORT_PARETO_HTML_H

#include "sim/pareto/study.h"
#include "sim/report/page.h"

/* All borrowed: a study of each context, the first of which decides; `sweep` may be NULL. */
struct pareto_page {
    struct page_about about;
    const struct pareto_study *study;
    int n;
    const struct sensitivity *sweep;
    const json_t *result; /* the document of --json */
};

void pareto_html(const struct pareto_page *p, FILE *out);

#endif
