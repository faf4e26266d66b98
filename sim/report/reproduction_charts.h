/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of papers, from the rows of their reproduction. Where the paper's value and
 * ours differ both are drawn; every mark has its numbers in a title.
 */
#ifndef SIM_REPORT_REPRODUCTION_CHARTS_H
#define SIM_REPORT_REPRODUCTION_CHARTS_H

#include <stdio.h>

#include "sim/reproduce/reproduction.h"

/* Figures 1, 6 and 7, each whole and about its first crossover. */
void regimes_charts(const struct reproduction *r, FILE *out);
/* Figures 5, 9 and 11: KV by context (panel a), bars of the paper's times above ours (b, c). */
void primitives_charts(const struct reproduction *r, FILE *out);
/* Tables 1, 7 and 8, and 4, 5 and 6: ours against the paper's. */
void switches_charts(const struct reproduction *r, FILE *out);
void throughput_charts(const struct reproduction *r, FILE *out);

/* Helix: figures 1, 5 and 6, 7. */
void roofline_charts(const struct reproduction *r, FILE *out);
void frontiers_charts(const struct reproduction *r, FILE *out);
void ablation_charts(const struct reproduction *r, FILE *out);

#endif
