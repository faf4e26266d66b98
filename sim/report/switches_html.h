/* SPDX-License-Identifier: Apache-2.0
 *
 * The section on switches of a validation's HTML report.
 */
#ifndef SIM_REPORT_SWITCHES_HTML_H
#define SIM_REPORT_SWITCHES_HTML_H

#include <stdio.h>

#include "sim/study/validation.h"

void switches_html(const struct validation *v, FILE *out);

#endif
