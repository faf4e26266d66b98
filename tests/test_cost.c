/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/cost/cost.h"
#include "tests/cost_bench.h"

enum { TP, CP, DP, DOP };

static void expect_same(struct seg at_once, struct seg alone, int64_t i, const char *what)
{
    cr_assert_eq(seg_at(at_once, i), alone.a_ps, "%s at step %d", what, (int)i);
}

static const struct {
    const char *model, *cluster, *layouts;
} worlds[] = {
    {"deepseek-v3.2", "b200x8",
     "tp,cp,dp,dop,dop:cache=0.3,cp:storage=layer,helix:kvp=8,tpa=1,"
     "helix:kvp=8,tpa=1,hopb=8"},
    {"glm-5.3-flash", "bw1000x8", "tp,cp,dp,dop"},
    {"llama-3.1-405b", "h200x8",
     "tp,cp,dp,dop:rows=owned,helix:kvp=2,tpa=4,"
     "helix:kvp=2,tpa=4,hopb=2,helix:kvp=8,tpa=1,hopb=5"},
    {"deepseek-r1", "h200x2", "tp,cp,dp,dop"},
};

/* Microseconds of one layer's stage, whatever its sizes. */
static void set_launches(struct bench *b)
{
    b->profile.stage[STAGE_PROJ].launch_us = 3;
    b->profile.stage[STAGE_ATTN_DECODE].launch_us = 5;
    b->profile.stage[STAGE_ATTN_PREFILL].launch_us = 7;
    b->profile.stage[STAGE_FFN].launch_us = 11;
    b->profile.stage[STAGE_HEAD].launch_us = 13;
}

/* The law that lets the engine jump. */
Test(cost, a_segment_is_what_every_single_step_costs, .timeout = 120)
{
    struct rng r;
    rng_init(&r, 11);
    for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++) {
        struct bench b;
        bench_load(&b, worlds[k].model, worlds[k].cluster);
        b.profile.overlap_frac = k % 2 ? 0.4 : 0;
        if (k >= 2)
            set_launches(&b);
        bench_compile(&b, worlds[k].layouts);
        for (int round = 0; round < 150; round++) {
            struct batch_item item[40];
            int n = (int)rng_range(&r, 1, 40), layout = (int)rng_range(&r, 0, b.n_layouts - 1);
            for (int i = 0; i < n; i++)
                item[i] = (struct batch_item){rng_range(&r, 1, rng_range(&r, 0, 1) ? 4000 : 200000),
                                              1, (int32_t)rng_range(&r, 0, b.cluster.ranks - 1)};
            struct batch batch = {n, n, item};
            struct step_cost whole, one;
            cost_step(b.cost, layout, &batch, &whole);
            int64_t last = whole.step.n < 300 ? whole.step.n : 300;
            for (int64_t step = 0; step < last; step++) {
                cost_step(b.cost, layout, &batch, &one);
                expect_same(whole.proj, one.proj, step, "proj");
                expect_same(whole.attn, one.attn, step, "attn");
                expect_same(whole.exchange, one.exchange, step, "exchange");
                expect_same(whole.ffn, one.ffn, step, "ffn");
                expect_same(whole.step, one.step, step, "step");
                for (int i = 0; i < n; i++)
                    item[i].ctx_tokens++;
            }
        }
        bench_release(&b);
    }
}

Test(cost, stages_and_what_happens_once_make_the_step)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    for (int l = 0; l < 4; l++) {
        struct step_cost c = step_of(&b, l, 16, 65536, 1);
        int64_t once = c.step.a_ps - c.proj.a_ps - c.attn.a_ps - c.exchange.a_ps - c.ffn.a_ps;
        /* 61 layers x 7 us + 300 us of launches, and an LM head of 129280/8 x 7168 BF16 at 83% of
         * 7.7 TB/s: 36 us. */
        cr_expect_gt(once, 757 * PS_PER_US);
        cr_expect_lt(once, 770 * PS_PER_US);
    }
    bench_release(&b);
}

static struct efficiency flat(double frac)
{
    struct efficiency e = {.n = 1, .size = {1}, .frac = {frac}};
    efficiency_init(&e);
    return e;
}

