/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits to tables that the cost model "measured" under a profile that the fit does not know. The
 * tables are made here, step by step, not by the code that is tested.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/study/prefill.h"
#include "sim/study/speed_internal.h"

enum { ITEMS_MAX = 256 };

static const char *const layouts[] = {"tp", "cp", "dp", "dop"};
enum { LAYOUTS = 4 };

static const double truth[SPEED_PARTS] = {1.6, 2.5, 1.4, 1.3, 1.8, 2000};

/* A machine with a profile that nobody knows, and a table of it. */
struct bench {
    struct model model;
    struct cluster cluster;
    struct profile base, real;
    struct layout layout[LAYOUT_MAX];
    struct cost *cost;
    FILE *out;
    double speedup; /* over the real profile */
    double noise;   /* of every second row so much more, of the others less */
    int rows;
    char path[40];
    struct speeds speeds;
    struct speed_fit fit;
};

static void scale(struct stage_profile *s, double factor)
{
    for (int i = 0; i < s->flop_frac.n; i++)
        s->flop_frac.frac[i] /= factor;
    for (int i = 0; i < s->hbm_frac.n; i++)
        s->hbm_frac.frac[i] /= factor;
    s->launch_us *= factor;
}

static void scale_collectives(struct collective_table *t, double factor)
{
    for (int op = 0; op < COLL_COUNT; op++)
        for (int i = 0; i < t->n[op]; i++) {
            t->curve[op][i].latency_us *= factor;
            for (int k = 0; k < t->curve[op][i].n; k++)
                t->curve[op][i].point[k].us *= factor;
        }
}

static void bench_open(struct bench *b, double overlap_frac)
{
    struct err err = ERR_NONE;
    *b = (struct bench){.speedup = 1, .path = "/tmp/test_speed_fit_XXXXXX"};
    model_load(&b->model, "deepseek-v3.2", &err);
    cluster_load(&b->cluster, "h200x8", &err);
    profile_load(&b->base, b->cluster.profile, &err);
    profile_load(&b->real, b->cluster.profile, &err);
    cr_assert_not(err.set, "%s", err.text);
    b->base.overlap_frac = b->real.overlap_frac = overlap_frac;
    scale(&b->real.stage[STAGE_PROJ], truth[SPEED_PROJ]);
    scale(&b->real.stage[STAGE_ATTN_PREFILL], truth[SPEED_ATTN_PREFILL]);
    scale(&b->real.stage[STAGE_ATTN_DECODE], truth[SPEED_ATTN_DECODE]);
    scale(&b->real.stage[STAGE_FFN], truth[SPEED_FFN]);
    scale_collectives(&b->real.collectives, truth[SPEED_EXCHANGE]);
    b->real.step_launch_us = truth[SPEED_LAUNCH];
    cr_assert_eq(layout_parse_list(b->layout, "tp,cp,dp,dop", &b->model, 8, &err), LAYOUTS);
    b->cost = cost_new(&b->model, &b->cluster, &b->real, b->layout, LAYOUTS, 64);
    b->out = fdopen(mkstemp(b->path), "w");
    fputs("layout,input_len,batch,output_len,throughput_tok_s,step_ms\n", b->out);
}

static void bench_release(struct bench *b)
{
    speed_fit_release(&b->fit);
    speeds_release(&b->speeds);
    cost_free(b->cost);
    profile_release(&b->base);
    profile_release(&b->real);
}

static double step_s(const struct bench *b, int layout, int batch, int64_t ctx_tokens, int32_t q)
{
    struct batch_item item[ITEMS_MAX];
    struct batch of = {q == 1 ? batch : 0, batch, item};
    struct step_cost c;
    cr_assert(batch <= ITEMS_MAX);
    for (int i = 0; i < batch; i++)
        item[i] = (struct batch_item){ctx_tokens, q, i % 8};
    cost_step(b->cost, layout, &of, &c);
    return ps_to_s(c.step.a_ps);
}

static double noisy(struct bench *b, double s)
{
    return s / b->speedup * (1 + (b->rows++ % 2 ? -b->noise : b->noise));
}

static void add_decode_step(struct bench *b, int layout, int input, int batch, int output)
{
    double s = noisy(b, step_s(b, layout, batch, input + output, 1));
    fprintf(b->out, "%s,%d,%d,%d,,%.9g\n", layouts[layout], input, batch, output, 1e3 * s);
}

static void add_prefill_step(struct bench *b, int layout, int input, int batch)
{
    double s = noisy(b, step_s(b, layout, batch, input, input));
    fprintf(b->out, "%s,%d,%d,0,,%.9g\n", layouts[layout], input, batch, 1e3 * s);
}

