/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/pieces.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"

double *pieces_add(struct pieces *p, int rank, size_t n)
{
    size_t first = p->of[rank].n;
    p->of[rank].x = xgrow(p->of[rank].x, &p->of[rank].cap, first + n, sizeof(double));
    p->of[rank].n = first + n;
    return p->of[rank].x + first;
}

int pieces_swap(struct pieces *out, struct pieces *in, struct comm *c, struct err *err)
{
    const void *send[RANKS_MAX];
    void *recv[RANKS_MAX];
    size_t send_bytes[RANKS_MAX], recv_bytes[RANKS_MAX];
    for (int r = 0; r < c->ranks; r++) {
        send[r] = out->of[r].x;
        recv[r] = in->of[r].x;
        send_bytes[r] = out->of[r].n * sizeof(double);
        recv_bytes[r] = in->of[r].n * sizeof(double);
    }
    return comm_all_to_all(c, send, send_bytes, recv, recv_bytes, err);
}

const double *pieces_take(struct pieces *p, int rank, size_t n)
{
    size_t first = p->of[rank].taken;
    assert(first + n <= p->of[rank].n);
    p->of[rank].taken = first + n;
    return p->of[rank].x + first;
}

void pieces_release(struct pieces *p)
{
    for (int r = 0; r < RANKS_MAX; r++)
        free(p->of[r].x);
    *p = (struct pieces){0};
}