/* Table 2: 16 requests on 8 ranks; tp attends all of them with 1/8 of the heads, an owner two of
 * them with all heads; cp splits each. */
Test(cost, decode_attention_follows_table_2)
{
    struct bench b;
    bench_load(&b, "deepseek-r1", "b200x8");
    b.profile.stage[STAGE_ATTN_DECODE].flop_frac = flat(0.5);
    b.profile.stage[STAGE_ATTN_DECODE].hbm_frac = flat(0.8);
    bench_compile(&b, "tp,cp,dp,dop");
    struct step_cost tp = step_of(&b, TP, 16, 100000, 1), cp = step_of(&b, CP, 16, 100000, 1);
    struct step_cost dp = step_of(&b, DP, 16, 100000, 1), dop = step_of(&b, DOP, 16, 100000, 1);
    /* tp is bound by reads: 16 histories of 656 B x 61 layers x 100000 at 0.8 x 7.7 TB/s. */
    double read_s = 16 * 656.0 * 61 * 100000 / (0.8 * 7.7e12);
    cr_expect_float_eq(ps_to_s(tp.attn.a_ps), read_s, 1e-4 * read_s);
    /* an owner by FLOP: 2 histories x 128 heads x 2 x (576 + 512) at half of 2250 TFLOP/s. */
    double flop_s = 2 * 100000.0 * 61 * 128 * 2 * (576 + 512) / (0.5 * 2250e12);
    cr_expect_float_eq(ps_to_s(dp.attn.a_ps), flop_s, 1e-4 * flop_s);
    cr_expect_eq(dop.attn.a_ps, dp.attn.a_ps);
    cr_expect_float_eq(ps_to_s(cp.attn.a_ps), flop_s, 1e-3 * flop_s);
    bench_release(&b);
}

Test(cost, an_owner_layout_waits_for_its_busiest_owner)
{
    struct bench b;
    bench_init(&b, "deepseek-r1", "b200x8", "tp,cp,dp,dop");
    int64_t before = step_of(&b, DP, 8, 50000, 1).attn.a_ps;
    cr_expect_eq(step_of(&b, DP, 9, 50000, 1).attn.a_ps, 2 * before);
    cr_expect_eq(step_of(&b, DP, 16, 50000, 1).attn.a_ps, 2 * before);
    bench_release(&b);
}

static double exchanged_s(const struct step_cost *c)
{
    return ps_to_s(c->exchange.a_ps - c->wait_ps);
}

/* 9 rows, 2 of them with one of 8 owners: as if all had 2. */
Test(cost, an_owner_layout_exchanges_for_its_busiest_owner)
{
    struct bench b;
    bench_init(&b, "deepseek-r1", "b200x8", "tp,cp,dp,dop");
    const struct collective_table *t = &b.profile.collectives;
    double hidden = 8 * 2 * 7168.0 * 2;
    double expected = 61 * (collective_s(t, COLL_ALL_GATHER, 8, hidden) +
                            collective_s(t, COLL_REDUCE_SCATTER, 8, hidden));
    struct step_cost nine = step_of(&b, DP, 9, 50000, 1), sixteen = step_of(&b, DP, 16, 50000, 1);
    cr_expect_float_eq(exchanged_s(&nine), expected, 1e-9);
    cr_expect_float_eq(exchanged_s(&sixteen), expected, 1e-9);
    bench_release(&b);
}

Test(cost, sparse_attention_stops_growing_but_its_indexer_does_not)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    struct seg below = step_of(&b, DP, 8, 1000, 1).attn, above = step_of(&b, DP, 8, 100000, 1).attn;
    cr_expect_gt(below.b_ps, above.b_ps);
    cr_expect_gt(above.b_ps, 0);
    cr_expect_eq(step_of(&b, DP, 8, 1900, 1).attn.n, 2048 - 1900);
    bench_release(&b);
}

Test(cost, experts_touched_saturate)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    int64_t one = step_of(&b, TP, 1, 100, 1).ffn.a_ps, many = step_of(&b, TP, 256, 100, 1).ffn.a_ps;
    cr_expect_gt(many, 8 * one, "a row touches 8 of 256 experts, 256 rows nearly all");
    cr_expect_lt(many, 32 * one);
    bench_release(&b);
}

