/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run with a pool for prompts says besides: each pool's time, layouts and switches, and the
 * link between them (docs/metrics.md).
 */
#ifndef SIM_REPORT_POOLS_H
#define SIM_REPORT_POOLS_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "sim/report/summary.h"

bool pools_are_two(const struct run_result *r);

/* The keys "pools" and "kv_link" to a run's JSON object. */
void pools_add_json(json_t *run, const struct run_result *r, const struct layout *layouts,
                    int n_layouts);
/* The table of pools and the link, behind an empty line. Every run has both pools. */
void pools_print(const struct summary *s, FILE *out);
/* A line on the layouts that each pool was in, where there was more than one in all. */
void pools_print_layouts(const char *policy, const struct run_result *r,
                         const struct layout *layouts, int n_layouts, FILE *out);

#endif
