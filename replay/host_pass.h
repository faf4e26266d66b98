/* SPDX-License-Identifier: Apache-2.0
 *
 * One step inside one layer of one rank, as the parts of the host backend see it.
 */
#ifndef REPLAY_HOST_PASS_H
#define REPLAY_HOST_PASS_H

#include "replay/comm.h"
#include "replay/share.h"
#include "replay/store.h"

struct host_pass {
    struct store *store;
    struct comm *comm;
    struct share_rows rows;
    struct layout layout; /* of this layer */
    int layer;
};

/* x [rows][hidden] normed -> this rank's part of the attention's output: the whole of its rows
 * (the others' NaN), or, with O cut, a partial sum of every row. */
int host_attention(const struct host_pass *p, const double *x, double *y, struct err *err);

/* x [rows][hidden] normed -> this rank's part of the FFN's output, a partial sum of every row. */
void host_ffn(const struct host_pass *p, const double *x, double *y);

/* n numbers that are not held. */
double *host_poison(size_t n);

double host_dot(const double *a, const double *b, int n);
/* y += scale * x */
void host_add(double *y, double scale, const double *x, int64_t n);
/* y = w x, w [rows][columns] */
void host_multiply(double *y, const double *w, const double *x, int rows, int columns);

#endif