/* Of `output` tokens prefill gives the first. */
static void add_burst(struct bench *b, int layout, int decode, int input, int batch, int output)
{
    double s = prefill_s(b->cost, layout, batch, input);
    for (int i = 1; i < output; i++)
        s += step_s(b, decode, batch, input + i, 1);
    fprintf(b->out, "%s,%d,%d,%d,%.9g,\n", layouts[layout], input, batch, output,
            batch * (input + output) / noisy(b, s));
}

static void run_fit(struct bench *b, const char *decode_layout)
{
    struct err err = ERR_NONE;
    fclose(b->out);
    int rc = speeds_load(&b->speeds, b->path, &b->model, &b->cluster, decode_layout, &err);
    unlink(b->path);
    cr_assert_eq(rc, 0, "%s", err.text);
    speed_fit_run(&b->fit, &b->speeds, &b->base);
}

static void add_decode_steps(struct bench *b)
{
    for (int l = 0; l < LAYOUTS; l++)
        for (int batch = 8; batch <= 128; batch *= 4)
            for (int input = 1000; input <= 64000; input *= 8)
                add_decode_step(b, l, input, batch, 9000);
}

static void add_prefill_steps(struct bench *b)
{
    for (int l = 0; l < LAYOUTS; l++)
        for (int input = 512; input <= 8192; input *= 4)
            for (int batch = 1; batch <= 8; batch *= 8)
                add_prefill_step(b, l, input, batch);
}

static void add_bursts(struct bench *b, int decode)
{
    for (int l = 0; l < LAYOUTS; l++)
        for (int input = 1000; input <= 64000; input *= 8)
            for (int batch = 2; batch <= 32; batch *= 4)
                add_burst(b, l, decode >= 0 ? decode : l, input, batch, 100);
}

static void expect_truth(const struct bench *b, double tolerance)
{
    for (int k = 0; k < SPEED_PARTS; k++) {
        const struct fit_param *q = &b->fit.param[k];
        cr_expect_eq(q->state, FIT_FITTED, "%s", q->name);
        cr_expect_float_eq(q->value / truth[k], 1, tolerance, "%s: %g, in truth %g", q->name,
                           q->value, truth[k]);
    }
}

Test(speed_fit, finds_an_invented_truth_in_steps)
{
    struct bench b;
    bench_open(&b, 0);
    add_decode_steps(&b);
    add_prefill_steps(&b);
    run_fit(&b, NULL);
    expect_truth(&b, 0.01);
    cr_expect_lt(b.fit.errors[LAYOUT_MAX].abs_p95, 0.002);
    cr_expect_lt(b.fit.held_out[LAYOUT_MAX].abs_p95, 0.005);
    bench_release(&b);
}

Test(speed_fit, finds_an_invented_truth_in_bursts)
{
    struct bench b;
    bench_open(&b, 0);
    add_bursts(&b, -1);
    run_fit(&b, NULL);
    expect_truth(&b, 0.03);
    cr_expect_lt(b.fit.errors[LAYOUT_MAX].abs_p95, 0.002);
    bench_release(&b);
}

/* Bursts of pools: a fit that knows where they decoded explains them, one that does not cannot. */
Test(speed_fit, bursts_decode_in_the_layout_of_the_decode_pool)
{
    for (int knows = 0; knows < 2; knows++) {
        struct bench b;
        bench_open(&b, 0);
        add_bursts(&b, 2);
        run_fit(&b, knows ? "dp" : NULL);
        if (knows)
            cr_expect_lt(b.fit.errors[LAYOUT_MAX].abs_p95, 0.002);
        else
            cr_expect_gt(b.fit.errors[LAYOUT_MAX].abs_p95, 0.02);
        bench_release(&b);
    }
}

/* Then times are not linear in the parameters. */
Test(speed_fit, finds_the_truth_where_attention_hides_exchange)
{
    struct bench b;
    bench_open(&b, 0.5);
    add_decode_steps(&b);
    add_prefill_steps(&b);
    run_fit(&b, NULL);
    expect_truth(&b, 0.02);
    bench_release(&b);
}

Test(speed_fit, sigmas_cover_noise)
{
    struct bench b;
    bench_open(&b, 0);
    b.noise = 0.05;
    add_decode_steps(&b);
    add_prefill_steps(&b);
    add_bursts(&b, -1);
    run_fit(&b, NULL);
    cr_expect_float_eq(b.fit.noise, 0.05, 0.01);
    for (int k = 0; k < SPEED_PARTS; k++) {
        const struct fit_param *q = &b.fit.param[k];
        cr_expect(q->state == FIT_KEPT || fabs(q->value - truth[k]) < 3 * q->sigma,
                  "%s: %g +- %g, in truth %g", q->name, q->value, q->sigma, truth[k]);
    }
    bench_release(&b);
}

