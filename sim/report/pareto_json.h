/* SPDX-License-Identifier: Apache-2.0
 *
 * A search over mappings as JSON, and every configuration of it as CSV. docs/pareto.md says what
 * the keys and columns are.
 */
#ifndef SIM_REPORT_PARETO_JSON_H
#define SIM_REPORT_PARETO_JSON_H

#include <stdio.h>

#include <jansson.h>

#include "sim/pareto/study.h"

/* New reference. Of n >= 1 studies the first is told in full, the rest (by context) by their gains;
 * `sweep` may be NULL. */
json_t *pareto_json(const struct pareto_study *s, int n, const struct sensitivity *sweep);

/* Search once more, by one thread, and write a row for each configuration that is costed. */
void pareto_csv(const struct search *s, FILE *out);

#endif
