/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/layout/blocks: who holds what, worked by hand, and set sizes against a walk over
 * every block.
 */
#include "sim/layout/blocks.h"

#include <math.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static const struct model mla = {
    .name = "mla", .heads = 128, .kv_heads = 1, .attention = ATTN_MLA, .layers = 64};
static const struct model gqa = {
    .name = "gqa", .heads = 128, .kv_heads = 8, .attention = ATTN_GQA, .layers = 64};

static const struct study {
    const struct model *m;
    int ranks;
    const char *layouts;
} studies[] = {
    {&mla, 1, "tp,cp,dp,dop"},
    {&mla, 2, "tp,cp,cp:storage=layer,dp,dop,helix:kvp=2,tpa=1"},
    {&mla, 8, "tp,cp,cp:storage=layer,dp,dop,dop:cache=0.5,helix:kvp=8,tpa=1"},
    {&gqa, 4, "tp,cp,cp:storage=layer,dp,dop,helix:kvp=2,tpa=2,helix:kvp=1,tpa=4"},
    {&gqa, 8, "tp,cp,cp:storage=layer,dp,dop,helix:kvp=4,tpa=2,helix:kvp=2,tpa=4"},
    {&gqa, 16, "tp,cp,cp:storage=layer,dp,dop,helix:kvp=8,tpa=2,helix:kvp=2,tpa=8"},
    {&gqa, 128, "tp,cp,dp,dop,helix:kvp=16,tpa=8"},
};

static int load(const struct study *s, struct layout l[LAYOUT_MAX])
{
    struct err err = ERR_NONE;
    int n = layout_parse_list(l, s->layouts, s->m, s->ranks, &err);
    cr_assert_gt(n, 0, "%s", err.text);
    return n;
}

static struct layout parsed(const char *text, const struct model *m, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    cr_assert_eq(layout_parse(&l, text, m, ranks, &err), 0, "%s", err.text);
    return l;
}

static bool holds(const struct blocks *b, int head, int position, int layer)
{
    const int c[AXIS_COUNT] = {
        [AXIS_HEAD] = head, [AXIS_POSITION] = position, [AXIS_LAYER] = layer};
    for (int x = 0; x < AXIS_COUNT; x++) {
        if ((b->axis[x].bits[c[x] / 64] >> (c[x] % 64) & 1) == 0)
            return false;
    }
    return true;
}

Test(blocks, grid_has_whole_classes_of_every_layout)
{
    struct layout l[LAYOUT_MAX];
    int n = load(&studies[4], l); /* gqa, 8 ranks */
    struct block_grid kv = block_grid_for_kv(l, n), weights = block_grid_for_weights(l, n);
    cr_expect_eq(kv.classes[AXIS_HEAD], 8);
    cr_expect_eq(kv.classes[AXIS_POSITION], 8);
    cr_expect_eq(kv.classes[AXIS_LAYER], 8);
    cr_expect_eq(weights.classes[AXIS_HEAD], 8);
    cr_expect_eq(weights.classes[AXIS_POSITION], 1);
    struct layout helix = parsed("helix:kvp=4,tpa=2", &gqa, 8);
    kv = block_grid_for_kv(&helix, 1);
    cr_expect_eq(kv.classes[AXIS_HEAD], 2);
    cr_expect_eq(kv.classes[AXIS_POSITION], 4);
}

Test(blocks, helix_rank_5_of_4x2_holds_upper_heads_and_every_fourth_position_from_1)
{
    struct layout pair[] = {parsed("helix:kvp=4,tpa=2", &gqa, 8), parsed("cp", &gqa, 8),
                            parsed("tp", &gqa, 8)};
    struct block_grid g = block_grid_for_kv(pair, 3);
    struct blocks b = blocks_of_kv(&pair[0], &g, 5, 0);
    for (int h = 0; h < 8; h++) {
        for (int p = 0; p < 8; p++)
            cr_expect_eq(holds(&b, h, p, 0), h >= 4 && (p == 1 || p == 5), "h %d p %d", h, p);
    }
    cr_expect_eq(blocks_frac(&b, &g), 1.0 / 8);
}

Test(blocks, owner_alone_holds_its_request)
{
    struct layout dop = parsed("dop", &mla, 8);
    struct block_grid g = block_grid_for_kv(&dop, 1);
    for (int r = 0; r < 8; r++) {
        struct blocks b = blocks_of_kv(&dop, &g, r, 3);
        cr_expect_eq(blocks_frac(&b, &g), r == 3);
    }
}

Test(blocks, ranks_beyond_kv_heads_share_with_their_neighbour)
{
    struct layout tp = parsed("tp", &gqa, 16);
    struct block_grid g = block_grid_for_kv(&tp, 1);
    struct blocks b[16];
    for (int r = 0; r < 16; r++)
        b[r] = blocks_of_kv(&tp, &g, r, 0);
    for (int r = 0; r < 15; r++)
        cr_expect_eq(blocks_equal(&b[r], &b[r + 1]), r % 2 == 0, "rank %d", r);
    cr_expect(holds(&b[7], 3, 0, 0));
}

Test(blocks, cp_by_layer_holds_contiguous_layers_and_all_positions)
{
    struct layout pair[] = {parsed("cp:storage=layer", &mla, 4), parsed("cp", &mla, 4)};
    struct block_grid g = block_grid_for_kv(pair, 2);
    struct blocks b = blocks_of_kv(&pair[0], &g, 2, 0);
    for (int p = 0; p < 4; p++) {
        for (int layer = 0; layer < 4; layer++)
            cr_expect_eq(holds(&b, 0, p, layer), layer == 2);
    }
}

