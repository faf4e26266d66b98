/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of a paper: a CSV of hw/papers, read whole. Comments ('#') come first; fields have
 * no quotes.
 */
#ifndef SIM_REPRODUCE_PAPER_H
#define SIM_REPRODUCE_PAPER_H

#include "sim/base/err.h"

struct paper {
    int rows, columns;
    char **cell; /* row by row */
};

/* `columns` are the header's names, which must be just these: "src,dst|weight_ms,kv_ms"; those
 * after the bar hold numbers. A table is SPLASH's unless its name says whose: "helix/figure1". Free
 * with paper_release(). */
int paper_load(struct paper *p, const char *table, const char *columns, struct err *err);
void paper_release(struct paper *p);

const char *paper_text(const struct paper *p, int row, int column);
/* Of a column of numbers. */
double paper_number(const struct paper *p, int row, int column);
/* The row whose first texts are these (NULL: any), or -1. */
int paper_find(const struct paper *p, const char *first, const char *second);

#endif
