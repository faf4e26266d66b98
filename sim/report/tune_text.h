/* SPDX-License-Identifier: Apache-2.0
 *
 * What people read after a study: its size and price, the best settings, a map of the two options
 * that matter most, the flat region, what each option matters, and the recommendation.
 */
#ifndef SIM_REPORT_TUNE_TEXT_H
#define SIM_REPORT_TUNE_TEXT_H

#include <stdio.h>

#include "sim/tune/findings.h"

/* Everything is borrowed. */
struct tune_report {
    const struct findings *findings;
    const char *objective; /* as asked for */
    const char *store;     /* path, or NULL */
    const char *setting;   /* the recommended one as typed, or NULL when there is none */
    int traces, seedless;  /* traces, and those that every seed leaves the same */
    int workers;
    int64_t seeds, top; /* asked for; rows of the table of settings */
    uint64_t wall_ns;   /* of the whole study */
};

void tune_text_print(const struct tune_report *r, FILE *out);

/* The map alone: over a grid of two options (or one) how far each setting is above the best, the
 * other options as recommended. Nothing when no option has two values. */
void tune_map_print(const struct findings *f, FILE *out);

/* One row per setting, in the grid's order, with the mean of every metric. */
void tune_csv_write(const struct findings *f, FILE *out);

#endif