Test(speed_fit, what_no_row_has_keeps_the_base)
{
    struct bench b;
    bench_open(&b, 0);
    add_decode_steps(&b);
    run_fit(&b, NULL);
    const struct fit_param *prefill = &b.fit.param[SPEED_ATTN_PREFILL];
    cr_expect_eq(prefill->state, FIT_KEPT);
    cr_expect_float_eq(prefill->value, 1, 0);
    cr_expect_eq(memcmp(b.fit.profile.stage[STAGE_ATTN_PREFILL].flop_frac.frac,
                        b.base.stage[STAGE_ATTN_PREFILL].flop_frac.frac,
                        sizeof b.base.stage[0].flop_frac.frac),
                 0);
    cr_expect_eq(b.fit.param[SPEED_ATTN_DECODE].state, FIT_FITTED);
    bench_release(&b);
}

/* The profile, not only its parameters: efficiencies are the base's over the factor. */
Test(speed_fit, the_profile_holds_what_was_fitted)
{
    struct bench b;
    bench_open(&b, 0);
    add_decode_steps(&b);
    add_prefill_steps(&b);
    run_fit(&b, NULL);
    const struct profile *p = &b.fit.profile;
    cr_expect(b.fit.fits_collectives);
    cr_expect_float_eq(p->step_launch_us, b.fit.param[SPEED_LAUNCH].value, 1e-9);
    cr_expect_float_eq(
        p->stage[STAGE_FFN].flop_frac.frac[1] / b.real.stage[STAGE_FFN].flop_frac.frac[1], 1, 0.01);
    cr_expect_float_eq(p->stage[STAGE_HEAD].flop_frac.frac[1],
                       b.base.stage[STAGE_HEAD].flop_frac.frac[1], 0);
    cr_expect_float_eq(collective_s(&p->collectives, COLL_ALL_TO_ALL, 8, 1e6) /
                           collective_s(&b.base.collectives, COLL_ALL_TO_ALL, 8, 1e6),
                       1.8, 0.02);
    bench_release(&b);
}

/* Nothing reaches more than the data sheet's peak, however fast the table says steps are. */
Test(speed_fit, no_efficiency_passes_its_peak)
{
    struct bench b;
    bench_open(&b, 0);
    b.speedup = 8;
    add_decode_steps(&b);
    run_fit(&b, NULL);
    double most = 0;
    for (int s = 0; s < STAGE_COUNT; s++)
        for (int i = 0; i < b.fit.profile.stage[s].hbm_frac.n; i++)
            most = fmax(most, b.fit.profile.stage[s].hbm_frac.frac[i]);
    cr_expect_float_eq(most, 1, 1e-3, "%g", most);
    bench_release(&b);
}

/* Of two parameters that every row mixes: deviations from the inverse of the curvature,
 * [a b; b d]: sqrt(d / (a d - b b)) and sqrt(a / (a d - b b)). Rows are exact, so the noise is the
 * least there is, 0.2%, and the prior adds next to nothing. */
Test(speed_solve, sigmas_are_those_of_the_curvature)
{
    static const double x[4] = {1, 1, 2, 1}, y[4] = {1, 2, 1, 0.1};
    struct speed row[4] = {{0}};
    struct speed_split unit[4] = {{{0}, 0}};
    struct speeds s = {.row = row, .n = 4, .n_shapes = 4};
    struct fit_param param[SPEED_PARTS];
    struct speed_problem p = {.speeds = &s, .unit = unit, .without_shape = -1, .param = param};
    double a = 0, b = 0, d = 0;
    for (int i = 0; i < 4; i++) {
        unit[i].part_s[SPEED_PROJ] = x[i];
        unit[i].part_s[SPEED_FFN] = y[i];
        row[i].shape = i;
        row[i].s = 2 * x[i] + 3 * y[i];
        a += pow(2 * x[i] / row[i].s / 0.002, 2);
        b += 2 * x[i] * 3 * y[i] / pow(row[i].s * 0.002, 2);
        d += pow(3 * y[i] / row[i].s / 0.002, 2);
    }
    for (int k = 0; k < SPEED_PARTS; k++)
        param[k] = (struct fit_param){.low = 0.1, .high = 20, .base = 1, .value = 1};
    speed_solve(&p);
    cr_expect_float_eq(param[SPEED_PROJ].value, 2, 1e-3);
    cr_expect_float_eq(param[SPEED_FFN].value, 3, 1e-3);
    cr_expect_float_eq(param[SPEED_PROJ].sigma, 2 * sqrt(d / (a * d - b * b)), 1e-4);
    cr_expect_float_eq(param[SPEED_FFN].sigma, 3 * sqrt(a / (a * d - b * b)), 1e-4);
    cr_expect_eq(param[SPEED_EXCHANGE].state, FIT_KEPT);
}

