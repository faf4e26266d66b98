/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of one run that a study keeps: the scalars of `sim --json`, by the same names with
 * '_' where an object opens (ttft_s_p99). docs/metrics.md defines them.
 */
#ifndef SIM_TUNE_METRICS_H
#define SIM_TUNE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/err.h"

enum { METRIC_COUNT = 36 };

struct metric {
    const char *name;
    const char *object, *key; /* where a result's JSON has it; no object: at the top */
    bool whole;               /* an integer */
};

extern const struct metric metric_table[METRIC_COUNT];

struct metrics {
    double value[METRIC_COUNT];
};

/* The index of a metric, or -1. */
int metric_find(const char *name);
/* Of the nearest name, for a "did you mean"; or NULL. */
const char *metric_nearest(const char *name);

/* What one run came to. `err` is set when it failed, and then the rest is nothing. */
struct outcome {
    struct metrics metrics;
    uint64_t wall_ns;
    struct err err;
};

enum { METRIC_TEXT_SIZE = 32 };
/* As files have it: nine significant digits; whole ones in full. */
char *metric_text(int metric, double value, char buf[METRIC_TEXT_SIZE]);

#endif
