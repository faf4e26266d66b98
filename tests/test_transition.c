/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/cost/transition.h"
#include "tests/cost_bench.h"

enum { TP, CP, DP, DOP };

static void fill(int64_t tokens[RANKS_MAX], int ranks, int64_t each)
{
    for (int r = 0; r < ranks; r++)
        tokens[r] = each;
}

/* The paper: tp->dop and dp->dop keep and discard; every other direction moves something. */
Test(transition, only_two_directions_of_twelve_are_free)
{
    struct bench b;
    bench_init(&b, "glm-5.3", "b200x8", "tp,cp,dp,dop");
    int64_t tokens[RANKS_MAX];
    fill(tokens, 8, 2 * 262144);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            if (from == to)
                continue;
            struct step_cost step = step_of(&b, to, 16, 65536, 512);
            struct transition t;
            transition_cost(b.cost, from, to, tokens, &step, &t);
            bool is_free = to == DOP && from != CP;
            cr_expect_eq(t.exposed_ps == 0, is_free, "%d -> %d", from, to);
            cr_expect_eq(t.blocking_ps == 0, is_free, "%d -> %d", from, to);
            cr_expect_leq(t.exposed_ps, t.blocking_ps);
        }
    bench_release(&b);
}

/* Eq. 7 by hand: tp -> dp moves the weights of 61 layers alone. When a layer computes for longer
 * than one transfer, only the first one shows; when it computes for nothing, all of them do. */
Test(transition, equation_7_by_hand)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,dp");
    int64_t tokens[RANKS_MAX] = {0};
    struct step_cost busy = {.proj = seg_const(61 * PS_PER_S)}, idle = {0}, half = {0};
    struct transition t;
    transition_cost(b.cost, 0, 1, tokens, &busy, &t);
    cr_expect_gt(t.first_ps, 0);
    cr_expect_eq(t.exposed_ps, t.first_ps);
    cr_expect_eq(t.blocking_ps, 61 * t.first_ps);
    transition_cost(b.cost, 0, 1, tokens, &idle, &t);
    cr_expect_eq(t.exposed_ps, t.blocking_ps);
    half.attn = seg_const(61 * (t.first_ps / 2));
    int64_t late = t.first_ps - t.first_ps / 2;
    transition_cost(b.cost, 0, 1, tokens, &half, &t);
    cr_expect_eq(t.exposed_ps, t.first_ps + 60 * late);
    bench_release(&b);
}

/* The first 3 layers have dense FFNs: 3 of the 60 later transfers run beside one, and those of a
 * quarter's length hide so much; the other 57 run beside experts of half its length. */
Test(transition, a_transfer_hides_behind_the_layer_before_it)
{
    struct bench b;
    bench_init(&b, "deepseek-v3.2", "b200x8", "tp,dp");
    int64_t tokens[RANKS_MAX] = {0};
    struct step_cost idle = {0}, mixed = {0};
    struct transition t;
    transition_cost(b.cost, 0, 1, tokens, &idle, &t);
    int64_t quarter = t.first_ps / 4;
    mixed.dense_ffn_ps = quarter;
    mixed.ffn = seg_const(3 * quarter + 58 * 2 * quarter);
    int64_t late = 3 * (t.first_ps - quarter) + 57 * (t.first_ps - 2 * quarter);
    transition_cost(b.cost, 0, 1, tokens, &mixed, &t);
    cr_expect_eq(t.exposed_ps, t.first_ps + late);
    bench_release(&b);
}

/* A transfer reads here and writes there what it moves. As long as that takes in HBM, 60 layers
 * stand still where HBM paces all they do, half as long where it paces half, and not at all where
 * it paces none. A layer that is done first gains nothing: it took longer, in which more moved. */
