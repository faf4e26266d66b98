/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows on their way between the stages of attention, and hidden rows between ranks.
 */
#ifndef REPLAY_EXCHANGE_H
#define REPLAY_EXCHANGE_H

#include "replay/comm.h"
#include "replay/share.h"

/* What a received (row, head) does to what is there. */
typedef void (*exchange_land_fn)(double *at, const double *piece, int width);

struct exchange {
    const struct slice *slice;
    const struct layout *layout;
    const struct share_rows *rows;
    enum share_stage from, to;
    int heads, width; /* arrays are [rows][heads][width] */
    exchange_land_fn land;
};

/* Every rank sends what it did at `from` to whoever has it at `to` (itself too), where it lands in
 * rank order. The arrays must not overlap. Collective. */
int exchange_run(const struct exchange *e, const double *send, double *recv, struct comm *c,
                 struct err *err);

void exchange_replace(double *at, const double *piece, int width);

/* Attention over two disjoint sets of positions from the results over each: `width` numbers, the
 * last the natural-log LSE, -INFINITY with zero outputs for an empty set. */
void exchange_combine(double *at, const double *piece, int width);

/* x [rows][width], row i valid on its home: afterwards valid everywhere. Collective. */
int exchange_gather_rows(const struct share_rows *rows, enum share_rule home, double *x, int width,
                         struct comm *c, struct err *err);

#endif
