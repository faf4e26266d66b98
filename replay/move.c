/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/move.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/pieces.h"
#include "sim/base/mem.h"

static void copy_out(const struct store_cell *c, double *piece)
{
    for (int i = 0; i < c->rows; i++)
        memcpy(piece + (int64_t)i * c->columns, c->at + (int64_t)i * c->stride,
               (size_t)c->columns * sizeof *piece);
}

static void copy_in(const struct store_cell *c, const double *piece)
{
    for (int i = 0; i < c->rows; i++)
        memcpy(c->at + (int64_t)i * c->stride, piece + (int64_t)i * c->columns,
               (size_t)c->columns * sizeof *piece);
}

/* One cell on its way to one rank. */
struct trip {
    const struct store_cell *cell;
    int sender, receiver;
};

struct trips {
    struct trip *trip;
    size_t n, cap;
    size_t sent[RANKS_MAX]; /* numbers, by sender */
};

/* -1 when nobody does. */
static int least_busy_holder(const struct trips *t, const bool *holds, int ranks)
{
    int best = -1;
    for (int r = 0; r < ranks; r++) {
        if (holds[r] && (best < 0 || t->sent[r] < t->sent[best]))
            best = r;
    }
    return best;
}

static void add_trips(struct trips *t, const struct store *s, const struct store_cell *c,
                      const struct layout pair[2])
{
    bool holds[RANKS_MAX];
    for (int r = 0; r < s->ranks; r++)
        holds[r] = store_holds(s->slice, c, &pair[0], r);
    for (int r = 0; r < s->ranks; r++) {
        if (holds[r] || !store_holds(s->slice, c, &pair[1], r))
            continue;
        int sender = least_busy_holder(t, holds, s->ranks);
        assert(sender >= 0);
        t->sent[sender] += (size_t)c->rows * (size_t)c->columns;
        t->trip = xgrow(t->trip, &t->cap, t->n + 1, sizeof *t->trip);
        t->trip[t->n++] = (struct trip){c, sender, r};
    }
}

int move_fetch(const struct store *s, struct comm *c, const struct store_cells *cells,
               const struct layout pair[2], struct err *err)
{
    /* Every rank lists the trips of all, so that senders and receivers agree unasked. */
    struct trips t = {0};
    for (size_t i = 0; i < cells->n; i++)
        add_trips(&t, s, &cells->cell[i], pair);

    struct pieces out = {0}, in = {0};
    for (size_t i = 0; i < t.n; i++) {
        const struct trip *trip = &t.trip[i];
        size_t n = (size_t)trip->cell->rows * (size_t)trip->cell->columns;
        if (trip->sender == s->rank)
            copy_out(trip->cell, pieces_add(&out, trip->receiver, n));
        if (trip->receiver == s->rank)
            pieces_add(&in, trip->sender, n);
    }
    int result = pieces_swap(&out, &in, c, err);
    for (size_t i = 0; result == 0 && i < t.n; i++) {
        const struct trip *trip = &t.trip[i];
        size_t n = (size_t)trip->cell->rows * (size_t)trip->cell->columns;
        if (trip->receiver == s->rank)
            copy_in(trip->cell, pieces_take(&in, trip->sender, n));
    }
    pieces_release(&out);
    pieces_release(&in);
    free(t.trip);
    return result;
}

void move_retire(const struct store *s, const struct store_cells *cells, const struct layout *l)
{
    for (size_t k = 0; k < cells->n; k++) {
        const struct store_cell *c = &cells->cell[k];
        if (store_holds(s->slice, c, l, s->rank))
            continue;
        for (int i = 0; i < c->rows; i++) {
            for (int j = 0; j < c->columns; j++)
                c->at[(int64_t)i * c->stride + j] = NAN;
        }
    }
}

int move_switch(const struct store *s, struct comm *c, const struct layout *from,
                const struct layout *to, struct err *err)
{
    int result = 0;
    struct store_cells cells = {0};
    for (int layer = 0; result == 0 && layer < s->slice->layers; layer++) {
        const struct layout pair[2] = {store_layer_layout(s->slice, from, layer),
                                       store_layer_layout(s->slice, to, layer)};
        cells.n = 0;
        store_list_weights(s, layer, &cells);
        store_list_kv(s, layer, &cells);
        result = move_fetch(s, c, &cells, pair, err);
        if (result == 0)
            move_retire(s, &cells, &pair[1]);
    }
    free(cells.cell);
    return result;
}
