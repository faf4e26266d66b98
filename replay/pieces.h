/* SPDX-License-Identifier: Apache-2.0
 *
 * One piece of numbers for, or from, every rank: packing for comm_all_to_all when both sides can
 * work out what travels.
 */
#ifndef REPLAY_PIECES_H
#define REPLAY_PIECES_H

#include "replay/comm.h"
#include "sim/layout/layout.h"

/* Zero-initialise. */
struct pieces {
    struct {
        double *x;
        size_t n, cap, taken;
    } of[RANKS_MAX];
};

/* Room for n more numbers at the end of a rank's piece, valid until the next call. */
double *pieces_add(struct pieces *p, int rank, size_t n);

/* Send `out`, receive into `in`, whose pieces already have the right sizes. Collective. */
int pieces_swap(struct pieces *out, struct pieces *in, struct comm *c, struct err *err);

/* The next n numbers of a rank's piece. */
const double *pieces_take(struct pieces *p, int rank, size_t n);

void pieces_release(struct pieces *p);

#endif
