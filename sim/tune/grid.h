/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that a study tries: axes of values, every combination of which is a point. Points
 * count with the last axis fastest.
 */
#ifndef SIM_TUNE_GRID_H
#define SIM_TUNE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/err.h"

enum { GRID_AXES_MAX = 8, AXIS_VALUES_MAX = 4096 };
#define GRID_POINTS_MAX (1LL << 50)

struct axis {
    char *name; /* "dwell_ms" */
    int n;
    char **value;   /* as text; numbers in their shortest form */
    double *number; /* the same; NAN where it is none */
};

struct grid {
    int n;
    struct axis axis[GRID_AXES_MAX];
};

/* Add an axis: "margin=0:0.3:0.02" (from, to, step), "persist=1:8" (by 1), "dwell_ms=0,50,200", or
 * with '|' between values that have commas. Refuses an axis or a value given twice. */
int grid_add(struct grid *g, const char *text, struct err *err);
void grid_release(struct grid *g);

int64_t grid_points(const struct grid *g);
/* Which of the axis' values a point has. */
int grid_at(const struct grid *g, int64_t point, int axis);
const char *grid_value(const struct grid *g, int64_t point, int axis);

/* n different points by lot, ascending; or all, when there are no more than n. Returns how many; to
 * be freed. */
int64_t grid_choose(const struct grid *g, int64_t n, uint64_t seed, int64_t **point);

#endif
