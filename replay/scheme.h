/* SPDX-License-Identifier: Apache-2.0
 *
 * How one layer of a step runs under a layout: which rows and heads this rank does at every stage,
 * and what is exchanged between them, as boxes within the arena. A step's rows are sorted by owner,
 * so that every share is a range; where ranks take rows in turn, each takes a stretch of them.
 * Knows nothing of GPUs.
 */
#ifndef REPLAY_SCHEME_H
#define REPLAY_SCHEME_H

#include <stdbool.h>

#include "replay/box.h"
#include "replay/share.h"

enum { SCHEME_STAGES = SHARE_OUT + 1 };

/* Rows of a step by owner: owner o has rows first[o] up to first[o + 1]. */
struct scheme_rows {
    int64_t n;
    int64_t first[RANKS_MAX + 1];
};

struct scheme_range {
    int64_t first_row, rows;
    int first_head, heads;
};

struct scheme {
    const struct slice *slice; /* borrowed */
    struct layout layout;
    struct scheme_rows rows;
    int rank;
    struct scheme_range at[SCHEME_STAGES];
    int partials; /* results over parts of the context that meet at SHARE_OUT; 1: whole ones */
};

/* Whether steps under this layout can run so: not where KV is stored by layer. */
bool scheme_can_run(const struct layout *l);

void scheme_init(struct scheme *s, const struct slice *slice, const struct layout *l,
                 const struct scheme_rows *rows, int rank);

struct scheme_range scheme_range_of(const struct scheme *s, enum share_stage stage, int rank);
/* The rows that live with a rank: all where they are not owned. */
struct scheme_range scheme_home(const struct scheme *s, int rank);

/* Arrays [rows][heads][bytes] of the ranges of two stages, bytes into the arena. Where results are
 * partial (SHARE_ATTEND to SHARE_OUT), the one at `to` is [partials][rows][heads][bytes]. */
struct scheme_arrays {
    enum share_stage from, to;
    int64_t bytes;
    int64_t from_at, to_at;
};

/* What is needed at `to` and was done at `from`, of rows [first_row, end_row). For results that are
 * partial or do not stay (share_stays): of what stays, every rank that did it would send it. */
void scheme_between(struct boxes *b, const struct scheme *s, const struct scheme_arrays *a,
                    int64_t first_row, int64_t end_row);

/* An array [all rows][bytes] at the same place on every rank, each row valid where it lives
 * (`homes` SHARE_OWNED) or where its turn is: afterwards everywhere. */
void scheme_gather(struct boxes *b, const struct scheme *s, enum share_rule homes, int64_t bytes,
                   int64_t at);

/* Partial sums [all rows][bytes] to the rows' owners, there [ranks][own rows][bytes]. */
void scheme_scatter(struct boxes *b, const struct scheme *s, int64_t bytes, int64_t from_at,
                    int64_t to_at);

#endif
