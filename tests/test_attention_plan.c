/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels/attention_plan: a case worked by hand, and over random batches that rows and slots are
 * dealt out once each, evenly, within the plan's bounds.
 */
#include "kernels/attention_plan.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"

enum { ROWS_MAX = 300, GUARD = 0x5a };

struct step {
    int rows;
    int32_t request[ROWS_MAX];
    int64_t slots[ROWS_MAX];
};

static int64_t blocks_of(int64_t slots)
{
    return (slots + ATTENTION_BLOCK_TOKENS - 1) / ATTENTION_BLOCK_TOKENS;
}

/* `rows` rows of a new request, the last of which sees `slots` slots, each one more than before. */
static void add_request(struct step *s, int rows, int64_t slots)
{
    const int32_t request = s->rows ? s->request[s->rows - 1] + 1 : 0;
    for (int i = 0; i < rows; i++, s->rows++) {
        const int64_t seen = slots - rows + 1 + i;
        s->request[s->rows] = request;
        s->slots[s->rows] = seen > 0 ? seen : 0;
    }
}

/* The plan with a byte behind it that must stay. */
static unsigned char *make(const struct step *s, const struct attention_bounds *b)
{
    const size_t bytes = attention_plan_bytes(b);
    unsigned char *memory = xmalloc(bytes + 1);
    memset(memory, 0xff, bytes);
    memory[bytes] = GUARD;
    attention_plan_make(memory, b, s->rows, s->request, s->slots);
    cr_assert_eq(memory[bytes], GUARD);
    return memory;
}

static int64_t tile_slots(const struct step *s, int first_row, int rows)
{
    int64_t slots = 0;
    for (int row = first_row; row < first_row + rows; row++)
        slots = s->slots[row] > slots ? s->slots[row] : slots;
    return slots;
}

/* As many rows of one request as fit. */
static int tile_rows(const struct step *s, const struct attention_bounds *b, int first_row)
{
    int rows = 1;
    while (rows < b->tile_rows && first_row + rows < s->rows &&
           s->request[first_row + rows] == s->request[first_row])
        rows++;
    return rows;
}

/* What of the plan was looked at. */
struct counts {
    int items, merges, partials;
};

/* The next items are those of the tile at `first_row` and cover its slots in order. */
static void check_tile(const struct step *s, const struct attention_plan *plan, int first_row,
                       int rows, struct counts *n)
{
    const struct counts before = *n;
    const int64_t slots = tile_slots(s, first_row, rows);
    int64_t covered = 0;
    do {
        const struct attention_item *item = &plan->item[n->items++];
        cr_assert_eq(item->request, s->request[first_row]);
        cr_assert_eq(item->first_row, first_row);
        cr_assert_eq(item->rows, rows);
        cr_assert_eq(item->first_slot, covered);
        cr_assert(item->end_slot > covered || slots == 0);
        cr_assert(item->end_slot == slots || item->end_slot % ATTENTION_BLOCK_TOKENS == 0);
        covered = item->end_slot;
    } while (covered < slots);
    cr_assert_eq(covered, slots);
    if (n->items - before.items == 1) {
        cr_assert_eq(plan->item[before.items].partial, -1);
        return;
    }
    for (int i = before.items; i < n->items; i++)
        cr_assert_eq(plan->item[i].partial, n->partials++);
    const struct attention_merge *merge = &plan->merge[n->merges++];
    cr_assert_eq(merge->first_row, first_row);
    cr_assert_eq(merge->rows, rows);
    cr_assert_eq(merge->first_partial, before.partials);
    cr_assert_eq(merge->partials, n->partials - before.partials);
}

/* No part has more than an even share and one item's cost. */
static void check_balance(const struct step *s, const struct attention_bounds *b,
                          const struct attention_plan *plan)
{
    int64_t whole = 0;
    for (int row = 0; row < s->rows; row += tile_rows(s, b, row))
        whole += blocks_of(tile_slots(s, row, tile_rows(s, b, row))) + ATTENTION_ITEM_BLOCKS;
    const int64_t most = (whole + b->parts - 1) / b->parts + ATTENTION_ITEM_BLOCKS;
    for (int part = 0; part < b->parts; part++) {
        int64_t cost = 0;
        cr_assert_leq(plan->part_first[part], plan->part_first[part + 1]);
        for (int i = plan->part_first[part]; i < plan->part_first[part + 1]; i++)
            cost += blocks_of(plan->item[i].end_slot - plan->item[i].first_slot) +
                    ATTENTION_ITEM_BLOCKS;
        cr_assert_leq(cost, most, "part %d of %d: %ld of %ld", part, b->parts, (long)cost,
                      (long)most);
    }
}

