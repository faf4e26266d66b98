/* SPDX-License-Identifier: Apache-2.0
 *
 * A search over mappings as people read it: the frontier, what Helix bought, and one mapping taken
 * apart with its pipeline drawn.
 */
#ifndef SIM_REPORT_PARETO_TEXT_H
#define SIM_REPORT_PARETO_TEXT_H

#include <stdio.h>

#include "sim/pareto/study.h"

/* The frontier in at most `rows` points evenly apart, both ends among them, and the gains. */
void pareto_text_print(const struct pareto_study *s, int rows, FILE *out);

/* A line a context. */
void pareto_text_contexts(const struct pareto_study *s, int n, FILE *out);

void pareto_text_sensitivity(const struct sensitivity s[SENSITIVITIES], FILE *out);

/* One step of a batch that fits: memory, times by stage, and a layer's sub-batches over time. */
void pareto_text_explain(const struct decode_plan *p, int64_t batch, FILE *out);

/* "tp,pp,ep". Returns `text`. */
char *pareto_families_text(unsigned families, char text[MAPPING_TEXT_SIZE]);

#endif
