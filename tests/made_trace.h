/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the generators: a trace from a preset of the repository, or the message why not.
 */
#ifndef TESTS_MADE_TRACE_H
#define TESTS_MADE_TRACE_H

#include <stdlib.h>

#include "hw/catalog.h"
#include "sim/base/mem.h"
#include "workloads/workload.h"

static inline int make_trace(struct trace *t, const char *preset, const char *workload,
                             struct workload_ask ask, struct err *err)
{
    struct catalog_doc doc;
    char name[CATALOG_NAME_SIZE], *path = xasprintf("workloads/presets/%s.json", preset);
    const struct workload *w = workload_find(workload, err);
    int rc = w != NULL ? catalog_open(&doc, "presets", path, name, err) : -1;
    free(path);
    if (rc < 0)
        return -1;
    rc = workload_make(t, w, name, &doc.root, &ask, err);
    catalog_close(&doc);
    return rc;
}

static inline int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline double quantile_of(int64_t *value, size_t n, double p)
{
    qsort(value, n, sizeof *value, compare_i64);
    return (double)value[(size_t)(p * (double)(n - 1))];
}

/* |x - target| / target */
static inline double error_frac(double x, double target)
{
    return (x > target ? x - target : target - x) / target;
}

#endif