Test(blocks, out_shard_of_helix_is_that_of_tp_and_lies_within_its_in_shard)
{
    struct layout pair[] = {parsed("helix:kvp=4,tpa=2", &gqa, 8), parsed("tp", &gqa, 8)};
    struct block_grid g = block_grid_for_weights(pair, 2);
    for (int r = 0; r < 8; r++) {
        struct blocks out = blocks_of_out_weights(&pair[0], &g, r);
        struct blocks in = blocks_of_in_weights(&pair[0], &g, r);
        struct blocks tp = blocks_of_out_weights(&pair[1], &g, r);
        cr_expect(blocks_equal(&out, &tp));
        cr_expect_eq(blocks_missing_frac(&out, &in, &g), 0);
        cr_expect_eq(blocks_frac(&in, &g), 0.5);
    }
}

/* Copies of each block, -1 when they differ. */
static int copies(const struct blocks *held, int ranks, const struct block_grid *g)
{
    int all = 0;
    for (int h = 0; h < g->classes[AXIS_HEAD]; h++) {
        for (int p = 0; p < g->classes[AXIS_POSITION] * g->classes[AXIS_LAYER]; p++) {
            int n = 0;
            for (int r = 0; r < ranks; r++)
                n += holds(&held[r], h, p % g->classes[AXIS_POSITION],
                           p / g->classes[AXIS_POSITION]);
            if (all != 0 && n != all)
                return -1;
            all = n;
        }
    }
    return all;
}

ParameterizedTestParameters(blocks, every_block_is_held_equally_often)
{
    static size_t at[sizeof studies / sizeof *studies];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *s, blocks, every_block_is_held_equally_often)
{
    struct layout l[LAYOUT_MAX];
    struct blocks held[RANKS_MAX];
    int n = load(&studies[*s], l), ranks = studies[*s].ranks;
    /* On 128 ranks, one layout a grid keeps the walk short. */
    for (int i = 0; i < n; i++) {
        bool all = ranks < 128;
        struct block_grid g = block_grid_for_kv(all ? l : &l[i], all ? n : 1);
        for (int r = 0; r < ranks; r++)
            held[r] = blocks_of_kv(&l[i], &g, r, ranks - 1);
        int shards = l[i].kv_head_shards * l[i].kv_pos_shards * l[i].kv_layer_shards;
        cr_expect_eq(copies(held, ranks, &g), l[i].kv_owned ? 1 : ranks / shards, "%s", l[i].name);
        g = block_grid_for_state(l, n);
        for (int r = 0; r < ranks; r++)
            held[r] = blocks_of_state(&l[i], &g, r, 0);
        cr_expect_eq(copies(held, ranks, &g), 1, "state of %s", l[i].name);
        g = block_grid_for_weights(l, n);
        for (int r = 0; r < ranks; r++)
            held[r] = blocks_of_in_weights(&l[i], &g, r);
        cr_expect_eq(copies(held, ranks, &g), ranks / l[i].in_shards, "in of %s", l[i].name);
        for (int r = 0; r < ranks; r++)
            held[r] = blocks_of_kv_weights(&l[i], &g, r);
        cr_expect_eq(copies(held, ranks, &g), ranks / l[i].kv_in_shards, "kv of %s", l[i].name);
    }
}

/* |b \ a| by walking over every block. */
static double missing_by_walk(const struct blocks *b, const struct blocks *a,
                              const struct block_grid *g)
{
    const int *n = g->classes;
    int missing = 0, all = n[AXIS_HEAD] * n[AXIS_POSITION] * n[AXIS_LAYER];
    for (int i = 0; i < all; i++) {
        int h = i % n[AXIS_HEAD], p = i / n[AXIS_HEAD] % n[AXIS_POSITION];
        int layer = i / n[AXIS_HEAD] / n[AXIS_POSITION];
        missing += holds(b, h, p, layer) && !holds(a, h, p, layer);
    }
    return (double)missing / all;
}

Test(blocks, set_difference_matches_a_walk)
{
    for (int s = 0; s < 5; s++) {
        struct layout l[LAYOUT_MAX];
        int n = load(&studies[s], l), ranks = studies[s].ranks;
        struct block_grid g = block_grid_for_kv(l, n);
        for (int i = 0; i < n * n; i++) {
            for (int r = 0; r < ranks; r++) {
                struct blocks a = blocks_of_kv(&l[i / n], &g, r, ranks / 2);
                struct blocks b = blocks_of_kv(&l[i % n], &g, r, ranks / 2);
                double missing = blocks_missing_frac(&b, &a, &g);
                cr_assert_eq(missing, missing_by_walk(&b, &a, &g));
                bool equal = missing == 0 && missing_by_walk(&a, &b, &g) == 0;
                cr_assert_eq(blocks_equal(&a, &b), equal);
            }
        }
    }
}

Test(blocks, empty_boxes_are_equal_however_they_came_about)
{
    struct layout cp = parsed("cp", &mla, 8);
    struct block_grid g = block_grid_for_kv(&cp, 1);
    struct blocks a = blocks_of_kv(&cp, &g, 0, 0), b = blocks_of_kv(&cp, &g, 1, 0), none = {0};
    struct blocks both = blocks_and(&a, &b);
    cr_expect(blocks_equal(&both, &none));
    cr_expect_not(blocks_equal(&a, &b));
    cr_expect_eq(blocks_frac(&both, &g), 0);
}

Test(blocks, classes_above_64_use_the_second_word)
{
    struct layout cp = parsed("cp", &mla, 128);
    struct block_grid g = block_grid_for_kv(&cp, 1);
    struct blocks b = blocks_of_kv(&cp, &g, 127, 0);
    cr_expect(holds(&b, 0, 127, 0));
    cr_expect_not(holds(&b, 0, 63, 0));
    cr_expect_eq(blocks_frac(&b, &g), 1.0 / 128);
}
