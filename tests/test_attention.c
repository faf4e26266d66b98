/* SPDX-License-Identifier: Apache-2.0
 *
 * What a profile says of how its engine does attention, on the slice's four layers and two ranks.
 */
#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/cost/cost.h"

enum { TP, CP, DP, DOP, HELIX, LAYOUTS, ITEMS_MAX = 200, LAYERS = 4 };

struct bench {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    struct cost *cost;
};

static void bench_init(struct bench *b, const struct attention_profile *a)
{
    struct err err = ERR_NONE;
    model_load(&b->model, "deepseek-r1-slice", &err);
    cluster_load(&b->cluster, "h200x2", &err);
    profile_load(&b->profile, "h200-analytic", &err);
    cr_assert_not(err.set, "%s", err.text);
    b->profile.attention = *a;
    cr_assert_eq(layout_parse_list(b->layout, "tp,cp,dp,dop,helix:kvp=2,tpa=1", &b->model, 2, &err),
                 LAYOUTS);
    b->cost = cost_new(&b->model, &b->cluster, &b->profile, b->layout, LAYOUTS, 64);
}

static void bench_release(struct bench *b)
{
    cost_free(b->cost);
    profile_release(&b->profile);
}

static struct step_cost step_of(const struct attention_profile *a, int layout,
                                const struct batch *batch)
{
    struct bench b;
    struct step_cost cost;
    bench_init(&b, a);
    cost_step(b.cost, layout, batch, &cost);
    bench_release(&b);
    return cost;
}

static const struct attention_profile plain = {0};

/* Microseconds of attention more than without any of it. */
static double added_us(const struct attention_profile *a, int layout, const struct batch *batch)
{
    return 1e-6 *
           (double)(step_of(a, layout, batch).attn.a_ps - step_of(&plain, layout, batch).attn.a_ps);
}

/* n rows of a context, the first of it `times` as long. */
static double merge_us(int layout, int n, int64_t ctx, int64_t times)
{
    static const struct attention_profile merging = {.merge_us = 1};
    struct batch_item item[ITEMS_MAX];
    for (int i = 0; i < n; i++)
        item[i] = (struct batch_item){i > 0 ? ctx : times * ctx, 1, 0};
    return added_us(&merging, layout, &(struct batch){n, n, item});
}

/* 132 SMs: tp has 132 parts of 64 heads, the others 66 of 128. Of the longest request a part gets
 * (sum of contexts) / parts + 64 tokens. */
Test(attention, the_most_cut_row_is_merged_part_by_part)
{
    /* 16,896 of 33,792: 132 x 16896 / (33792 + 8448) = 52.8 */
    cr_expect_float_eq(merge_us(TP, 3, 8448, 2), LAYERS * 52, 1e-9);
    /* a block's eight warps share 2 x 64 heads: 132 x 16896 / (25344 + 8448) / 8 = 8.25 */
    cr_expect_float_eq(merge_us(TP, 2, 8448, 2), LAYERS * 8, 1e-9);
    /* 66 x 16896 / (25344 + 4224) = 37.7, for 2 x 128 heads are too many */
    cr_expect_float_eq(merge_us(DP, 2, 8448, 2), LAYERS * 37, 1e-9);
    /* half of each context on each rank: 66 x 8448 / (12672 + 4224) = 33 */
    cr_expect_float_eq(merge_us(CP, 2, 8448, 2), LAYERS * 33, 1e-9);
    /* 3.3 parts each, and 39 x 64 heads for 132 x 8 warps, four loads each: 9.45 */
    cr_expect_float_eq(merge_us(TP, 39, 8448, 1), LAYERS * (3 + 9), 1e-9);
    /* 132 rows that are not cut */
    cr_expect_float_eq(merge_us(TP, 132, 64, 1), 0, 1e-9);
}

Test(attention, a_segment_holds_while_the_parts_stay, .timeout = 120)
{
    static const struct attention_profile a = {
        .positions = POSITIONS_PARTIAL, .row_tokens = 224, .merge_us = 0.4, .combine_us = 2};
    struct rng r;
    struct bench b;
    int cut = 0;
    rng_init(&r, 5);
    bench_init(&b, &a);
    for (int round = 0; round < 400; round++) {
        struct batch_item item[40];
        int n = (int)rng_range(&r, 1, 40), layout = (int)rng_range(&r, 0, LAYOUTS - 1);
        for (int i = 0; i < n; i++)
            item[i] = (struct batch_item){rng_range(&r, 1, rng_range(&r, 0, 1) ? 2000 : 60000), 1,
                                          (int32_t)rng_range(&r, 0, 1)};
        struct step_cost whole, one;
        cost_step(b.cost, layout, &(struct batch){n, n, item}, &whole);
        int64_t last = whole.attn.n < 300 ? whole.attn.n : 300;
        cut += whole.attn.n < 300;
        for (int64_t step = 0; step < last; step++) {
            cost_step(b.cost, layout, &(struct batch){n, n, item}, &one);
            cr_assert_eq(seg_at(whole.attn, step), one.attn.a_ps, "step %d", (int)step);
            for (int i = 0; i < n; i++)
                item[i].ctx_tokens++;
        }
    }
    cr_expect_gt(cut, 20, "some segments end where a part does");
    bench_release(&b);
}

/* 64 heads, 2 (512 + 64 + 512) a pair of query and token, at 0.45 of 989 TFLOP/s. */
static double absorbed_us(double pairs)
{
    return 1e6 * LAYERS * pairs * 64 * 2 * (512 + 64 + 512) / (989e12 * 0.45);
}

