/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores looked at as a whole: which studies one holds, and in what two differ.
 */
#ifndef SIM_TUNE_LEDGER_H
#define SIM_TUNE_LEDGER_H

#include "sim/tune/run_store.h"

/* Runs of one program version on one machine and trace. */
struct ledger_entry {
    char *version, *model, *cluster, *profile, *trace;
    int64_t runs, first_seed, last_seed;
    uint64_t wall_ns;
};

struct ledger {
    struct ledger_entry *entry; /* by name */
    int n;
    size_t cap;
};

int ledger_read(struct ledger *l, struct run_store *s, struct err *err);
void ledger_release(struct ledger *l);

/* Runs of two stores side by side: those alike in model, cluster, trace, seed, policy, settings and
 * requests. The program, the files of the machine and the profile's name may differ. */
struct ledger_change {
    int64_t both, equal; /* runs that both have, and those with the same metrics */
    int64_t only_a, only_b;
    struct {
        int64_t changed;
        double mean_frac, most_frac; /* of all in both: mean of b / a - 1, and the greatest size */
        int64_t compared;            /* those with a other than 0 */
    } metric[METRIC_COUNT];
};

int ledger_compare(struct ledger_change *c, struct run_store *a, struct run_store *b,
                   struct err *err);

#endif
