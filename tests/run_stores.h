/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores in temporary files, and rows for them.
 */
#ifndef TESTS_RUN_STORES_H
#define TESTS_RUN_STORES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/tune/run_store.h"

static char path_a[] = "/tmp/test_runs_a_XXXXXX", path_b[] = "/tmp/test_runs_b_XXXXXX";

static inline struct run_store *fresh(char *path)
{
    struct err err = ERR_NONE;
    close(mkstemp(path));
    struct run_store *s = run_store_open(path, &err);
    cr_assert_not_null(s, "%s", err.text);
    return s;
}

static inline void drop(struct run_store *s, const char *path)
{
    run_store_close(s);
    unlink(path);
}

static inline void add(struct run_store *s, const char *key, const char *profile, int64_t seed,
                       double e2e_s)
{
    struct err err = ERR_NONE;
    struct run_row row = {.version = "0.1.0",
                          .model = "m",
                          .cluster = "c",
                          .profile = profile,
                          .trace = "it's \"here\"",
                          .policy = "splash",
                          .settings = "{}",
                          .seed = seed,
                          .wall_ns = 1000};
    snprintf(row.key, sizeof row.key, "%s", key);
    row.metrics.value[metric_find("requests")] = 12345678901.0;
    row.metrics.value[metric_find("e2e_s_mean")] = e2e_s;
    cr_assert_eq(run_store_add(s, &row, &err), 0, "%s", err.text);
}

#endif
