/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's numbers beside ours as one HTML file: the verdict, the figures drawn, every row.
 */
#ifndef SIM_REPORT_REPRODUCTION_HTML_H
#define SIM_REPORT_REPRODUCTION_HTML_H

#include <stdio.h>

#include "sim/reproduce/reproduction.h"

void reproduction_html(const struct reproduction *r, FILE *out);

#endif
