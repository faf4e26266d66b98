/* SPDX-License-Identifier: Apache-2.0
 *
 * A fit as a page (docs/report.md): its tables, and predictions beside measurements.
 */
#ifndef SIM_REPORT_FIT_HTML_H
#define SIM_REPORT_FIT_HTML_H

#include "sim/report/page.h"
#include "sim/study/fit_pairs.h"

/* `text` is what fit_text.h or speed_text.h prints of it. */
void fit_html(const struct page_about *about, const char *text, const struct fit_pairs *pairs,
              FILE *out);

#endif