Test(transition, a_transfer_slows_what_hbm_paces)
{
    struct bench b;
    bench_load(&b, "deepseek-v3.2", "b200x8");
    b.profile.transfer.link_interference = 1;
    b.profile.transfer.regroup_interference = 4; /* nothing is grouped anew */
    bench_compile(&b, "tp,dp");
    int64_t tokens[RANKS_MAX] = {0};
    struct step_cost busy = {.proj = seg_const(61 * PS_PER_S)}, short_one = {0};
    struct transition t;
    transition_cost(b.cost, 0, 1, tokens, &busy, &t);
    double in_hbm_ps = 2e12 * t.weights_recv_bytes_per_layer / 7.7e12;
    cr_expect_eq(t.exposed_ps, t.first_ps);
    cr_expect_eq(t.blocking_ps, 61 * t.first_ps);
    busy.hbm_ps = 61 * PS_PER_S;
    transition_cost(b.cost, 0, 1, tokens, &busy, &t);
    cr_expect_float_eq(t.exposed_ps, t.first_ps + 60 * in_hbm_ps, 1);
    busy.hbm_ps /= 2;
    transition_cost(b.cost, 0, 1, tokens, &busy, &t);
    cr_expect_float_eq(t.exposed_ps, t.first_ps + 30 * in_hbm_ps, 1);
    int64_t compute = t.first_ps / 2;
    short_one.attn = seg_const(61 * compute);
    short_one.hbm_ps = short_one.attn.a_ps;
    transition_cost(b.cost, 0, 1, tokens, &short_one, &t);
    cr_expect_float_eq(t.exposed_ps, t.first_ps + 60 * (t.first_ps - compute), 1);
    bench_release(&b);
}

/* Half the time in HBM of what tp -> cp groups anew, and nothing of what travels. */
Test(transition, what_is_grouped_anew_slows_by_its_own_factor)
{
    struct bench b;
    int64_t tokens[RANKS_MAX];
    struct step_cost busy = {.attn = seg_const(61 * PS_PER_S), .hbm_ps = 61 * PS_PER_S};
    struct transition before, after;
    fill(tokens, 8, 1000);
    bench_load(&b, "deepseek-v3.2", "b200x8");
    b.profile.transfer.regroup_hbm_frac = 0.5;
    bench_compile(&b, "tp,cp,dp,dop");
    transition_cost(b.cost, TP, CP, tokens, &busy, &before);
    b.profile.transfer.regroup_interference = 0.5;
    transition_cost(b.cost, TP, CP, tokens, &busy, &after);
    double bytes = 1000 * model_kv_bytes_per_token_layer(&b.model);
    cr_expect_float_eq(after.exposed_ps - before.exposed_ps, 60 * 0.5 * 2e12 * bytes / 7.7e12, 2);
    bench_release(&b);
}

/* At half its speed, a transfer needs twice its time beside a layer, and what a shorter layer left
 * goes on at full speed. */
Test(transition, a_transfer_is_slower_beside_a_layer)
{
    struct bench b;
    bench_load(&b, "deepseek-v3.2", "b200x8");
    b.profile.transfer.beside_frac = 0.5;
    bench_compile(&b, "tp,dp");
    int64_t tokens[RANKS_MAX] = {0};
    struct step_cost busy = {.proj = seg_const(61 * PS_PER_S)}, short_one = {0};
    struct transition t;
    transition_cost(b.cost, 0, 1, tokens, &busy, &t);
    cr_expect_eq(t.exposed_ps, t.first_ps);
    short_one.attn = seg_const(61 * t.first_ps);
    transition_cost(b.cost, 0, 1, tokens, &short_one, &t);
    cr_expect_float_eq(t.exposed_ps, t.first_ps + 60 * 0.5 * t.first_ps, 1);
    bench_release(&b);
}

/* tp -> cp keeps 1/8 of 8 x 1000 tokens on every rank. Where pages follow the cut, it is read and
 * written once at half of 8 TB/s; tp -> dop keeps pages. */
Test(transition, kv_that_stays_may_have_to_be_grouped_anew)
{
    struct bench b;
    struct step_cost none = {0};
    struct transition before, after;
    int64_t tokens[RANKS_MAX];
    fill(tokens, 8, 1000);
    bench_load(&b, "deepseek-v3.2", "b200x8");
    bench_compile(&b, "tp,cp,dp,dop");
    transition_cost(b.cost, TP, CP, tokens, &none, &before);
    b.profile.transfer.regroup_hbm_frac = 0.5;
    transition_cost(b.cost, TP, CP, tokens, &none, &after);
    double bytes = 1000 * model_kv_bytes_per_token_layer(&b.model);
    double regroup_s = 2 * bytes / (0.5e9 * b.cluster.device.hbm_gb_per_s);
    cr_expect_float_eq(ps_to_s(after.first_ps - before.first_ps), regroup_s, 1e-12);
    transition_cost(b.cost, TP, DOP, tokens, &none, &after);
    cr_expect_eq(after.first_ps, 0);
    bench_release(&b);
}

