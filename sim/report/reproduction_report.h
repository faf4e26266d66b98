/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's numbers beside ours, as text, Markdown and JSON.
 */
#ifndef SIM_REPORT_REPRODUCTION_REPORT_H
#define SIM_REPORT_REPRODUCTION_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "sim/reproduce/reproduction.h"

void reproduction_print(const struct reproduction *r, FILE *out);
/* docs/fidelity.md. */
void reproduction_markdown(const struct reproduction *r, FILE *out);
/* New reference. */
json_t *reproduction_json(const struct reproduction *r);

#endif
