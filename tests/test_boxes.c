/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/box.h"

#include "sim/base/rng.h"
#include "tests/fake_group.h"

#include <criterion/criterion.h>

enum { RANK = 3 };

/* The box as it stands in the list of its sender. */
static struct link_box entered(struct link_box box)
{
    struct boxes b = {0};
    boxes_add(&b, RANK, RANK, 0, box);
    cr_assert(b.n_out == 1 && b.n_in == 0);
    struct link_box got = b.out[0];
    boxes_release(&b);
    return got;
}

/* blocks x rows x bytes, then from, from_block, from_row and to, to_block, to_row. */
static const struct {
    const char *what;
    struct link_box box, want;
} cases[] = {
    {"rows without gaps",
     {0, 3, 4, 8, 100, 64, 8, 200, 40, 8},
     {0, 1, 3, 32, 100, 0, 64, 200, 0, 40}},
    {"neither rows nor blocks with gaps",
     {0, 3, 4, 8, 100, 32, 8, 200, 32, 8},
     {0, 1, 1, 96, 100, 0, 0, 200, 0, 0}},
    {"rows with gaps at the sender",
     {0, 3, 4, 8, 100, 64, 16, 200, 32, 8},
     {0, 3, 4, 8, 100, 64, 16, 200, 32, 8}},
    {"rows with gaps at the receiver",
     {0, 3, 4, 8, 100, 32, 8, 200, 64, 16},
     {0, 3, 4, 8, 100, 32, 8, 200, 64, 16}},
    {"blocks with gaps at the sender",
     {0, 3, 4, 8, 100, 40, 8, 200, 32, 8},
     {0, 1, 3, 32, 100, 0, 40, 200, 0, 32}},
    {"blocks with gaps at the receiver",
     {0, 3, 4, 8, 100, 32, 8, 200, 40, 8},
     {0, 1, 3, 32, 100, 0, 32, 200, 0, 40}},
    {"blocks of one row, its distances unset",
     {0, 3, 1, 8, 100, 64, 0, 200, 40, 0},
     {0, 1, 3, 8, 100, 0, 64, 200, 0, 40}},
    {"blocks of one row without gaps",
     {0, 3, 1, 8, 100, 8, 0, 200, 8, 0},
     {0, 1, 1, 24, 100, 0, 0, 200, 0, 0}},
    {"one block of rows with gaps",
     {0, 1, 4, 8, 100, 0, 16, 200, 0, 24},
     {0, 1, 4, 8, 100, 0, 16, 200, 0, 24}},
    {"one row", {0, 1, 1, 8, 100, 0, 0, 200, 0, 0}, {0, 1, 1, 8, 100, 0, 0, 200, 0, 0}},
};

Test(boxes, what_follows_without_a_gap_at_both_ends_becomes_one)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct link_box got = entered(cases[i].box);
        cr_assert(is_box(&got, cases[i].want), "%s", cases[i].what);
    }
}

Test(boxes, empty_ones_do_not_enter)
{
    const struct link_box full = {0, 2, 2, 8, 0, 64, 16, 0, 64, 16};
    struct link_box empty[] = {full, full, full, full};
    struct boxes b = {0};
    empty[0].blocks = 0;
    empty[1].rows = 0;
    empty[2].bytes = 0;
    empty[3].rows = -2; /* of ranges that do not meet */
    for (int i = 0; i < 4; i++)
        boxes_add(&b, RANK, RANK, RANK, empty[i]);
    cr_assert(b.n_out == 0 && b.n_in == 0);
    boxes_release(&b);
}

Test(boxes, each_end_has_the_other_for_its_peer)
{
    const struct link_box box = {99, 1, 1, 8, 100, 0, 0, 200, 0, 0};
    struct boxes sender = {0}, receiver = {0}, bystander = {0};
    boxes_add(&sender, 1, 1, 2, box);
    boxes_add(&receiver, 2, 1, 2, box);
    boxes_add(&bystander, 0, 1, 2, box);
    cr_assert(sender.n_out == 1 && sender.n_in == 0 && sender.out[0].peer == 2);
    cr_assert(receiver.n_out == 0 && receiver.n_in == 1 && receiver.in[0].peer == 1);
    cr_assert(same_box(&sender.out[0], &receiver.in[0]));
    cr_assert(bystander.n_out == 0 && bystander.n_in == 0);
    boxes_release(&sender);
    boxes_release(&receiver);
}

Test(boxes, a_local_copy_is_on_both_lists)
{
    struct boxes b = {0};
    boxes_add(&b, RANK, RANK, RANK, (struct link_box){0, 1, 1, 8, 100, 0, 0, 200, 0, 0});
    cr_assert(b.n_out == 1 && b.n_in == 1 && b.out[0].peer == RANK && b.in[0].peer == RANK);
    boxes_release(&b);
    cr_assert(b.out == NULL && b.in == NULL && b.n_out == 0 && b.n_in == 0);
}

Test(boxes, keep_the_order_in_which_they_were_added)
{
    struct boxes b = {0};
    for (int i = 0; i < 100; i++)
        boxes_add(&b, RANK, RANK, i % 7, (struct link_box){0, 1, 1, 8, 8 * i, 0, 0, 0, 0, 0});
    cr_assert_eq(b.n_out, 100);
    for (int i = 0; i < 100; i++)
        cr_assert(b.out[i].from == 8 * i && b.out[i].peer == i % 7, "box %d", i);
    boxes_release(&b);
}

enum { SPAN = 64 };

/* to[i] becomes where byte i of the receiver comes from, plus 1. */
static void trace(const struct link_box *b, int16_t to[SPAN])
{
    memset(to, 0, SPAN * sizeof *to);
    for (int64_t i = 0; i < b->blocks; i++)
        for (int64_t j = 0; j < b->rows; j++)
            for (int64_t k = 0; k < b->bytes; k++)
                to[b->to + i * b->to_block + j * b->to_row + k] =
                    (int16_t)(b->from + i * b->from_block + j * b->from_row + k + 1);
}

Test(boxes, closing_gaps_moves_the_same_bytes)
{
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 5000; i++) {
        struct link_box b = {.blocks = rng_range(&rng, 1, 3),
                             .rows = rng_range(&rng, 1, 3),
                             .bytes = rng_range(&rng, 1, 3)};
        b.from_row = b.bytes + rng_range(&rng, 0, 1);
        b.to_row = b.bytes + rng_range(&rng, 0, 1);
        b.from_block = b.rows * b.from_row + rng_range(&rng, 0, 1);
        b.to_block = b.rows * b.to_row + rng_range(&rng, 0, 1);
        struct link_box closed = entered(b);
        int16_t before[SPAN], after[SPAN];
        trace(&b, before);
        trace(&closed, after);
        cr_assert(memcmp(before, after, sizeof before) == 0, "box %d", i);
    }
}