Test(cost, nothing_gets_slower_on_a_faster_machine)
{
    static const int32_t q[] = {1, 512};
    for (int l = 0; l < 4; l++)
        for (int k = 0; k < 2; k++) {
            struct bench slow, fast;
            bench_init(&slow, "glm-5.3", "h200x8", "tp,cp,dp,dop");
            bench_load(&fast, "glm-5.3", "h200x8");
            fast.cluster.device.hbm_gb_per_s *= 2;
            for (int f = 0; f < FMT_COUNT; f++)
                fast.cluster.device.tflops[f] *= 2;
            bench_compile(&fast, "tp,cp,dp,dop");
            struct step_cost a = step_of(&slow, l, 16, 30000, q[k]);
            struct step_cost c = step_of(&fast, l, 16, 30000, q[k]);
            cr_expect_lt(c.proj.a_ps, a.proj.a_ps);
            cr_expect_lt(c.attn.a_ps, a.attn.a_ps);
            cr_expect_lt(c.ffn.a_ps, a.ffn.a_ps);
            cr_expect_eq(exchanged_s(&c), exchanged_s(&a));
            bench_release(&slow);
            bench_release(&fast);
        }
}

Test(cost, overlap_hides_only_link_time)
{
    struct bench none, all;
    bench_init(&none, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    bench_load(&all, "deepseek-v3.2", "b200x8");
    all.profile.overlap_frac = 1;
    bench_compile(&all, "tp,cp,dp,dop");
    for (int l = 0; l < 4; l++) {
        struct step_cost a = step_of(&none, l, 16, 65536, 512);
        struct step_cost c = step_of(&all, l, 16, 65536, 512);
        int64_t hidden = a.exchange.a_ps - c.exchange.a_ps;
        cr_expect_gt(hidden, 0);
        cr_expect_leq(hidden, c.attn.a_ps + 1);
        cr_expect_gt(c.exchange.a_ps, 0, "latency stays");
    }
    bench_release(&none);
    bench_release(&all);
}

/* 32 decode rows on 8 ranks: gathered for the projections, combined as 128 x (512 BF16 + FP32 LSE),
 * gathered and scattered around the FFN. */
Test(cost, cp_decode_exchange_by_hand)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp");
    const struct collective_table *t = &b.profile.collectives;
    double hidden = 32.0 * 7168 * 2, partial = 32.0 * 128 * (512 * 2 + 4);
    double expected = 61 * (2 * collective_s(t, COLL_ALL_GATHER, 8, hidden) +
                            collective_s(t, COLL_ALL_TO_ALL, 8, partial) +
                            collective_s(t, COLL_REDUCE_SCATTER, 8, hidden));
    struct step_cost c = step_of(&b, 1, 32, 4096, 1);
    cr_expect_float_eq(exchanged_s(&c), expected, 1e-9);
    bench_release(&b);
}

Test(cost, dop_exchange_is_equation_4)
{
    struct bench b;
    bench_load(&b, "deepseek-v3.2", "b200x8");
    bench_compile(&b, "tp,dop");
    const struct collective_table *t = &b.profile.collectives;
    int64_t more =
        step_of(&b, 1, 64, 4096, 128).exchange.a_ps - step_of(&b, 0, 64, 4096, 128).exchange.a_ps;
    /* 8192 rows, 1024 an owner, of 128 heads: 576 wide there and 512 wide back, in BF16. */
    double there = 1024.0 * 128 * 576 * 2, back = 1024.0 * 128 * 512 * 2;
    double expected = 61 * (collective_s(t, COLL_ALL_TO_ALL, 8, there) +
                            collective_s(t, COLL_ALL_TO_ALL, 8, back));
    cr_expect_float_eq(ps_to_s(more), expected, 1e-9);
    bench_release(&b);
}

