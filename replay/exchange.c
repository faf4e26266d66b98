/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/pieces.h"
#include "sim/base/mem.h"

/* Where the share of a sender and that of a receiver meet. */
struct meeting {
    struct share from, to;
    int first_head, end_head;
};

static struct meeting meet(const struct exchange *e, int sender, int receiver)
{
    struct meeting m = {.from = share_of(e->slice, e->layout, e->from, sender),
                        .to = share_of(e->slice, e->layout, e->to, receiver)};
    bool from_later = m.from.first_head > m.to.first_head;
    m.first_head = from_later ? m.from.first_head : m.to.first_head;
    m.end_head = m.from.end_head < m.to.end_head ? m.from.end_head : m.to.end_head;
    return m;
}

static bool repeats_neighbour(const struct exchange *e, int sender)
{
    return share_repeats_neighbour(e->slice, e->layout, e->from, sender);
}

/* Rows that travel, as one stretch of heads each. */
static size_t stretch_of(const struct exchange *e, const struct meeting *m, int row)
{
    if (m->end_head <= m->first_head || !share_has_row(&m->from, e->rows, row) ||
        !share_has_row(&m->to, e->rows, row))
        return 0;
    return (size_t)(m->end_head - m->first_head) * (size_t)e->width;
}

static int64_t offset_of(const struct exchange *e, const struct meeting *m, int row)
{
    return ((int64_t)row * e->heads + m->first_head) * e->width;
}

static void pack(const struct exchange *e, int sender, int receiver, const double *send,
                 struct pieces *out)
{
    struct meeting m = meet(e, sender, receiver);
    for (int i = 0; i < e->rows->n; i++) {
        size_t n = stretch_of(e, &m, i);
        if (n > 0)
            memcpy(pieces_add(out, receiver, n), send + offset_of(e, &m, i), n * sizeof *send);
    }
}

static void expect(const struct exchange *e, int sender, int receiver, struct pieces *in)
{
    struct meeting m = meet(e, sender, receiver);
    for (int i = 0; i < e->rows->n; i++) {
        size_t n = stretch_of(e, &m, i);
        if (n > 0)
            pieces_add(in, sender, n);
    }
}

static void unpack(const struct exchange *e, int sender, int receiver, struct pieces *in,
                   double *recv)
{
    struct meeting m = meet(e, sender, receiver);
    for (int i = 0; i < e->rows->n; i++) {
        size_t n = stretch_of(e, &m, i);
        const double *piece = n > 0 ? pieces_take(in, sender, n) : NULL;
        for (size_t at = 0; at < n; at += (size_t)e->width)
            e->land(recv + offset_of(e, &m, i) + at, piece + at, e->width);
    }
}

int exchange_run(const struct exchange *e, const double *send, double *recv, struct comm *c,
                 struct err *err)
{
    struct pieces out = {0}, in = {0};
    for (int r = 0; r < c->ranks; r++) {
        if (!repeats_neighbour(e, c->rank))
            pack(e, c->rank, r, send, &out);
        if (!repeats_neighbour(e, r))
            expect(e, r, c->rank, &in);
    }
    int result = pieces_swap(&out, &in, c, err);
    for (int r = 0; result == 0 && r < c->ranks; r++) {
        if (!repeats_neighbour(e, r))
            unpack(e, r, c->rank, &in, recv);
    }
    pieces_release(&out);
    pieces_release(&in);
    return result;
}

void exchange_replace(double *at, const double *piece, int width)
{
    memcpy(at, piece, (size_t)width * sizeof *at);
}

void exchange_combine(double *at, const double *piece, int width)
{
    int lse = width - 1;
    double m = fmax(at[lse], piece[lse]);
    if (m == -INFINITY)
        m = 0;
    double a = exp(at[lse] - m), b = exp(piece[lse] - m), sum = a + b;
    for (int i = 0; i < lse; i++)
        at[i] = sum == 0 ? 0 : (a * at[i] + b * piece[i]) / sum;
    at[lse] = m + log(sum);
}

int exchange_gather_rows(const struct share_rows *rows, enum share_rule home, double *x, int width,
                         struct comm *c, struct err *err)
{
    size_t bytes[RANKS_MAX] = {0}, row_bytes = (size_t)width * sizeof *x;
    int *order = xcalloc((size_t)rows->n + 1, sizeof *order);
    double *packed = xcalloc((size_t)rows->n + 1, row_bytes);
    int n = 0;
    for (int r = 0; r < c->ranks; r++) {
        struct share here = {.rule = home, .rank = r, .ranks = c->ranks};
        for (int i = 0; i < rows->n; i++) {
            if (!share_has_row(&here, rows, i))
                continue;
            memcpy(packed + (int64_t)n * width, x + (int64_t)i * width, row_bytes);
            order[n++] = i;
            bytes[r] += row_bytes;
        }
    }
    int result = comm_all_gather(c, packed, bytes, err);
    for (int k = 0; result == 0 && k < n; k++)
        memcpy(x + (int64_t)order[k] * width, packed + (int64_t)k * width, row_bytes);
    free(order);
    free(packed);
    return result;
}
