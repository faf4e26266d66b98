/* SPDX-License-Identifier: Apache-2.0
 *
 * A run's result as the JSON object of `sim --json` (docs/metrics.md defines every number).
 */
#ifndef SIM_REPORT_RESULT_JSON_H
#define SIM_REPORT_RESULT_JSON_H

#include <stdio.h>

#include <jansson.h>

#include "sim/engine/engine.h"

/* New reference. `sim_wall_s` is the only number that differs between equal runs. */
json_t *result_json(const char *policy, const struct run_result *r, const struct layout *layouts,
                    int n_layouts);

/* Write a result document: indented, numbers in 9 significant digits, with the line end. */
void result_json_write(const json_t *document, FILE *out);

#endif