Test(attention, an_absorbed_prompt_is_done_against_the_latent)
{
    static const struct batch_item chunk = {1024, 256, 0};
    struct attention_profile a = {.mla_prefill = MLA_ABSORBED};
    double pairs = 256.0 * 1024 - 256 * 255 / 2;
    cr_expect_float_eq(1e-6 * (double)step_of(&a, TP, &(struct batch){0, 1, &chunk}).attn.a_ps,
                       absorbed_us(pairs), 1e-5);
    a.row_tokens = 100;
    cr_expect_float_eq(1e-6 * (double)step_of(&a, TP, &(struct batch){0, 1, &chunk}).attn.a_ps,
                       absorbed_us(pairs + 256 * 100), 1e-5);
}

Test(attention, a_row_costs_as_much_as_some_more_tokens)
{
    static const struct attention_profile a = {.row_tokens = 1000};
    static const struct batch_item few = {50000, 1, 0}, more = {51000, 1, 0}, two = {52000, 1, 0};
    cr_expect_float_eq((double)step_of(&a, TP, &(struct batch){1, 1, &few}).attn.a_ps,
                       (double)step_of(&plain, TP, &(struct batch){1, 1, &more}).attn.a_ps, 1e5);
    /* on both ranks that have half of the positions */
    cr_expect_float_eq((double)step_of(&a, CP, &(struct batch){1, 1, &few}).attn.a_ps,
                       (double)step_of(&plain, CP, &(struct batch){1, 1, &two}).attn.a_ps, 1e5);
}

/* Every rank projects all rows, meets the others' partial results, and has all hidden rows. */
Test(attention, with_partial_results_a_prompt_is_as_many_decoding_rows)
{
    static const struct attention_profile a = {.positions = POSITIONS_PARTIAL};
    static const struct batch_item chunk = {4096, 128, 0}, long_chunk = {4096, 2048, 0};
    struct batch_item decoding[128];
    struct batch prompt = {0, 1, &chunk}, long_prompt = {0, 1, &long_chunk};
    struct batch rows = {128, 128, decoding};
    struct bench b;
    bench_init(&b, &a);
    for (int i = 0; i < 128; i++)
        decoding[i] = (struct batch_item){4096, 1, 0};
    double hidden = 128.0 * 7168 * 2, partial = 128.0 * 128 * (512 * 2 + 4);
    const struct collective_table *t = &b.profile.collectives;
    double expected = LAYERS * (collective_s(t, COLL_ALL_TO_ALL, 2, partial) +
                                collective_s(t, COLL_ALL_GATHER, 2, hidden) +
                                collective_s(t, COLL_ALL_REDUCE, 2, hidden));
    struct step_cost cost = step_of(&a, CP, &prompt);
    cr_expect_float_eq(ps_to_s(cost.exchange.a_ps - cost.wait_ps), expected, 1e-9);
    for (int layout = CP; layout <= HELIX; layout += HELIX - CP) {
        cr_expect_eq(step_of(&a, layout, &prompt).exchange.a_ps,
                     step_of(&a, layout, &rows).exchange.a_ps);
        cr_expect_eq(step_of(&a, layout, &prompt).proj.a_ps, step_of(&a, layout, &rows).proj.a_ps);
    }
    cr_expect_lt(step_of(&plain, CP, &long_prompt).proj.a_ps,
                 step_of(&a, CP, &long_prompt).proj.a_ps);
    cr_expect_eq(step_of(&plain, TP, &prompt).step.a_ps, step_of(&a, TP, &prompt).step.a_ps);
    bench_release(&b);
}

/* 128 rows of 128 heads, 1,028 bytes: two results read, one written, by two ranks together, at 0.9
 * of 4,800 GB/s. */
Test(attention, combining_takes_its_reads_and_a_fixed_time)
{
    static const struct attention_profile a = {.positions = POSITIONS_PARTIAL, .combine_us = 5};
    struct batch_item item[128];
    for (int i = 0; i < 128; i++)
        item[i] = (struct batch_item){4096, 1, 0};
    double bytes = 128.0 * 128 * 1028 * 3 / 2;
    cr_expect_float_eq(added_us(&a, HELIX, &(struct batch){128, 128, item}),
                       LAYERS * (5 + 1e6 * bytes / (4800e9 * 0.9)), 1e-5);
    cr_expect_float_eq(added_us(&a, DOP, &(struct batch){128, 128, item}), 0, 1e-9);
}

/* 131,072 tokens of 1,152 bytes are 4.8 times half of 60 MiB: 0.7917 of them are read again, half
 * as many of which leave 0.5833; of 8,192 everything stays. */
Test(attention, a_prompt_takes_longer_where_its_context_spills)
{
    const struct attention_profile fits = {.mla_prefill = MLA_ABSORBED};
    const struct attention_profile spills = {.mla_prefill = MLA_ABSORBED, .spill_frac = 0.12};
    static const struct {
        int layout;
        int64_t ctx_tokens;
        double longer;
    } cases[] = {{TP, 131072, 0.095}, {DP, 131072, 0.095}, {CP, 131072, 0.07}, {TP, 8192, 0}};
    for (int i = 0; i < 4; i++) {
        struct batch_item item = {cases[i].ctx_tokens, 1024, 0};
        struct batch batch = {0, 1, &item};
        double base_ps = (double)step_of(&fits, cases[i].layout, &batch).attn.a_ps;
        double longer_ps = (double)step_of(&spills, cases[i].layout, &batch).attn.a_ps - base_ps;
        cr_expect_float_eq(longer_ps / base_ps, cases[i].longer, 1e-6, "%d", i);
    }
}
