/* SPDX-License-Identifier: Apache-2.0
 *
 * One decode step against the Helix paper's numbers (Appendix A, Fig. 1) and numbers worked by
 * hand, at peaks (no profile) unless said.
 */
#include "sim/pareto/decode.h"

#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/pareto/experts.h"

#define NEAR(a, b, tol)                                                                            \
    cr_expect_lt(fabs((a) - (b)), tol, "%s = %.9g, not %.9g", #a, a, (double)(b))

enum { MILLION = 1000000 };

struct fixture {
    struct model model;
    struct cluster cluster;
    struct decode_machine machine;
};

static void load(struct fixture *f, const char *model)
{
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&f->model, model, &err), 0, "%s", err.text);
    cr_assert_eq(cluster_load(&f->cluster, "gb200-nvl72", &err), 0, "%s", err.text);
    decode_set_format(&f->model, FMT_FP4);
    f->machine = (struct decode_machine){
        .model = &f->model, .cluster = &f->cluster, .arithmetic = FMT_FP4, .link_gb_per_s = 900};
}

/* The paper's roofline: Q = 128, K = 8, Hsz = 128 as Llama-405B has, F = 65536. */
static void load_roofline(struct fixture *f)
{
    load(f, "llama-3.1-405b");
    f->model.dense_inter = 65536;
}

static struct decode_plan planned(const struct fixture *f, const char *text, int64_t context)
{
    struct err err = ERR_NONE;
    struct mapping map;
    struct decode_plan p;
    cr_assert_eq(mapping_parse(&map, text, &f->model, &err), 0, "%s", err.text);
    decode_plan_init(&p, &f->machine, &map, context);
    return p;
}

static double hbm_ms(double bytes)
{
    return bytes / 8000e9 * 1e3;
}

