/* SPDX-License-Identifier: Apache-2.0
 *
 * The charts of a validation's HTML report. Every mark has its numbers in a title.
 */
#ifndef SIM_REPORT_VALIDATION_CHARTS_H
#define SIM_REPORT_VALIDATION_CHARTS_H

#include <stdio.h>

#include "sim/study/validation.h"

/* Beyond so many steps every k-th is drawn, and said to be. */
enum { CHART_STEPS_MAX = 3000 };

/* Predicted against measured step time, by layout. */
void parity_chart(const struct joined *j, FILE *out);
/* Error by step, switches below. */
void error_chart(const struct joined *j, FILE *out);
/* Mean error by stage, and its part of the step's. */
void stage_chart(const struct step_errors *e, FILE *out);

/* Measured and predicted dT, one bar above the other, as shares of the longest. */
void switch_bars(const struct switch_way *w, double longest_ns, FILE *out);

/* The same, each bar in its parts; and the key to these. */
void parts_bars(const struct switch_way *w, double longest_ns, FILE *out);
void parts_legend(FILE *out);

/* Measured and predicted gain about 0, as shares of the largest. */
void gain_bars(const struct hopb_trial *t, double largest, FILE *out);

#endif
