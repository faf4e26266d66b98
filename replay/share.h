/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a step's attention each rank does: at every stage a set of rows x a range of heads.
 * What must be exchanged between two stages is where their shares meet on different ranks.
 */
#ifndef REPLAY_SHARE_H
#define REPLAY_SHARE_H

#include "replay/slice.h"
#include "sim/layout/layout.h"

/* One query row of a step. */
struct share_row {
    int request; /* index in the store */
    int owner;
    int64_t position;
};

struct share_rows {
    struct share_row *row;
    int n;
};

enum share_rule {
    SHARE_ALL,
    SHARE_OWNED, /* rows of the requests that the rank owns */
    SHARE_TURN,  /* row i on rank i mod ranks */
};

struct share {
    enum share_rule rule;
    int rank, ranks;
    int first_head, end_head;
};

enum share_stage {
    SHARE_PROJECT, /* queries: query heads by in-projection */
    SHARE_KV,      /* new keys and values: KV heads by K and V; a latent is made where rows are */
    SHARE_STORE,   /* the same where they are stored, all positions taken together */
    SHARE_ATTEND,  /* query heads, over the positions that the rank holds */
    SHARE_OUT,     /* query heads by O; there partial outputs are combined */
};

/* Where a row lives while one rank has it. */
enum share_rule share_home(const struct layout *l);

struct share share_of(const struct slice *s, const struct layout *l, enum share_stage stage,
                      int rank);

/* Whether the neighbour before does the same heads (more ranks than KV heads): then it sends. */
bool share_repeats_neighbour(const struct slice *s, const struct layout *l, enum share_stage stage,
                             int rank);

bool share_has_row(const struct share *s, const struct share_rows *rows, int i);

/* Whether every rank has all it needs at `to` from what it did itself at `from`. */
bool share_stays(const struct slice *s, const struct layout *l, enum share_stage from,
                 enum share_stage to);

#endif
