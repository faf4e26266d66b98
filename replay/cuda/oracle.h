/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference for shapes that the CPU's is too slow for: the same layer (replay/reference.h), in
 * double on one GPU by plain kernels that share nothing with the fast ones, for a few requests of a
 * step. Weights are never stored: each is worked out where it is multiplied. Attention is absorbed,
 * over keys and values kept in double. Runs alone, on the current device, and waits.
 */
#ifndef REPLAY_CUDA_ORACLE_H
#define REPLAY_CUDA_ORACLE_H

#include "replay/reference.h"
#include "replay/slice.h"
#include "sim/base/err.h"

enum { ORACLE_ROWS_MAX = 64 }; /* in one step */

struct oracle;

/* Borrows the slice; the model has no sparse or linear attention. */
struct oracle *oracle_new(const struct slice *s, struct err *err);
void oracle_free(struct oracle *o);

/* In the next step, layer l starts from rows [l][n][hidden] rather than from what the layers before
 * it gave: so a layer is judged by what it was given, not by the rounding of those before. Borrowed
 * until the step is done. */
void oracle_lead(struct oracle *o, const double *rows);
void oracle_forget(struct oracle *o, int64_t req);

/* What there is to compare, of n rows: the caller's arrays, none NULL. */
struct oracle_taps {
    double *attention; /* [layers][n][hidden]: what attention adds */
    double *ffn;       /* [layers][n][hidden]: what the FFN adds */
    double *lse;       /* [layers][n][heads], natural log */
    double *hidden;    /* [n][hidden]: after the last layer */
};

/* Rows as for reference_step(); n <= ORACLE_ROWS_MAX. experts [layers][n][topk]: what was chosen by
 * whom is to be checked, since rounding may turn a near tie: used when, by the oracle's own logits,
 * none left out beats a chosen one by more than `tie`, else the step fails; NULL: own choice.
 * Fails, saying so, when memory does not suffice. After a failure forget the requests of its rows.
 */
int oracle_step(struct oracle *o, const struct reference_row *row, int n, const int32_t *experts,
                double tie, const struct oracle_taps *taps, struct err *err);

#endif