Test(cost, capacity_leaves_room_for_the_layer_in_transit)
{
    struct bench one;
    bench_init(&one, "glm-5.3", "b200x8", "dop");
    struct bench all;
    bench_init(&all, "glm-5.3", "b200x8", "dop,tp,cp,dp");
    cr_expect_lt(cost_capacity(all.cost, 0)->pages, cost_capacity(one.cost, 0)->pages);
    cr_expect_gt(cost_capacity(all.cost, 0)->reserve_bytes,
                 cost_capacity(one.cost, 0)->reserve_bytes);
    bench_release(&one);
    bench_release(&all);
}

/* Helix: the positions of a history lie on kvp ranks, so only these exchange partial outputs:
 * 8 rows x 128 / 4 heads of 128 BF16 values and an FP32 log-sum-exp. All else is tp's. */
Test(cost, partial_outputs_cross_the_ranks_that_share_a_history)
{
    struct bench b;
    bench_init(&b, "llama-3.1-405b", "h200x8", "tp,helix:kvp=2,tpa=4");
    int64_t more =
        step_of(&b, 1, 8, 65536, 1).exchange.a_ps - step_of(&b, 0, 8, 65536, 1).exchange.a_ps;
    double bytes = 8 * 32 * (128 * 2 + 4);
    double expected = 126 * collective_s(&b.profile.collectives, COLL_ALL_TO_ALL, 2, bytes);
    cr_expect_float_eq(ps_to_s(more), expected, 1e-9);
    bench_release(&b);
}

Test(cost, nothing_gets_faster_with_more_context_or_rows)
{
    static const char *const models[] = {"deepseek-v3.2", "deepseek-r1"};
    for (int k = 0; k < 2; k++) {
        struct bench b;
        bench_init(&b, models[k], "b200x8", "tp,cp,dp,dop");
        for (int l = 0; l < 4; l++) {
            int64_t last = 0;
            for (int64_t ctx = 100; ctx < 150000; ctx += 977) {
                int64_t now = step_of(&b, l, 16, ctx, 1).step.a_ps;
                /* The rounded slopes of 16 histories may lose half a picosecond a token. */
                cr_expect_gt(now, last - 16 * ctx, "layout %d at %d tokens", l, (int)ctx);
                last = now;
            }
            cr_expect_gt(step_of(&b, l, 16, 150000, 1).step.a_ps,
                         step_of(&b, l, 16, 100, 1).step.a_ps);
            cr_expect_gt(step_of(&b, l, 64, 4096, 1).step.a_ps,
                         step_of(&b, l, 16, 4096, 1).step.a_ps);
            cr_expect_gt(step_of(&b, l, 8, 4096, 512).step.a_ps,
                         step_of(&b, l, 8, 4096, 64).step.a_ps);
        }
        bench_release(&b);
    }
}

/* One short request: an owner reads whole projections where a tp rank reads an eighth of them. */
Test(cost, sharded_projections_win_for_one_short_request)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    cr_expect_lt(step_of(&b, TP, 1, 1024, 1).step.a_ps, step_of(&b, DP, 1, 1024, 1).step.a_ps);
    cr_expect_lt(3 * step_of(&b, TP, 1, 1024, 1).proj.a_ps, step_of(&b, DP, 1, 1024, 1).proj.a_ps);
    bench_release(&b);
}

/* What a batch costs does not depend on what was asked before; a chunk's step holds once. */
Test(cost, mixed_batches_add_up_and_are_remembered_rightly)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,cp,dp,dop");
    struct batch_item item[] = {{70000, 1, 0}, {4000, 1, 1}, {8192, 2048, 1}};
    const struct batch mixed = {2, 3, item}, decode = {2, 2, item}, chunk = {0, 1, item + 2};
    for (int l = 0; l < 4; l++) {
        struct step_cost first, again, d, p;
        cost_step(b.cost, l, &mixed, &first);
        cost_step(b.cost, l, &decode, &d);
        cost_step(b.cost, l, &chunk, &p);
        for (int n = 1; n < 200; n++)
            step_of(&b, l, n, 3000, 1);
        cost_step(b.cost, l, &mixed, &again);
        cr_expect_eq(again.step.a_ps, first.step.a_ps);
        cr_expect_eq(first.step.n, 1);
        cr_expect_eq(first.rows, 2050);
        cr_expect_leq(first.attn.a_ps, d.attn.a_ps + p.attn.a_ps);
        cr_expect_geq(first.attn.a_ps, d.attn.a_ps > p.attn.a_ps ? d.attn.a_ps : p.attn.a_ps);
    }
    bench_release(&b);
}

