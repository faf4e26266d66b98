/* SPDX-License-Identifier: Apache-2.0
 *
 * Step times of Helix with HOP-B (sim/cost): its pipeline, where it wins and loses, what it leaves
 * alone. That segments are exact there too: tests/test_cost.c, tests/test_engine.c.
 */
#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/cost/cost.h"
#include "tests/cost_bench.h"

enum { LLAMA_LAYERS = 126 };

/* 128 heads of 128 BF16 values and an FP32 log-sum-exp. */
static const double llama_partial_bytes = 128 * (128 * 2 + 4);

/* One all-to-all takes so long for so many bytes, and from there on the line through both. */
static void set_all_to_all(struct bench *b, double bytes, double us, double more_bytes,
                           double more_us)
{
    struct collective_table *t = &b->profile.collectives;
    for (int i = 0; i < t->n[COLL_ALL_TO_ALL]; i++) {
        struct collective_curve *c = &t->curve[COLL_ALL_TO_ALL][i];
        cr_assert_geq(c->n, 2);
        c->n = 2;
        c->latency_us = us;
        c->point[0] = (struct collective_point){bytes, us};
        c->point[1] = (struct collective_point){more_bytes, more_us};
    }
    cost_set_profile(b->cost, &b->profile);
}

/* [H] section 2.1.3: eight requests of 2.0 compute and 1.2 exchange each take 25.6 in lockstep and
 * 17.2 pipelined; of 2.0 and 3.0, 40 and 2 + 8 x 3; as two sub-batches of four, 8 + 4.8 + 8. What a
 * sub-batch takes is rounded to half a picosecond a token. */
Test(hop_b, is_the_pipeline_of_the_paper)
{
    static const struct {
        int layout;
        double exchange, takes;
    } worked[] = {{1, 1.2, 25.6}, {2, 1.2, 17.2}, {3, 1.2, 20.8}, {1, 3, 40}, {2, 3, 26}};
    struct bench b;
    bench_init(&b, "llama-3.1-405b", "h200x8",
               "tp,helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=8,helix:kvp=8,tpa=1,hopb=2");
    double unit_ps = (double)step_of(&b, 1, 8, 65536, 1).attn.a_ps / 16;
    for (size_t i = 0; i < sizeof worked / sizeof *worked; i++) {
        double us = worked[i].exchange * unit_ps / LLAMA_LAYERS / PS_PER_US;
        set_all_to_all(&b, llama_partial_bytes, us, 8 * llama_partial_bytes, 8 * us);
        struct step_cost tp = step_of(&b, 0, 8, 65536, 1);
        struct step_cost helix = step_of(&b, worked[i].layout, 8, 65536, 1);
        double takes = (double)(helix.attn.a_ps + helix.exchange.a_ps - tp.exchange.a_ps);
        cr_expect_float_eq(takes / unit_ps, worked[i].takes, 4e-3);
        cr_expect_float_eq((double)helix.attn.a_ps / unit_ps, 16, 1e-4);
    }
    bench_release(&b);
}

/* 20 us a layer however small, beside 5 us of launch and next to no attention: four sub-batches
 * take 4 exchanges and one attention, c = A / 4 + 5 us, instead of one and one of A + 5 us. */
Test(hop_b, loses_where_latency_rules)
{
    struct bench b;
    bench_load(&b, "llama-3.1-405b", "h200x8");
    b.profile.stage[STAGE_ATTN_DECODE].launch_us = 5;
    bench_compile(&b, "helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=4");
    set_all_to_all(&b, 1, 20, 1e6, 20.0001);
    struct step_cost plain = step_of(&b, 0, 4, 512, 1), cut = step_of(&b, 1, 4, 512, 1);
    const double layer_us = (double)LLAMA_LAYERS * PS_PER_US;
    double attn = (double)plain.attn.a_ps / layer_us - 5;
    cr_assert_lt(attn, 5);
    cr_expect_float_eq((double)(cut.attn.a_ps - plain.attn.a_ps) / layer_us, 3 * 5, 1e-6);
    cr_expect_float_eq((double)(cut.exchange.a_ps - plain.exchange.a_ps) / layer_us,
                       3 * 20 - 3 * (attn / 4 + 5), 1e-3);
    cr_expect_gt(cut.step.a_ps, plain.step.a_ps);
    /* Three requests are three sub-batches. */
    int64_t three = step_of(&b, 1, 3, 512, 1).attn.a_ps - step_of(&b, 0, 3, 512, 1).attn.a_ps;
    cr_expect_eq(three, 2 * 5 * LLAMA_LAYERS * PS_PER_US);
    bench_release(&b);
}

