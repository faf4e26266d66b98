/* SPDX-License-Identifier: Apache-2.0
 *
 * Finished runs in an SQLite file: one row each, in table "run", by a digest of all that the run
 * came from. What differs between equal runs, the time they took, is in table "wall". Every row is
 * a transaction of its own in a write-ahead log, so that a process may be killed at any point and
 * several may write at once.
 */
#ifndef SIM_TUNE_RUN_STORE_H
#define SIM_TUNE_RUN_STORE_H

#include "sim/base/digest.h"
#include "sim/tune/metrics.h"

/* Strings are borrowed. */
struct run_row {
    char key[DIGEST_HEX_SIZE];
    const char *version, *model, *cluster, *profile, *trace, *policy;
    const char *settings; /* JSON object */
    int64_t seed;
    struct metrics metrics;
    uint64_t wall_ns; /* 0 where the file does not say */
};

struct run_store;

/* Open the file, and make it where there is none. Refuses other databases. */
struct run_store *run_store_open(const char *path, struct err *err);
/* Open one that is there, to read. */
struct run_store *run_store_open_to_read(const char *path, struct err *err);
void run_store_close(struct run_store *s);

/* 1 and the metrics of the run with this key, 0 when there is none, -1 on error. */
int run_store_find(struct run_store *s, const char *key, struct metrics *m, struct err *err);
/* Add a row, unless its key is there. When this fails, the rows before stay. */
int run_store_add(struct run_store *s, const struct run_row *row, struct err *err);

/* Every row, in the order of keys. `take` returns -1 with an error to stop. */
int run_store_each(struct run_store *s,
                   int (*take)(void *context, const struct run_row *row, struct err *err),
                   void *context, struct err *err);

#endif