/* Seconds of FFN where so many experts are read on the busiest rank at half of HBM's bandwidth: 58
 * MoE layers of 3 x 7168 x 2048 FP8 parameters an expert, the shared one cut T ways, an FP32
 * router; and 3 dense layers. */
static double ffn_read_s(const struct bench *b, double experts)
{
    double ranks = b->cluster.ranks, per_param = b->model.ffn_weights.bytes_per_param;
    double moe = 3.0 * 7168 * 2048 * (experts + 1 / ranks) * per_param + 7168 * 256 * 4;
    double dense = 3.0 * 7168 * 18432 / ranks * per_param;
    return (58 * moe + 3 * dense) / (0.5 * 7.7e12);
}

static void open_experts(struct bench *b, int ranks)
{
    bench_load(b, "deepseek-v3.2", "b200x8");
    b->cluster.ranks = ranks;
    b->profile.expert_imbalance = 1;
    b->profile.stage[STAGE_FFN].hbm_frac = flat(0.5);
    bench_compile(b, "tp");
}

/* One row chooses 8 of 256 experts. Of 4 ranks each has 2 of them in the mean, with a variance of
 * 8 x 1/4 x 3/4 x 248/255, and the largest of 4 lies 1.0294 / sqrt(3/4) deviations above: 3.4357.
 * Of 128 ranks some have one. */
Test(cost, the_busiest_rank_reads_more_than_the_mean)
{
    static const int ranks[] = {4, 128};
    static const double experts[] = {3.4357, 1};
    for (int k = 0; k < 2; k++) {
        struct bench b;
        open_experts(&b, ranks[k]);
        double expected = ffn_read_s(&b, experts[k]);
        struct step_cost c = step_of(&b, 0, 1, 100, 1);
        cr_expect_float_eq(ps_to_s(c.ffn.a_ps + c.wait_ps), expected, 1e-5 * expected, "%d ranks",
                           ranks[k]);
        cr_expect_eq(c.wait_ps > 0, ranks[k] == 4);
        bench_release(&b);
    }
}

/* How many of 256 experts the busiest rank reads when `rows` rows choose 8 each. */
static int draw_busiest(struct rng *rng, int ranks, int rows)
{
    bool chosen[256] = {false};
    int most = 0;
    for (int row = 0; row < rows; row++) {
        bool of_row[256] = {false};
        for (int n = 0; n < 8;) {
            int e = (int)rng_range(rng, 0, 255);
            n += !of_row[e];
            of_row[e] = chosen[e] = true;
        }
    }
    for (int r = 0; r < ranks; r++) {
        int n = 0;
        for (int e = 256 / ranks * r; e < 256 / ranks * (r + 1); e++)
            n += chosen[e];
        most = n > most ? n : most;
    }
    return most;
}

Test(cost, the_busiest_rank_is_the_one_of_routing_at_random)
{
    static const struct {
        int ranks, rows;
    } cases[] = {{2, 1}, {2, 16}, {4, 4}, {8, 16}, {8, 64}};
    enum { DRAWS = 4000 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        struct rng rng;
        double sum = 0;
        rng_stream(&rng, 7, "experts");
        for (int n = 0; n < DRAWS; n++)
            sum += draw_busiest(&rng, cases[i].ranks, cases[i].rows);
        open_experts(&b, cases[i].ranks);
        double drawn_s = ffn_read_s(&b, sum / DRAWS);
        struct step_cost c = step_of(&b, 0, cases[i].rows, 100, 1);
        cr_expect_float_eq(ps_to_s(c.ffn.a_ps + c.wait_ps), drawn_s, 0.02 * drawn_s,
                           "%d ranks, %d rows", cases[i].ranks, cases[i].rows);
        bench_release(&b);
    }
}

