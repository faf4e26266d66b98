/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured collective times (hw/nccl/NAME.csv: op,ranks,bytes,us), interpolated.
 */
#ifndef HW_COLLECTIVE_H
#define HW_COLLECTIVE_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/err.h"

enum collective {
    COLL_ALL_REDUCE,
    COLL_ALL_GATHER,
    COLL_REDUCE_SCATTER,
    COLL_ALL_TO_ALL,
    COLL_COUNT
};

extern const char *const collective_names[COLL_COUNT]; /* "all_reduce", ... */

struct collective_point {
    double bytes, us;
};

struct collective_curve {
    int ranks, n;
    double latency_us;              /* the smallest time of all points */
    struct collective_point *point; /* ascending bytes */
};

struct collective_table {
    int n[COLL_COUNT];
    struct collective_curve *curve[COLL_COUNT]; /* ascending ranks */
};

/* Load by name or path. Lines that begin with '#' are comments; the header row names the columns,
 * in any order; rows may come in any order. Refuses repeated sizes, times that are not positive, a
 * missing operation, and a largest size faster than the one before (it sets the slope beyond). */
int collective_load(struct collective_table *t, const char *name_or_path, struct err *err);
void collective_release(struct collective_table *t);

/* A table of its own with the same numbers. */
struct collective_table collective_copy(const struct collective_table *t);
/* Whether it has an operation's times over just so many ranks. */
bool collective_has(const struct collective_table *t, enum collective op, int ranks);
/* A table of its own: `base` corrected by what was measured on a machine with so many ranks. Of an
 * operation that was measured over `ranks`: every measured curve as it is, and base's curves of
 * other numbers of ranks, each point times measured / base over `ranks` at that size. Other
 * operations stay base's. */
struct collective_table collective_rebase(const struct collective_table *base,
                                          const struct collective_table *measured, int ranks);
/* Write what collective_load() reads, less comments: the header row and one row a point. */
void collective_write(const struct collective_table *t, FILE *out);

/* Seconds of one collective over `ranks` on `bytes`, counted as nccl-tests counts "size": the whole
 * buffer of one rank (all-reduce: N x hidden; all-gather and reduce-scatter: the gathered whole;
 * all-to-all: everything a rank sends, its own piece included).
 * Linear in bytes between points; below the first point its time; above the last the last slope.
 * Rank counts between two measured ones: linear in log2(ranks); below the smallest: the smallest's
 * time; above the largest: the time less its latency, scaled by the busbw factor ((n-1)/n;
 * all-reduce alike), plus the latency grown by log2. ranks <= 1 or bytes <= 0: zero.
 * Measurements below 512 KiB dip where NCCL changes protocol; they are kept as measured. */
double collective_s(const struct collective_table *t, enum collective op, int ranks, double bytes);

/* The part of the above that does not depend on size: the smallest measured time, interpolated
 * over ranks as above (delta of Eq. 10). */
double collective_latency_s(const struct collective_table *t, enum collective op, int ranks);

#endif
