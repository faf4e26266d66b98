/* SPDX-License-Identifier: Apache-2.0
 *
 * How a step's attention is dealt out: query rows of one request that follow each other form tiles
 * of up to tile_rows, and the slots that a tile sees are cut so that all parts get the same work (a
 * part: one block of the grid per tile of heads). A plan is one piece of memory without pointers,
 * made on the CPU and copied to the device; its places depend on its bounds alone.
 */
#ifndef KERNELS_ATTENTION_PLAN_H
#define KERNELS_ATTENTION_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTENTION_BLOCK_TOKENS = 64, /* slots are cut at multiples of this */
    ATTENTION_ITEM_BLOCKS = 3    /* what an item costs besides its blocks, in blocks */
};

struct attention_bounds {
    int rows_max;  /* query rows of a step */
    int tile_rows; /* 1 when a row's heads fill a tile */
    int parts;
};

/* Some rows against some slots [first_slot, end_slot) of their request. */
struct attention_item {
    int32_t request;
    int32_t first_row, rows;
    int32_t first_slot, end_slot;
    int32_t partial; /* where the unfinished result goes; -1: the tile is whole, to its place */
};

/* A tile that was cut: its partial results follow each other. */
struct attention_merge {
    int32_t first_row, rows;
    int32_t first_partial, partials;
};

/* Places within a plan: item[] has room for items_max, merge[] for merges_max. */
struct attention_plan {
    int32_t *part_first; /* [parts + 1]: a part does the items from its own to the next one's */
    int32_t *n_merges;   /* one number */
    struct attention_item *item;
    struct attention_merge *merge;
};

int attention_plan_items_max(const struct attention_bounds *b);
int attention_plan_merges_max(const struct attention_bounds *b);
int attention_plan_partials_max(const struct attention_bounds *b);
size_t attention_plan_bytes(const struct attention_bounds *b);

/* The places in a plan at this address, on whichever side that is. */
struct attention_plan attention_plan_at(void *memory, const struct attention_bounds *b);

/* Lay out `rows` rows: row i of request row_request[i] sees row_slots[i] slots, 0 allowed; rows of
 * one request that should share tiles follow each other with ascending slots. Every row is in
 * exactly one tile, a row that sees nothing too. No part does more than the mean, counted in blocks
 * and rounded up, and one item's cost. Writes within attention_plan_bytes() at `memory`, which is
 * aligned to 4. */
void attention_plan_make(void *memory, const struct attention_bounds *b, int rows,
                         const int32_t *row_request, const int64_t *row_slots);

#ifdef __cplusplus
}
#endif
#endif