/* B = 8. Beyond K = 8 a KV head is on more than one GPU, and each reads it. */
Test(decode, kv_read_falls_until_tp_is_k)
{
    static const struct {
        const char *text;
        double ms;
    } rows[] = {
        {"tp", 1.024},
        {"tp:tpa=2,tpf=2", 0.512},
        {"tp:tpa=8,tpf=8", 0.128},
        {"tp:tpa=16,tpf=16", 0.128},
        {"tp:tpa=64,tpf=64", 0.128},
        {"helix:kvp=2,tpa=8,tpf=16", 0.064},
        {"helix:kvp=4,tpa=8,tpf=32", 0.032},
        {"helix:kvp=8,tpa=8,tpf=64", 0.016},
    };
    struct fixture f;
    load_roofline(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        NEAR(hbm_ms(8 * planned(&f, rows[i].text, MILLION).bytes.kv), rows[i].ms, 1e-9);
}

/* W_Q, W_O, W_K, W_V and three FFN matrices in FP4: 2 x 16384^2 + 2 x 16384 x 1024 + 3 x 16384 x
 * 65536 parameters, K and V never cut more than 8 ways. */
Test(decode, weight_read_is_appendix_as)
{
    static const struct {
        const char *text;
        double ms;
    } rows[] = {{"tp", 0.2370}, {"tp:tpa=8,tpf=8", 0.0296}, {"tp:tpa=64,tpf=64", 0.0039}};
    struct fixture f;
    load_roofline(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct decode_bytes b = planned(&f, rows[i].text, MILLION).bytes;
        NEAR(hbm_ms(b.proj_in + b.proj_out + b.dense_ffn), rows[i].ms, 0.00005);
    }
    struct decode_bytes b = planned(&f, "tp:tpa=64,tpf=64", MILLION).bytes;
    NEAR(b.proj_in + b.proj_out + b.dense_ffn, 31457280.0, 0.5); /* 62,914,560 / 2 */
}

Test(decode, fp4_kv_of_a_token)
{
    struct fixture f;
    load(&f, "deepseek-r1");
    NEAR(model_kv_bytes_per_token(&f.model), 17568, 1e-9);
    load(&f, "llama-3.1-405b");
    NEAR(model_kv_bytes_per_token(&f.model), 129024, 1e-9);
}

/* MLA's latent has no heads: it is read once, 576 x 0.5 bytes a token, whatever TP is. */
Test(decode, mla_reads_its_latent_once_on_every_gpu_that_has_it)
{
    struct fixture f;
    load(&f, "deepseek-r1");
    NEAR(planned(&f, "tp", MILLION).bytes.kv, 288e6, 1e-3);
    NEAR(planned(&f, "tp:tpa=64,tpf=64", MILLION).bytes.kv, 288e6, 1e-3);
    NEAR(planned(&f, "helix:kvp=64,tpf=64", MILLION).bytes.kv, 4.5e6, 1e-3);
}

/* 671e9 and 405e9 parameters, half a byte each; published counts, without R1's MTP layer. */
Test(decode, fp4_weights_of_one_gpu_are_the_models)
{
    struct fixture f;
    load(&f, "deepseek-r1");
    NEAR(planned(&f, "tp", 1).weights_bytes / 335.5e9, 1, 0.01);
    load(&f, "llama-3.1-405b");
    NEAR(planned(&f, "tp", 1).weights_bytes / 202.9e9, 1, 0.01);
}

/* TP 8 of the roofline's model, B = 8. All-reduce of 8 x 16384 BF16 rows, 2 x 7/8 of 262,144 B at
 * 900 GB/s: 0.50972 us. O takes 16384^2 / 8 x 0.5 / 8e12 = 2.0972 us and the FFN's last product
 * 8.3886 us, so that of 8 parts only the last is seen after each: 0.063716 us, 2 x 126 times. */
Test(decode, an_all_reduce_shows_its_last_part_beside_a_product)
{
    struct fixture f;
    struct decode_step t;
    load_roofline(&f);
    struct decode_plan p = planned(&f, "tp:tpa=8,tpf=8", MILLION);
    decode_step(&p, 8, 1, &t);
    NEAR(t.reduce_s * 1e6, 126 * 2 * 0.0637156, 1e-3);
    NEAR(t.attn_s * 1e3, 126 * 0.128, 1e-9);
    NEAR(t.exchange_s, 0, 1e-18);
    NEAR(t.ttl_s, t.proj_s + t.attn_s + t.ffn_s + t.reduce_s + t.once_s, 1e-15);
}

/* KVP 8 x TPA 8, B = 8: rows of 16 heads x (128 BF16 + 4 bytes) = 4160 B, of which 7/8 cross at
 * 900 GB/s: 8 rows in 0.032356 us, one in 0.0040444. Attention is 0.016 ms: in lockstep all of
 * the exchange is seen, in 8 sub-batches the last one's. */
Test(decode, hopb_shows_the_last_sub_batchs_exchange)
{
    struct fixture f;
    struct decode_step t;
    load_roofline(&f);
    struct decode_plan p = planned(&f, "helix:kvp=8,tpa=8,tpf=64", MILLION);
    decode_step(&p, 8, 1, &t);
    NEAR(t.exchange_s * 1e6, 126 * 0.0323556, 1e-4);
    decode_step(&p, 8, 8, &t);
    NEAR(t.exchange_s * 1e6, 126 * 0.00404444, 1e-4);
    NEAR(t.attn_s * 1e3, 126 * 0.016, 1e-9);
}

/* Medha, KVP 2 x TP 8, B = 8: the group gets the other's partial outputs, 8 x 4160 B, in 0.036978
 * us; nothing hides its all-reduces, 2 x 0.50972 us, nor the rows that go back, half of 262,144 B
 * in 0.145636 us. */
Test(decode, medha_exposes_what_it_sends)
{
    struct fixture f;
    struct decode_step t;
    load_roofline(&f);
    struct decode_plan p = planned(&f, "kvp:kvp=2,tpa=8,tpf=8", MILLION);
    decode_step(&p, 8, 1, &t);
    NEAR(t.exchange_s * 1e6, 126 * 0.0369778, 1e-3);
    NEAR(t.reduce_s * 1e6, 126 * (2 * 0.5097244 + 0.1456356), 1e-3);
}

/* 0.9 x 198,674,743,296 - 4 GiB = 174,512,301,670 B; what weights leave, by the KV of a request. */
Test(decode, batch_is_limited_by_memory)
{
    struct fixture f;
    load(&f, "llama-3.1-405b");
    struct decode_plan p = planned(&f, "helix:dp=2,kvp=4,tpa=8,tpf=64", MILLION);
    NEAR(p.kv_request_bytes, 129024e6 / 32, 1);
    int64_t fit = (int64_t)((174512301670.4 - p.weights_bytes) / (129024e6 / 32));
    cr_assert_eq(p.max_batch, 2 * fit, "%lld", (long long)p.max_batch);
    cr_assert_eq(planned(&f, "tp", MILLION).max_batch, 0); /* 202 GB do not fit */
}

/* 126 layers over 4 stages: the longest has 32, so that a token takes 128 layers' time. A request
 * of 4 is alone in its stage. */
Test(decode, stages_wait_for_the_longest)
{
    struct fixture f;
    struct decode_step whole, staged;
    load(&f, "llama-3.1-405b");
    struct decode_plan tp = planned(&f, "tp:tpa=8,tpf=8", MILLION);
    struct decode_plan pp = planned(&f, "pp:pp=4,tpa=8,tpf=8", MILLION);
    decode_step(&tp, 1, 1, &whole);
    decode_step(&pp, 4, 1, &staged);
    NEAR(staged.attn_s / whole.attn_s, 128.0 / 126, 1e-12);
    NEAR(staged.ffn_s / whole.ffn_s, 128.0 / 126, 1e-12);
}

/* 4 experts in 2 groups. One row chooses 1: p = 1/4; of two Binomial(2, 1/4) the larger is
 * (1 - 0.5625^2) + (1 - 0.9375^2) = 0.8047. Two rows choose 2: p = 3/4; (1 - 0.0625^2) + (1 -
 * 0.4375^2) = 1.8047. */
Test(decode, the_busiest_groups_experts_by_hand)
{
    NEAR(experts_busiest(4, 1, 1, 2), 0.8046875, 1e-12);
    NEAR(experts_busiest(4, 2, 2, 2), 1.8046875, 1e-12);
    NEAR(experts_busiest(4, 2, 2, 1), 3, 1e-12);
    NEAR(experts_chosen(256, 8, 1), 8, 1e-12);
    NEAR(experts_busiest(256, 8, 100000, 64), 4, 1e-12);
}

/* At most what a group has, at least the mean, and rising with the rows. */
Test(decode, the_busiest_group_is_within_bounds)
{
    for (int groups = 1; groups <= 256; groups *= 2) {
        double before = 0;
        for (int64_t rows = 1; rows < 2000; rows += 1 + rows / 7) {
            double busiest = experts_busiest(256, 8, rows, groups);
            cr_assert(busiest >= experts_chosen(256, 8, rows) / groups - 1e-9);
            cr_assert(busiest <= 256.0 / groups + 1e-9);
            cr_assert(busiest >= before - 1e-12);
            before = busiest;
        }
    }
}

/* Rows with their replica: R1 on 64 GPUs, a row each: gathered and scattered, or sent. */
Test(decode, data_parallel_attention_divides_requests)
{
    struct fixture f;
    struct decode_step few, many;
    load(&f, "deepseek-r1");
    struct decode_plan p = planned(&f, "ep:dp=64,ep=64", MILLION);
    decode_step(&p, 1, 1, &few);
    decode_step(&p, 64, 1, &many);
    NEAR(few.attn_s, many.attn_s, 1e-18); /* the busiest replica has one request both times */
    decode_step(&p, 65, 1, &many);
    NEAR(2 * few.attn_s, many.attn_s, 1e-12);
    cr_assert_gt(many.reduce_s, few.reduce_s);
}

Test(decode, no_sub_batches_beat_the_floor)
{
    struct fixture f;
    struct err err = ERR_NONE;
    struct profile profile;
    load(&f, "llama-3.1-405b");
    cr_assert_eq(profile_load(&profile, "gb200-analytic", &err), 0, "%s", err.text);
    profile.stage[STAGE_ATTN_DECODE].launch_us = 1.5;
    for (int ideal = 0; ideal < 2; ideal++) {
        f.machine.profile = ideal ? NULL : &profile;
        struct decode_plan p = planned(&f, "helix:kvp=4,tpa=2,tpf=8", 100000);
        for (int64_t batch = 1; batch < 40; batch++) {
            struct decode_step lockstep, t;
            decode_step(&p, batch, 1, &lockstep);
            for (int hopb = 2; hopb <= 8; hopb++) {
                decode_step(&p, batch, hopb, &t);
                cr_assert_geq(t.ttl_s, decode_ttl_floor_s(&lockstep));
            }
        }
    }
    profile_release(&profile);
}

/* Half the bandwidth doubles what depends on size; with a profile only that. */
Test(decode, a_slower_link_takes_longer)
{
    struct fixture f;
    struct decode_step fast, slow;
    load_roofline(&f);
    struct decode_plan p = planned(&f, "helix:kvp=8,tpa=8,tpf=64", MILLION);
    decode_step(&p, 8, 1, &fast);
    f.machine.link_gb_per_s = 450;
    decode_step(&p, 8, 1, &slow);
    NEAR(slow.exchange_s / fast.exchange_s, 2, 1e-12);
    f.machine.collective_us = 3;
    decode_step(&p, 8, 1, &fast);
    NEAR((fast.exchange_s - slow.exchange_s) * 1e6, 126 * 3, 1e-9);
}

/* As above, and 1 us a row: 8 in lockstep, the last one's in 8 sub-batches of 2 us of attention. */
Test(decode, sub_batches_hide_what_each_row_takes)
{
    struct fixture f;
    struct decode_step t;
    load_roofline(&f);
    f.machine.exchange_row_us = 1;
    struct decode_plan p = planned(&f, "helix:kvp=8,tpa=8,tpf=64", MILLION);
    decode_step(&p, 8, 1, &t);
    NEAR(t.exchange_s * 1e6, 126 * (8 + 0.0323556), 1e-4);
    decode_step(&p, 8, 8, &t);
    NEAR(t.exchange_s * 1e6, 126 * (1 + 0.00404444), 1e-4);
    struct decode_plan tp = planned(&f, "tp:tpa=8,tpf=8", MILLION);
    decode_step(&tp, 8, 1, &t);
    NEAR(t.exchange_s, 0, 1e-18);
}

Test(decode, a_layers_own_time_is_added_to_each)
{
    struct fixture f;
    struct decode_step before, after;
    load_roofline(&f);
    struct decode_plan p = planned(&f, "tp:tpa=8,tpf=8", MILLION);
    decode_step(&p, 8, 1, &before);
    f.machine.layer_us = 35;
    decode_step(&p, 8, 1, &after);
    NEAR((after.ttl_s - before.ttl_s) * 1e6, 126 * 35.0, 1e-6);
}

/* 64 rows choose 256 (1 - (31/32)^64) = 222.44 experts, 3.4756 of each group's 4; an expert is
 * 3 x 7168 x 2048 / 2 B, in 58 layers. */
Test(decode, even_experts_are_the_means)
{
    struct fixture f;
    struct decode_step busiest, even;
    load(&f, "deepseek-r1");
    struct decode_plan p = planned(&f, "ep:dp=64,ep=64", MILLION);
    decode_step(&p, 64, 1, &busiest);
    f.machine.even_experts = true;
    decode_step(&p, 64, 1, &even);
    double more = experts_busiest(256, 8, 64, 64) - 4 * (1 - pow(31.0 / 32, 64));
    NEAR((busiest.ffn_s - even.ffn_s) * 1e6, 58 * more * 3 * 7168 * 2048 / 2 / 8e12 * 1e6, 1e-6);
    cr_assert_gt(more, 0.3);
}