Test(transition, sub_batches_change_for_nothing)
{
    struct bench b;
    bench_load(&b, "deepseek-r1", "h200x8");
    b.profile.transfer.link_interference = b.profile.transfer.regroup_interference = 0.5;
    bench_compile(&b, "helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=4,helix:kvp=8,tpa=1,hopb=8");
    int64_t tokens[RANKS_MAX];
    fill(tokens, 8, 2 * 65536);
    for (int i = 0; i < 9; i++) {
        struct step_cost step = step_of(&b, i % 3, 16, 65536, 1);
        struct transition t;
        transition_cost(b.cost, i / 3, i % 3, tokens, &step, &t);
        cr_expect_eq(t.exposed_ps, 0);
        cr_expect_eq(t.blocking_ps, 0);
        cr_expect_eq(t.moved_bytes, 0);
    }
    bench_release(&b);
}

Test(transition, kv_cost_grows_with_live_tokens_and_weights_do_not)
{
    struct bench b;
    bench_init(&b, "glm-5.3", "b200x8", "tp,cp,dp,dop");
    struct step_cost none = {0};
    struct transition small, large;
    int64_t tokens[RANKS_MAX];
    fill(tokens, 8, 100000);
    transition_cost(b.cost, DP, CP, tokens, &none, &small);
    fill(tokens, 8, 1000000);
    transition_cost(b.cost, DP, CP, tokens, &none, &large);
    cr_expect_gt(large.blocking_ps, 5 * small.blocking_ps);
    cr_expect_float_eq(large.kv_recv_bytes_per_layer, 788 * 1e6 * 7 / 8, 1);
    cr_expect_eq(large.weights_recv_bytes_per_layer, 0);
    fill(tokens, 8, 100000);
    transition_cost(b.cost, DOP, DP, tokens, &none, &small);
    fill(tokens, 8, 1000000);
    transition_cost(b.cost, DOP, DP, tokens, &none, &large);
    cr_expect_eq(small.blocking_ps, large.blocking_ps);
    bench_release(&b);
}

Test(transition, mechanisms_charge_what_they_say)
{
    struct bench b;
    bench_init(&b, "glm-5.3", "b200x8", "tp,dp");
    struct transition t = {.exposed_ps = 5, .blocking_ps = 70};
    cr_expect_eq(transition_charge_ps(b.cost, 1, &t, MECH_OVERLAPPED), 5);
    cr_expect_eq(transition_charge_ps(b.cost, 1, &t, MECH_BLOCKING), 70);
    cr_expect_eq(transition_charge_ps(b.cost, 1, &t, MECH_DRAIN), 70);
    cr_expect_eq(transition_charge_ps(b.cost, 1, &t, MECH_FREE), 0);
    const struct capacity *dp = cost_capacity(b.cost, 1);
    double load_s = (dp->common_bytes + dp->weights_bytes) / 25e9;
    cr_expect_float_eq(ps_to_s(transition_charge_ps(b.cost, 1, &t, MECH_RESTART)), load_s, 1e-6);
    bench_release(&b);
}

/* GLM-5.3-Flash, dp -> cp with one request on one owner of 8: 11 MLA layers move 7/8 of 1000 tokens
 * of 561 bytes, 34 linear layers 7/8 of one state; after a drain nothing is left to move. */
Test(transition, recurrent_state_moves_where_there_are_requests)
{
    struct bench b;
    bench_init(&b, "glm-5.3-flash", "bw1000x8", "tp,cp,dp,dop");
    struct step_cost none = {0};
    struct transition t;
    int64_t tokens[RANKS_MAX] = {1000};
    transition_cost(b.cost, DP, CP, tokens, &none, &t);
    cr_expect_float_eq(t.moved_bytes, 11 * 561 * 1000 * 7 / 8.0 + 34 * 4341760 * 7 / 8.0, 1);
    tokens[0] = 0;
    transition_cost(b.cost, DP, CP, tokens, &none, &t);
    cr_expect_eq(t.moved_bytes, 0);
    cr_expect_eq(t.blocking_ps, 0);
    bench_release(&b);
}
