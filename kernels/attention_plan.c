/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention_plan.h"

#include <assert.h>

int attention_plan_items_max(const struct attention_bounds *b)
{
    return b->rows_max + b->parts - 1;
}

int attention_plan_merges_max(const struct attention_bounds *b)
{
    return b->parts - 1;
}

int attention_plan_partials_max(const struct attention_bounds *b)
{
    return 2 * (b->parts - 1);
}

size_t attention_plan_bytes(const struct attention_bounds *b)
{
    return ((size_t)b->parts + 2) * sizeof(int32_t) +
           (size_t)attention_plan_items_max(b) * sizeof(struct attention_item) +
           (size_t)attention_plan_merges_max(b) * sizeof(struct attention_merge);
}

struct attention_plan attention_plan_at(void *memory, const struct attention_bounds *b)
{
    struct attention_plan plan;
    plan.n_merges = memory;
    plan.part_first = plan.n_merges + 1;
    plan.item = (struct attention_item *)(plan.part_first + b->parts + 1);
    plan.merge = (struct attention_merge *)(plan.item + attention_plan_items_max(b));
    return plan;
}

/* Rows of one request, and the blocks that the farthest-seeing of them needs. */
struct tile {
    int first_row, rows;
    int64_t slots;
};

struct batch {
    const int32_t *row_request;
    const int64_t *row_slots;
    int rows, tile_rows;
};

static struct tile tile_at(const struct batch *batch, int first_row)
{
    struct tile t = {first_row, 0, 0};
    int row = first_row;
    while (row < batch->rows && t.rows < batch->tile_rows &&
           batch->row_request[row] == batch->row_request[first_row]) {
        if (t.slots < batch->row_slots[row])
            t.slots = batch->row_slots[row];
        t.rows++;
        row++;
    }
    return t;
}

static int64_t blocks_of(int64_t slots)
{
    return (slots + ATTENTION_BLOCK_TOKENS - 1) / ATTENTION_BLOCK_TOKENS;
}

/* So much for every part suffices: a part does less only by the overhead of the piece that it cuts
 * off, or leaves less than that unused where a piece would have no block. */
static int64_t part_blocks(const struct batch *batch, int parts)
{
    int64_t blocks = 0;
    for (int row = 0; row < batch->rows;) {
        const struct tile t = tile_at(batch, row);
        blocks += blocks_of(t.slots) + ATTENTION_ITEM_BLOCKS;
        row += t.rows;
    }
    return (blocks + parts - 1) / parts + ATTENTION_ITEM_BLOCKS;
}

/* Where the dealing stands. */
struct deal {
    struct attention_plan plan;
    const int32_t *row_request;
    int64_t part_blocks, left_blocks; /* of each part; of the current one */
    int part, n_items, n_partials;
};

static void next_part(struct deal *d)
{
    d->left_blocks = d->part_blocks;
    d->plan.part_first[++d->part] = d->n_items;
}

static void add_item(struct deal *d, const struct tile *t, int64_t first_block, int64_t blocks)
{
    const int64_t first_slot = first_block * ATTENTION_BLOCK_TOKENS;
    int64_t end_slot = first_slot + blocks * ATTENTION_BLOCK_TOKENS;
    if (end_slot > t->slots)
        end_slot = t->slots;
    d->plan.item[d->n_items++] = (struct attention_item){
        .request = d->row_request[t->first_row],
        .first_row = t->first_row,
        .rows = t->rows,
        .first_slot = (int32_t)first_slot,
        .end_slot = (int32_t)end_slot,
        .partial = blocks == blocks_of(t->slots) ? -1 : d->n_partials++,
    };
    d->left_blocks -= blocks + ATTENTION_ITEM_BLOCKS;
}

static void deal_tile(struct deal *d, const struct tile *t)
{
    const int first_partial = d->n_partials;
    const int64_t blocks = blocks_of(t->slots);
    int64_t done = 0;
    do {
        if (d->left_blocks < ATTENTION_ITEM_BLOCKS + (blocks > 0))
            next_part(d);
        const int64_t room = d->left_blocks - ATTENTION_ITEM_BLOCKS;
        const int64_t take = blocks - done < room ? blocks - done : room;
        add_item(d, t, done, take);
        done += take;
    } while (done < blocks);
    if (d->n_partials > first_partial)
        d->plan.merge[(*d->plan.n_merges)++] = (struct attention_merge){
            t->first_row, t->rows, first_partial, d->n_partials - first_partial};
}

void attention_plan_make(void *memory, const struct attention_bounds *b, int rows,
                         const int32_t *row_request, const int64_t *row_slots)
{
    assert(rows <= b->rows_max);
    const struct batch batch = {row_request, row_slots, rows, b->tile_rows};
    struct deal d = {.plan = attention_plan_at(memory, b),
                     .row_request = row_request,
                     .part_blocks = part_blocks(&batch, b->parts)};
    d.left_blocks = d.part_blocks;
    d.plan.part_first[0] = 0;
    *d.plan.n_merges = 0;
    for (int row = 0; row < rows;) {
        const struct tile t = tile_at(&batch, row);
        deal_tile(&d, &t);
        row += t.rows;
    }
    while (d.part < b->parts)
        next_part(&d);
}