/* What fixed times add to each stage, in microseconds. */
static void expect_added(const struct bench *with, const struct bench *without,
                         const struct batch *batch, int attn_us)
{
    const int layers = with->model.layers;
    for (int l = 0; l < 4; l++) {
        struct step_cost a, b;
        cost_step(with->cost, l, batch, &a);
        cost_step(without->cost, l, batch, &b);
        cr_expect_eq(a.proj.a_ps - b.proj.a_ps, layers * 3 * PS_PER_US);
        cr_expect_eq(a.attn.a_ps - b.attn.a_ps, attn_us * PS_PER_US);
        cr_expect_eq(a.ffn.a_ps - b.ffn.a_ps, layers * 11 * PS_PER_US);
        cr_expect_eq(a.exchange.a_ps, b.exchange.a_ps);
        cr_expect_eq(a.step.a_ps - b.step.a_ps, (layers * 14 + attn_us) * PS_PER_US,
                     "the head's is not used");
    }
}

/* Layers that hold KV once, whoever owns the requests: 61 of DeepSeek-V3.2's 61, 11 of
 * GLM-5.3-Flash's. Both kinds of rows in one kernel: the larger. */
Test(cost, fixed_times_of_a_stage_are_added_once_a_layer)
{
    static const struct batch_item item[] = {{70000, 1, 0}, {4000, 1, 1}, {8192, 2048, 1}};
    static const struct {
        const char *model;
        int kv_layers;
    } models[] = {{"deepseek-v3.2", 61}, {"glm-5.3-flash", 11}};
    for (int i = 0; i < 2; i++) {
        struct bench with, without;
        bench_load(&with, models[i].model, "b200x8");
        set_launches(&with);
        bench_compile(&with, "tp,cp,dp,dop");
        bench_init(&without, models[i].model, "b200x8", "tp,cp,dp,dop");
        int layers = models[i].kv_layers;
        expect_added(&with, &without, &(struct batch){2, 2, item}, layers * 5);
        expect_added(&with, &without, &(struct batch){0, 1, item + 2}, layers * 7);
        expect_added(&with, &without, &(struct batch){2, 3, item}, layers * 7);
        bench_release(&with);
        bench_release(&without);
    }
}

/* Half of the fixed time, like half of all attention time, may hide exchange: 1,000 us in each of
 * 61 layers hide all but the latencies, of tp's two all-reduces. */
Test(cost, fixed_attention_time_hides_exchange_too)
{
    struct bench b;
    bench_load(&b, "deepseek-v3.2", "b200x8");
    b.profile.overlap_frac = 0.5;
    b.profile.stage[STAGE_ATTN_DECODE].launch_us = 2000;
    bench_compile(&b, "tp");
    double latency = 61 * 2 * collective_latency_s(&b.profile.collectives, COLL_ALL_REDUCE, 8);
    cr_expect_float_eq(ps_to_s(step_of(&b, TP, 256, 4096, 1).exchange.a_ps), latency, 1e-12);
    bench_release(&b);
}

/* A cost model taken to another profile is the one made with it. */
Test(cost, another_profile_forgets_the_one_before)
{
    struct bench with, without;
    bench_init(&without, "deepseek-r1", "b200x8", "tp,cp,dp,dop");
    bench_load(&with, "deepseek-r1", "b200x8");
    set_launches(&with);
    with.profile.stage[STAGE_PROJ].hbm_frac = flat(0.4);
    with.profile.stage[STAGE_ATTN_DECODE].hbm_frac = flat(0.4);
    bench_compile(&with, "tp,cp,dp,dop");
    for (int l = 0; l < 4; l++) {
        int64_t before = step_of(&without, l, 16, 30000, 1).step.a_ps;
        int64_t other = step_of(&with, l, 16, 30000, 1).step.a_ps;
        cost_set_profile(without.cost, &with.profile);
        cr_expect_eq(step_of(&without, l, 16, 30000, 1).step.a_ps, other);
        cost_set_profile(without.cost, &without.profile);
        cr_expect_eq(step_of(&without, l, 16, 30000, 1).step.a_ps, before);
        cr_expect_neq(before, other);
    }
    bench_release(&with);
    bench_release(&without);
}