/* 0.5 + 4 x 0.5 = 2.5. */
Test(speed_solve, one_row_is_for_one_parameter)
{
    struct speed row = {.s = 2.5};
    struct speed_split unit = {.rest_s = 0.5};
    struct speeds s = {.row = &row, .n = 1, .n_shapes = 1};
    struct fit_param param[SPEED_PARTS];
    struct speed_problem p = {.speeds = &s, .unit = &unit, .without_shape = -1, .param = param};
    unit.part_s[SPEED_FFN] = 0.5;
    for (int k = 0; k < SPEED_PARTS; k++)
        param[k] = (struct fit_param){.low = 0.1, .high = 20, .base = 1, .value = 1};
    speed_solve(&p);
    cr_expect_float_eq(param[SPEED_FFN].value, 4, 0.01);
    for (int k = 0; k < SPEED_PARTS; k++)
        cr_expect_eq(param[k].state, k == SPEED_FFN ? FIT_FITTED : FIT_KEPT);
}

/* Two rows that differ too much, 2 s and 6 s for the same step: noise is 25%, its most, and least
 * is where ((v / 2 - 1) / 2 + (v / 6 - 1) / 6) / 0.25^2 + ln v / v / ln(2)^2 = 0: 2.232. Without a
 * prior it would be 2.4. */
Test(speed_solve, a_prior_holds_what_is_uncertain_near_the_base)
{
    struct speed row[2] = {{.s = 2}, {.s = 6}};
    struct speed_split unit[2] = {{{0}, 0}};
    struct speeds s = {.row = row, .n = 2, .n_shapes = 1};
    struct fit_param param[SPEED_PARTS];
    struct speed_problem p = {.speeds = &s, .unit = unit, .without_shape = -1, .param = param};
    unit[0].part_s[SPEED_FFN] = unit[1].part_s[SPEED_FFN] = 1;
    for (int k = 0; k < SPEED_PARTS; k++)
        param[k] = (struct fit_param){.low = 0.1, .high = 20, .base = 1, .value = 1};
    speed_solve(&p);
    cr_expect_float_eq(p.noise, 0.25, 1e-12);
    cr_expect_float_eq(param[SPEED_FFN].value, 2.232, 0.002);
}

/* A shape that lies is explained a little when it is seen, and not when it is held out. */
Test(speed_fit, a_shape_that_is_held_out_is_not_seen)
{
    struct bench b;
    bench_open(&b, 0);
    add_decode_steps(&b);
    b.noise = 1;
    b.rows = 0;
    add_decode_step(&b, 0, 100000, 200, 24); /* twice as long */
    run_fit(&b, NULL);
    double seen = b.fit.errors[LAYOUT_MAX].abs_mean, held_out = b.fit.held_out[LAYOUT_MAX].abs_mean;
    cr_expect_gt(held_out, 1.02 * seen, "%g, seen %g", held_out, seen);
    cr_expect_eq(b.fit.held_out[LAYOUT_MAX].n, b.speeds.n);
    bench_release(&b);
}

Test(speed_fit, one_shape_alone_is_not_held_out)
{
    struct bench b;
    bench_open(&b, 0);
    for (int l = 0; l < LAYOUTS; l++)
        add_decode_step(&b, l, 4000, 64, 10);
    run_fit(&b, NULL);
    cr_expect_eq(b.fit.held_out[LAYOUT_MAX].n, 0);
    cr_expect_eq(b.fit.errors[LAYOUT_MAX].n, LAYOUTS);
    bench_release(&b);
}

/* One layout of one shape is said to be ten times faster than it is: a fit to the others does not
 * take it, and the regret is what that loses, over the shapes. Fits to the others see the lie, and
 * lose a little too. */
Test(speed_fit, regret_is_what_the_wrong_choice_loses)
{
    struct bench b;
    bench_open(&b, 0);
    add_prefill_steps(&b);
    for (int l = 0; l < LAYOUTS; l++) {
        b.speedup = l == 0 ? 10 : 1;
        add_prefill_step(&b, l, 4000, 8);
    }
    run_fit(&b, NULL);
    double fastest_s = INFINITY, tp_s = step_s(&b, 0, 8, 4000, 4000) / 10;
    for (int l = 1; l < LAYOUTS; l++)
        fastest_s = fmin(fastest_s, step_s(&b, l, 8, 4000, 4000));
    cr_expect_lt(fastest_s, step_s(&b, 0, 8, 4000, 4000));
    cr_expect_eq(b.fit.regret_shapes, 7);
    cr_expect_float_eq(b.fit.regret, (fastest_s / tp_s - 1) / 7, 0.02 * b.fit.regret);
    bench_release(&b);
}
