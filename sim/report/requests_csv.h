/* SPDX-License-Identifier: Apache-2.0
 *
 * One CSV row per request and run, as in `sim --requests`. Times are exact decimals of picoseconds.
 */
#ifndef SIM_REPORT_REQUESTS_CSV_H
#define SIM_REPORT_REQUESTS_CSV_H

#include <stdio.h>

#include "sim/engine/engine.h"

void requests_csv_header(FILE *out);
/* `request` is the array that the engine ran. Times of a rejected request are empty, and so is the
 * time per token of one that made a single token, and transfers where no KV was moved. */
void requests_csv_run(FILE *out, const char *policy, const struct engine_request *request,
                      const struct run_result *r);

#endif
