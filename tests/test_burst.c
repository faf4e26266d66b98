/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/study/burst: the decode pool by hand and beside a pool that is simulated step by
 * step, predictions by hand, and fits that find the constants bursts were made with.
 */
#include "sim/study/burst.h"

#include <math.h>

#include <criterion/criterion.h>

static const struct burst_model truth = {.constant = {[BURST_DECODE] = 20,
                                                      [BURST_BESIDE] = 0.25,
                                                      [BURST_SPREAD] = 3,
                                                      [BURST_ATTN] = 2,
                                                      [BURST_START] = 4,
                                                      2,
                                                      2.5,
                                                      1.5,
                                                      [BURST_SUSTAINED] = 4.5,
                                                      2.5,
                                                      4,
                                                      1.25},
                                         .start_tokens = 1 << 20};

/* Prefill takes 40 s, one prompt after another, and a stay 20 s: the last one is there alone with
 * itself, the one 5 s before it for 15 of 20 s, and so on: 1 + 3/4 + 1/2 + 1/4. */
Test(burst, requests_overlap_in_the_decode_pool_by_hand)
{
    const struct burst b = {.batch = 8, .abreast = 1};
    cr_expect_float_eq(burst_beside(&b, 40, 20, 0), 2.5, 1e-12);
    cr_expect_float_eq(burst_beside(&b, 400, 20, 0), 1, 1e-12);
    cr_expect_float_eq(burst_beside(&b, 0, 20, 0), 8, 1e-12);
}

/* Twelve prompts of eight owners: two groups, the last of four, 10 s apart; the first group's eight
 * stay half of the time. */
Test(burst, owners_finish_their_prompts_together)
{
    const struct burst b = {.batch = 12, .abreast = 8};
    cr_expect_float_eq(burst_beside(&b, 20, 20, 0), 4 + 8 * 0.5, 1e-12);
}

/* A pool that takes 1,023 steps for a request, each as long as there are requests in it. */
static double simulated_stay_s(const struct burst *b, double prefill_s, double alone_s,
                               double beside_s)
{
    enum { STEPS = 1023 };
    int left[64], groups = (b->batch + b->abreast - 1) / b->abreast, last = b->batch - 1;
    double now = 0, start = 0;
    for (int i = 0; i < b->batch; i++)
        left[i] = STEPS;
    while (left[last] > 0) {
        int n = 0;
        for (int i = 0; i < b->batch; i++) {
            bool has_come = now >= prefill_s * (i / b->abreast + 1) / groups;
            n += has_come && left[i] > 0;
            left[i] -= has_come && left[i] > 0;
        }
        if (n == 0) {
            now += 0.001;
            continue;
        }
        if (left[last] == STEPS - 1)
            start = now;
        now += (alone_s + beside_s * n) / STEPS;
    }
    return now - start;
}

Test(burst, the_decode_pool_is_near_one_simulated_step_by_step)
{
    static const struct {
        struct burst b;
        double prefill_s;
    } trials[] = {{{.batch = 1, .abreast = 1}, 5},   {{.batch = 16, .abreast = 1}, 40},
                  {{.batch = 64, .abreast = 1}, 90}, {{.batch = 64, .abreast = 8}, 90},
                  {{.batch = 32, .abreast = 8}, 2},  {{.batch = 20, .abreast = 8}, 60}};
    for (int i = 0; i < 6; i++) {
        const struct burst *b = &trials[i].b;
        double stay_s = 20 + 0.25 * burst_beside(b, trials[i].prefill_s, 20, 0.25);
        double simulated_s = simulated_stay_s(b, trials[i].prefill_s, 20, 0.25);
        cr_expect_float_eq(stay_s / simulated_s, 1, 0.02, "%d: %g, simulated %g", i, stay_s,
                           simulated_s);
    }
}

/* 2^21 tokens of which half are the start: attention 2 x 3 s, the rest 10 s, half of them 2.5 and
 * half 4 times as long; one group, so all 8 decode at once; KV is spread. */
Test(burst, a_prediction_by_hand)
{
    const struct burst b = {.layout = 2,
                            .batch = 8,
                            .abreast = 8,
                            .spread = true,
                            .input_tokens = 1 << 21,
                            .attn_s = 3,
                            .rest_s = 10};
    cr_expect_float_eq(burst_predict_s(&truth, &b), 20 + 0.25 * 8 + 3 + 6 + 5 * 2.5 + 5 * 4, 1e-9);
}

enum { BATCHES = 8, LENGTHS = 5, BURSTS = BATCHES * LENGTHS * BURST_LAYOUTS };

/* Bursts of 1 to 128 prompts of 8K to 128K, of a machine that is `truth`. */
static void make(struct burst *b)
{
    for (int i = 0; i < BURSTS; i++) {
        int layout = i % BURST_LAYOUTS, shape = i / BURST_LAYOUTS;
        double tokens = 8192 << shape / BATCHES, batch = 1 << shape % BATCHES;
        b[i] = (struct burst){.shape = shape,
                              .layout = layout,
                              .batch = (int)batch,
                              .abreast = layout < 2 ? 1 : 8,
                              .spread = layout > 0,
                              .input_tokens = batch * tokens,
                              .attn_s = 1e-11 * batch * tokens * tokens,
                              .rest_s = (1 + 0.1 * layout) * 1e-5 * batch * tokens};
        b[i].s = burst_predict_s(&truth, &b[i]);
    }
}

static void expect_truth(const struct burst_model *m, double within)
{
    cr_expect_eq(m->start_tokens, truth.start_tokens);
    for (int k = 0; k < BURST_CONSTANTS; k++)
        cr_expect_float_eq(m->constant[k] / truth.constant[k], 1, within, "%d: %g, not %g", k,
                           m->constant[k], truth.constant[k]);
}

Test(burst, a_fit_finds_the_constants)
{
    struct burst b[BURSTS];
    struct burst_model m;
    make(b);
    burst_fit(&m, b, BURSTS, -1);
    expect_truth(&m, 0.01);
}

/* Every twentieth burst takes half as long again; least squares would follow. */
Test(burst, single_wild_bursts_do_not_lead_a_fit)
{
    struct burst b[BURSTS];
    struct burst_model m;
    make(b);
    for (int i = 7; i < BURSTS; i += 20)
        b[i].s *= 1.5;
    burst_fit(&m, b, BURSTS, -1);
    expect_truth(&m, 0.1);
}

Test(burst, a_shape_that_is_left_out_does_not_count)
{
    struct burst b[BURSTS];
    struct burst_model with, without;
    make(b);
    burst_fit(&with, b, BURSTS, 5);
    for (int i = 0; i < BURSTS; i++)
        b[i].s *= b[i].shape == 5 ? 10 : 1;
    burst_fit(&without, b, BURSTS, 5);
    for (int k = 0; k < BURST_CONSTANTS; k++)
        cr_expect_eq(with.constant[k], without.constant[k]);
    burst_fit(&with, b, BURSTS, -1);
    cr_expect_neq(with.constant[BURST_DECODE], without.constant[BURST_DECODE]);
}