/* An exchange as long as a sub-batch's attention at 4146 tokens shows less and less up to there. */
Test(hop_b, is_exact_where_attention_overtakes_exchange)
{
    struct bench b;
    bench_init(&b, "llama-3.1-405b", "h200x8", "helix:kvp=8,tpa=1,hopb=8");
    double us = (double)step_of(&b, 0, 8, 4146, 1).attn.a_ps / 8 / LLAMA_LAYERS / PS_PER_US;
    set_all_to_all(&b, 1, us, 1e6, us * 1.000001);
    struct step_cost from = step_of(&b, 0, 8, 4096, 1), last = step_of(&b, 0, 8, 4196, 1);
    cr_expect_lt(from.exchange.b_ps, 0);
    cr_expect_leq(from.exchange.n, 52);
    cr_expect_geq(from.exchange.n, 48);
    cr_expect_eq(last.exchange.b_ps, 0);
    for (int64_t ctx = 4096; ctx < 4196; ctx++) {
        struct step_cost whole = step_of(&b, 0, 8, ctx, 1);
        for (int64_t i = 0; i < 60 && i < whole.step.n; i++) {
            struct step_cost one = step_of(&b, 0, 8, ctx + i, 1);
            cr_assert_eq(seg_at(whole.attn, i), one.attn.a_ps);
            cr_assert_eq(seg_at(whole.exchange, i), one.exchange.a_ps);
            cr_assert_eq(seg_at(whole.step, i), one.step.a_ps);
        }
    }
    bench_release(&b);
}

static void expect_alike(const struct step_cost *a, const struct step_cost *c)
{
    cr_expect_eq(a->attn.a_ps, c->attn.a_ps);
    cr_expect_eq(a->exchange.a_ps, c->exchange.a_ps);
    cr_expect_eq(a->step.a_ps, c->step.a_ps);
}

Test(hop_b, leaves_one_row_and_chunks_alone)
{
    static const struct batch_item item[] = {{4096, 1, 0}, {5000, 1, 1}, {8192, 512, 2}};
    static const struct batch batch[] = {{1, 1, item}, {2, 3, item}, {0, 1, item + 2}};
    struct bench b;
    bench_load(&b, "deepseek-r1", "h200x8");
    b.profile.stage[STAGE_ATTN_DECODE].launch_us = 5;
    b.profile.stage[STAGE_ATTN_PREFILL].launch_us = 7;
    b.profile.overlap_frac = 0.3;
    bench_compile(&b, "helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=4");
    for (int i = 0; i < 3; i++) {
        struct step_cost plain, cut;
        cost_step(b.cost, 0, &batch[i], &plain);
        cost_step(b.cost, 1, &batch[i], &cut);
        expect_alike(&plain, &cut);
    }
    bench_release(&b);
}

Test(hop_b, and_eta_do_not_combine)
{
    struct bench none, all;
    const char *layouts = "helix:kvp=8,tpa=1,hopb=4";
    bench_init(&none, "deepseek-r1", "h200x8", layouts);
    bench_load(&all, "deepseek-r1", "h200x8");
    all.profile.overlap_frac = 1;
    bench_compile(&all, layouts);
    struct step_cost a = step_of(&none, 0, 16, 65536, 1), c = step_of(&all, 0, 16, 65536, 1);
    expect_alike(&a, &c);
    bench_release(&none);
    bench_release(&all);
}

/* Recurrent state is read in other layers than those whose exchange is pipelined. */
Test(hop_b, hides_behind_no_linear_layer)
{
    struct bench small, large;
    const char *layouts = "helix:kvp=8,tpa=1,hopb=4";
    bench_init(&small, "glm-5.3-flash", "b200x8", layouts);
    bench_load(&large, "glm-5.3-flash", "b200x8");
    large.model.linear.state_bytes_per_layer *= 100;
    bench_compile(&large, layouts);
    struct step_cost a = step_of(&small, 0, 16, 512, 1), c = step_of(&large, 0, 16, 512, 1);
    cr_expect_gt(c.attn.a_ps, 10 * a.attn.a_ps);
    cr_expect_eq(c.exchange.a_ps, a.exchange.a_ps);
    bench_release(&small);
    bench_release(&large);
}
