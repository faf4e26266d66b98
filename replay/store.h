/* SPDX-License-Identifier: Apache-2.0
 *
 * What one rank holds: the projections of every layer and the KV of every request. Arrays whose
 * placement depends on the layout have their whole size, and every number that the rank does not
 * hold is NaN, so that whoever uses one spoils its result. Who holds what is asked of
 * sim/layout/blocks.h, never of a layout's name.
 */
#ifndef REPLAY_STORE_H
#define REPLAY_STORE_H

#include "replay/slice.h"
#include "sim/layout/layout.h"

#include <stddef.h>

/* KV is placed by blocks of this many positions: block j belongs to class j mod classes. */
enum { STORE_BLOCK_TOKENS = 16 };

struct store_request {
    int64_t req;
    int owner;
    int64_t tokens;
    size_t cap_tokens;
    double **kv; /* [layers], each [cap_tokens][slice_kv_width] */
};

struct store {
    const struct slice *slice; /* borrowed */
    int rank, ranks;
    double **weight; /* [layers * MAT_COUNT]; NULL for what a layer lacks */
    struct store_request *request;
    size_t n_requests, cap_requests;
};

/* How one axis of the state is cut. */
enum store_part {
    STORE_IN,    /* Q-B and KV-B, or Q, by query head */
    STORE_KV_IN, /* K and V of GQA, by KV head */
    STORE_OUT,   /* O, by query head */
    STORE_KV,    /* KV, by KV head and block of positions; a latent counts as one head */
};

/* A matrix that is cut by head: how many there are, and the rows of one; of O: columns. */
struct store_heads {
    enum store_part part;
    int n, width;
};
bool store_is_by_head(enum matrix m);
struct store_heads store_heads_of(const struct model *m, enum matrix which);

/* The smallest piece that has one place: a rectangle of a stored array. */
struct store_cell {
    enum store_part part;
    int layer, head;
    int64_t block; /* of STORE_KV, as is owner */
    int owner;
    double *at;
    int rows, columns, stride; /* in numbers, stride from row to row */
};

struct store_cells {
    struct store_cell *cell;
    size_t n, cap;
};

/* Projections and the rank's share of the FFN as `l` places them; no requests. */
void store_init(struct store *s, const struct slice *slice, const struct layout *l, int rank);
void store_release(struct store *s);

double *store_weight(const struct store *s, int layer, enum matrix m);

/* The layout of one layer: the first full_weights_frac of them keep full projections. */
struct layout store_layer_layout(const struct slice *s, const struct layout *l, int layer);

/* Contiguous share of n units for one of the ranks, as FFN rows and experts are cut. */
struct store_span {
    int first, end;
};
struct store_span store_span_of(int n, int rank, int ranks);

/* Whether a rank holds a cell under a layout; cell->at may be NULL. */
bool store_holds(const struct slice *s, const struct store_cell *c, const struct layout *l,
                 int rank);

/* Index of a request, -1 when there is none. */
int store_find(const struct store *s, int64_t req);
/* A new request whose first tokens are history: held cells get VALUE_HISTORY. Returns its index. */
int store_add(struct store *s, const struct layout *l, int64_t req, int owner,
              int64_t history_tokens);
void store_extend(struct store *s, int index, int64_t tokens);
void store_remove(struct store *s, int index);

/* Keep what `l` makes this rank hold of a KV row (slice_kv_width numbers, NaN where unknown). */
void store_put(struct store *s, const struct layout *l, int index, int layer, int64_t position,
               const double *kv_row);

/* Append all cells of one layer, in an order that every rank shares. Free cells->cell. */
void store_list_weights(const struct store *s, int layer, struct store_cells *cells);
void store_list_kv(const struct store *s, int layer, struct store_cells *cells);

#endif