static void check(const struct step *s, const struct attention_bounds *b)
{
    unsigned char *memory = make(s, b);
    const struct attention_plan plan = attention_plan_at(memory, b);
    struct counts n = {0};
    for (int row = 0; row < s->rows; row += tile_rows(s, b, row))
        check_tile(s, &plan, row, tile_rows(s, b, row), &n);
    cr_assert_eq(plan.part_first[0], 0);
    cr_assert_eq(plan.part_first[b->parts], n.items);
    cr_assert_eq(*plan.n_merges, n.merges);
    cr_assert_leq(n.items, attention_plan_items_max(b));
    cr_assert_leq(n.merges, attention_plan_merges_max(b));
    cr_assert_leq(n.partials, attention_plan_partials_max(b));
    check_balance(s, b, &plan);
    free(memory);
}

/* Two tiles of 2 + 3 and 7 + 3 blocks: a part does up to ceil(15 / 3) + 3 = 8. The first does the
 * first tile, and has no room for a block of the second after that item's own cost; the second does
 * 5 blocks of it, the third the 2 others. */
Test(attention_plan, deals_out_a_case_worked_by_hand)
{
    struct step s = {0};
    add_request(&s, 2, 128);
    add_request(&s, 1, 7 * 64 - 10);
    const struct attention_bounds b = {.rows_max = 3, .tile_rows = 4, .parts = 3};
    unsigned char *memory = make(&s, &b);
    const struct attention_plan plan = attention_plan_at(memory, &b);
    const int32_t part_first[] = {0, 1, 2, 3};
    const struct attention_item item[] = {
        {0, 0, 2, 0, 128, -1}, {1, 2, 1, 0, 320, 0}, {1, 2, 1, 320, 438, 1}};
    const struct attention_merge merge = {2, 1, 0, 2};
    cr_assert_arr_eq(plan.part_first, part_first, sizeof part_first);
    cr_assert_arr_eq(plan.item, item, sizeof item);
    cr_assert_eq(*plan.n_merges, 1);
    cr_assert_arr_eq(plan.merge, &merge, sizeof merge);
    free(memory);
}

Test(attention_plan, has_a_tile_for_rows_that_see_nothing)
{
    struct step s = {0};
    add_request(&s, 3, 0);
    add_request(&s, 1, 0);
    for (int parts = 1; parts < 6; parts++)
        check(&s, &(struct attention_bounds){4, 2, parts});
}

Test(attention_plan, is_empty_without_rows)
{
    const struct step s = {0};
    for (int parts = 1; parts < 6; parts++)
        check(&s, &(struct attention_bounds){0, 1, parts});
}

Test(attention_plan, cuts_one_giant_request_into_all_parts)
{
    struct step s = {0};
    add_request(&s, 1, 10000000);
    const struct attention_bounds b = {1, 1, 132};
    check(&s, &b);
    unsigned char *memory = make(&s, &b);
    const struct attention_plan plan = attention_plan_at(memory, &b);
    for (int part = 0; part <= b.parts; part++)
        cr_assert_eq(plan.part_first[part], part);
    free(memory);
}

Test(attention_plan, leaves_tiles_whole_for_one_part)
{
    struct step s = {0};
    for (int i = 0; i < 20; i++)
        add_request(&s, 5, 100 * i);
    check(&s, &(struct attention_bounds){100, 4, 1});
}

Test(attention_plan, deals_out_random_batches, .timeout = 60)
{
    struct rng rng;
    rng_init(&rng, 5);
    for (int round = 0; round < 3000; round++) {
        struct step s = {0};
        const int64_t rows_most = rng_range(&rng, 0, 3) ? 1 : 20;
        const int64_t slots_most = rng_range(&rng, 0, 1) ? 200 : 100000;
        for (int64_t n = rng_range(&rng, 0, 60); n > 0 && s.rows + rows_most <= ROWS_MAX; n--) {
            const bool empty = rng_range(&rng, 0, 5) == 0;
            add_request(&s, (int)rng_range(&rng, 1, rows_most),
                        empty ? 0 : rng_range(&rng, 1, slots_most));
        }
        const struct attention_bounds b = {s.rows + (int)rng_range(&rng, 0, 3),
                                           (int)rng_range(&rng, 1, 8),
                                           (int)rng_range(&rng, 1, 140)};
        check(&s, &b);
    }
}
