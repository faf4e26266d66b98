/* SPDX-License-Identifier: Apache-2.0
 *
 * A study as a page (docs/report.md): what tune_text.h prints, a map of any two options, and how
 * the objective goes with each.
 */
#ifndef SIM_REPORT_TUNE_HTML_H
#define SIM_REPORT_TUNE_HTML_H

#include "sim/report/page.h"
#include "sim/report/tune_text.h"

/* Settings that a page holds, the best of them. */
enum { TUNE_HTML_SETTINGS_MAX = 10000 };

void tune_html(const struct tune_report *r, const struct page_about *about, FILE *out);

#endif
