/* SPDX-License-Identifier: Apache-2.0
 *
 * A validation as one HTML file: charts, and every number in a table.
 */
#ifndef SIM_REPORT_VALIDATION_HTML_H
#define SIM_REPORT_VALIDATION_HTML_H

#include <stdio.h>

#include "sim/report/validation_about.h"

void validation_html(const struct validation *v, const struct validation_about *about, FILE *out);

#endif
