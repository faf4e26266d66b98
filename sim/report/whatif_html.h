/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases of `wavetank whatif` as a page (docs/report.md): each against its SLO, how fast it is
 * and what it costs, and every trial of the searches.
 */
#ifndef SIM_REPORT_WHATIF_HTML_H
#define SIM_REPORT_WHATIF_HTML_H

#include "sim/report/page.h"
#include "sim/report/whatif_report.h"

/* All borrowed. */
struct whatif_page {
    struct page_about about;
    const struct whatif_report *report;
    const json_t *result; /* the document of --json */
};

void whatif_html(const struct whatif_page *p, FILE *out);

#endif
