/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits to plans "measured" by the cost model itself under a profile that the fit does not know.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/cost/transition.h"
#include "sim/study/fit.h"

#define N(array) ((int)(sizeof(array) / sizeof *(array)))

enum { ITEMS_MAX = 80 };

static const char layouts[] = "tp,cp,dp,dop,helix:kvp=2,tpa=1";

/* A machine with a profile that nobody knows, and what a replay on it would write. */
struct bench {
    struct model model;
    struct cluster cluster;
    struct profile truth, base;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
    struct rng rng;
    double noise;
    FILE *out;
    int64_t steps;
    double switch_stages; /* stage times of switching steps, over what they should be */
    char path[32];
};

static struct efficiency flat(double frac)
{
    struct efficiency e = {.n = 1, .size = {1}, .frac = {frac}};
    efficiency_init(&e);
    return e;
}

static void scale(struct efficiency *e, double factor)
{
    for (int i = 0; i < e->n; i++)
        e->frac[i] *= factor;
}

static void scale_collective(struct collective_table *t, int op, double latency, double time)
{
    for (int i = 0; i < t->n[op]; i++) {
        struct collective_curve *c = &t->curve[op][i];
        for (int k = 0; k < c->n; k++)
            c->point[k].us =
                latency * c->latency_us + time * fmax(c->point[k].us - c->latency_us, 0);
        c->latency_us *= latency;
    }
}

/* Far from the base in all that a fit may set. */
static void invent_truth(struct profile *p)
{
    struct stage_profile *s = p->stage;
    s[STAGE_PROJ].launch_us = 14;
    s[STAGE_PROJ].hbm_frac = flat(0.88);
    scale(&s[STAGE_PROJ].flop_frac, 1.15);
    s[STAGE_ATTN_DECODE].launch_us = 15;
    s[STAGE_ATTN_DECODE].hbm_frac = flat(0.9);
    scale(&s[STAGE_ATTN_DECODE].flop_frac, 0.9);
    s[STAGE_ATTN_PREFILL].launch_us = 22;
    scale(&s[STAGE_ATTN_PREFILL].flop_frac, 0.8);
    s[STAGE_FFN].launch_us = 40;
    s[STAGE_FFN].hbm_frac = flat(0.93);
    s[STAGE_FFN].flop_frac = (struct efficiency){
        .n = 6, .size = {1, 64, 256, 1024, 4096, 16384}, .frac = {.02, .2, .4, .6, .7, .7}};
    efficiency_init(&s[STAGE_FFN].flop_frac);
    fit_as_replayed(&p->attention);
    p->attention.merge_us = 0.4;
    p->attention.combine_us = 6;
    p->expert_imbalance = 1.1;
    p->layer_launch_us = 11;
    p->step_launch_us = 0;
    p->transfer.weights_factor = 1.3;
    p->transfer.kv_factor = 1.6;
    p->transfer.regroup_hbm_frac = 0.4;
    p->transfer.repack_hbm_frac = 0;
    p->transfer.beside_frac = 0.75;
    p->transfer.link_interference = 1.2;
    p->transfer.regroup_interference = 2.5;
    for (int op = 0; op < COLL_COUNT; op++)
        scale_collective(&p->collectives, op, 0.45, 0.8);
}

static void bench_open(struct bench *b, const char *model, double noise)
{
    struct err err = ERR_NONE;
    *b = (struct bench){.noise = noise, .switch_stages = 1, .path = "/tmp/test_fit_XXXXXX"};
    model_load(&b->model, model, &err);
    cluster_load(&b->cluster, "h200x2", &err);
    profile_load(&b->base, b->cluster.profile, &err);
    profile_load(&b->truth, b->cluster.profile, &err);
    cr_assert_not(err.set, "%s", err.text);
    invent_truth(&b->truth);
    b->n_layouts = layout_parse_list(b->layout, layouts, &b->model, b->cluster.ranks, &err);
    cr_assert_gt(b->n_layouts, 0, "%s", err.text);
    b->cost = cost_new(&b->model, &b->cluster, &b->truth, b->layout, b->n_layouts, 64);
    rng_init(&b->rng, 7);
    b->out = fdopen(mkstemp(b->path), "w");
    struct plan_header h = {.ranks = 2, .layers = b->model.layers};
    snprintf(h.model, sizeof h.model, "%s", b->model.name);
    snprintf(h.cluster, sizeof h.cluster, "h200x2");
    snprintf(h.origin.device, sizeof h.origin.device, "a machine");
    plan_write_header(b->out, &h);
}

static void bench_release(struct bench *b)
{
    if (b->out != NULL)
        fclose(b->out);
    unlink(b->path);
    cost_free(b->cost);
    profile_release(&b->truth);
    profile_release(&b->base);
}

/* With an error of about the noise: the sum of twelve uniforms is nearly normal. */
static int64_t measured_ns(struct bench *b, int64_t ps)
{
    double deviate = -6;
    for (int i = 0; i < 12; i++)
        deviate += rng_f64(&b->rng);
    return (int64_t)((double)ps / 1e3 * (1 + b->noise * deviate) + 0.5);
}

static int items_of(struct batch_item *item, int n, int64_t ctx, int32_t q, bool uneven)
{
    for (int i = 0; i < n; i++)
        item[i] = (struct batch_item){ctx + 3 * i, q, uneven ? 0 : i % 2};
    return n;
}

static struct plan_times times_of(struct bench *b, const struct step_cost *c, int64_t exposed_ps,
                                  double factor)
{
    int64_t rest = c->step.a_ps - c->proj.a_ps - c->attn.a_ps - c->exchange.a_ps - c->ffn.a_ps;
    struct plan_times t = {.proj_ns = (int64_t)(factor * (double)measured_ns(b, c->proj.a_ps)),
                           .attn_ns = (int64_t)(factor * (double)measured_ns(b, c->attn.a_ps)),
                           .exchange_ns = measured_ns(b, c->exchange.a_ps),
                           .ffn_ns = measured_ns(b, c->ffn.a_ps),
                           .switch_exposed_ns = measured_ns(b, exposed_ps)};
    t.step_ns = t.proj_ns + t.attn_ns + t.exchange_ns + t.ffn_ns + t.switch_exposed_ns +
                measured_ns(b, rest);
    return t;
}

/* One line; `from` < 0 or the layout that a switch leaves. */
static void write_step(struct bench *b, int layout, int from, enum mechanism m,
                       const struct batch *batch)
{
    struct plan_row row[ITEMS_MAX];
    struct plan_step s = {.step = b->steps++, .row = row, .n_rows = batch->n, .is_measured = true};
    struct step_cost cost;
    struct transition t = {0};
    int64_t tokens[RANKS_MAX] = {0};
    for (int i = 0; i < batch->n; i++) {
        const struct batch_item *item = &batch->item[i];
        row[i] = (struct plan_row){i, item->owner, item->ctx_tokens, item->q};
        tokens[item->owner] += item->ctx_tokens - item->q;
    }
    snprintf(s.layout, sizeof s.layout, "%s", b->layout[layout].name);
    cost_step(b->cost, layout, batch, &cost);
    if (from >= 0) {
        snprintf(s.from, sizeof s.from, "%s", b->layout[from].name);
        snprintf(s.mechanism, sizeof s.mechanism, "%s", mechanism_names[m]);
        transition_cost(b->cost, from, layout, tokens, &cost, &t);
    }
    int64_t exposed_ps = transition_charge_ps(b->cost, layout, &t, m);
    double factor = from >= 0 && m == MECH_BLOCKING ? b->switch_stages : 1;
    s.meas_p50 = s.meas_p95 = times_of(b, &cost, exposed_ps, factor);
    plan_write_step(b->out, &s);
}

static void write_decode(struct bench *b, int n, int64_t ctx, bool uneven)
{
    struct batch_item item[ITEMS_MAX];
    struct batch batch = {.n_decode = n, .n = items_of(item, n, ctx, 1, uneven), .item = item};
    for (int l = 0; l < b->n_layouts; l++)
        write_step(b, l, -1, MECH_FREE, &batch);
}

/* A chunk, beside so many decoding requests. */
static void write_chunk(struct bench *b, int n_decode, int32_t q, int64_t ctx)
{
    struct batch_item item[ITEMS_MAX];
    int n = items_of(item, n_decode, 4000, 1, false);
    item[n] = (struct batch_item){ctx, q, 1};
    struct batch batch = {.n_decode = n, .n = n + 1, .item = item};
    for (int l = 0; l < b->n_layouts; l++)
        write_step(b, l, -1, MECH_FREE, &batch);
}

static void write_switches(struct bench *b, int n, int64_t ctx)
{
    static const enum mechanism tried[] = {MECH_BLOCKING, MECH_FREE, MECH_OVERLAPPED};
    struct batch_item item[ITEMS_MAX];
    struct batch batch = {.n_decode = n, .n = items_of(item, n, ctx, 1, false), .item = item};
    for (int from = 0; from < b->n_layouts; from++)
        for (int to = 0; to < b->n_layouts; to++)
            for (int m = 0; from != to && m < N(tried); m++)
                write_step(b, to, from, tried[m], &batch);
}

static void write_grid(struct bench *b)
{
    static const int requests[] = {1, 4, 16, 64};
    static const int64_t contexts[] = {1024, 16384, 65536};
    static const int32_t chunks[] = {64, 256, 1024, 2048};
    for (int i = 0; i < N(requests); i++)
        for (int k = 0; k < N(contexts); k++)
            write_decode(b, requests[i], contexts[k], false);
    write_decode(b, 7, 30000, true);
    for (int i = 0; i < N(chunks); i++) {
        write_chunk(b, 0, chunks[i], chunks[i]);
        write_chunk(b, 0, chunks[i], 32768);
    }
    write_chunk(b, 12, 512, 8192);
    write_switches(b, 16, 2048);
    write_switches(b, 16, 65536);
}

static void load(struct bench *b, struct fit_data *d)
{
    struct err err = ERR_NONE;
    fclose(b->out);
    b->out = NULL;
    fit_data_init(d, &b->model, &b->cluster);
    cr_assert_eq(fit_data_load(d, b->path, &err), 0, "%s", err.text);
    fit_data_compare(d);
}

static void run(struct bench *b, struct fit_data *d, struct fit *f)
{
    struct err err = ERR_NONE;
    load(b, d);
    cr_assert_eq(fit_run(f, d, &b->base, &err), 0, "%s", err.text);
}
/* A few decode steps, all bound by reads, and switches: quick. */
static void write_few(struct bench *b)
{
    for (int n = 1; n <= 4; n *= 2)
        write_decode(b, n, 20000, false);
    write_switches(b, 4, 20000);
}

static const struct fit_param *find(const struct fit *f, const char *name)
{
    for (int i = 0; i < f->n_params; i++)
        if (strcmp(f->param[i].name, name) == 0)
            return &f->param[i];
    cr_assert_fail("no parameter %s", name);
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How far apart the two profiles' steps are: the 95th percentile over shapes that no plan has. */
static double apart_p95(const struct bench *b, const struct profile *fitted)
{
    static const int requests[] = {2, 3, 11, 33, 50};
    static const int64_t contexts[] = {3000, 24000, 100000};
    static const int32_t chunks[] = {100, 180, 700, 1500};
    double apart[200];
    int n = 0;
    struct cost *cost = cost_new(&b->model, &b->cluster, fitted, b->layout, b->n_layouts, 64);
    for (int l = 0; l < b->n_layouts; l++)
        for (int i = 0; i < N(requests) + N(chunks); i++)
            for (int k = 0; k < N(contexts); k++) {
                bool chunk = i >= N(requests);
                struct batch_item item[ITEMS_MAX];
                int many = items_of(item, chunk ? 1 : requests[i], contexts[k],
                                    chunk ? chunks[i - N(requests)] : 1, false);
                struct batch batch = {chunk ? 0 : many, many, item};
                struct step_cost is, said;
                cost_step(b->cost, l, &batch, &is);
                cost_step(cost, l, &batch, &said);
                apart[n++] = fabs((double)said.step.a_ps / (double)is.step.a_ps - 1);
            }
    cost_free(cost);
    qsort(apart, (size_t)n, sizeof *apart, ascending);
    return apart[n * 95 / 100];
}

/* By its own account of how sure it is, and a percent for what the base's points below 64 rows do.
 */
static void expect_near(const struct fit_param *q, double truth)
{
    if (q->state == FIT_FITTED)
        cr_expect_leq(fabs(q->value - truth), 4 * q->sigma + 0.01 * truth, "%s: %g (%g), not %g",
                      q->name, q->value, q->sigma, truth);
}

static void expect_collectives_near(const struct fit *f)
{
    int n = 0;
    for (int i = 0; i < f->n_params; i++) {
        const struct fit_param *q = &f->param[i];
        if (q->stage != FIT_EXCHANGE)
            continue;
        cr_expect_eq(q->state, FIT_FITTED, "%s", q->name);
        expect_near(q, q->target == FIT_LATENCY ? 0.45 * q->base : q->base / 0.8);
        n++;
    }
    cr_expect_eq(n, 2 * COLL_COUNT);
    cr_expect(f->fits_collectives);
}

static void expect_truth(const struct fit *f)
{
    static const struct {
        const char *name;
        double value;
    } truth[] = {
        {"proj.launch_us", 14},
        {"proj.hbm_frac", 0.88},
        {"attn_decode.launch_us", 15},
        {"attn_decode.hbm_frac", 0.9},
        {"attn_prefill.launch_us", 22},
        {"attn_prefill.flop_frac[64]", 0.24},
        {"attn_prefill.flop_frac[256]", 0.36},
        {"ffn.flop_frac[1024]", 0.6},
        {"layer_launch_us", 11},
        {"step_launch_us", 0},
        {"transfer.weights_factor", 1.3},
        {"transfer.kv_factor", 1.6},
        {"transfer.regroup_hbm_frac", 0.4},
        {"transfer.beside_frac", 0.75},
    };
    for (int i = 0; i < N(truth); i++)
        expect_near(find(f, truth[i].name), truth[i].value);
    expect_collectives_near(f);
}

static const char *const slices[] = {"deepseek-r1-slice", "llama-3.1-405b-slice"};

Test(fit, predicts_an_unknown_machine, .timeout = 300)
{
    for (int i = 0; i < N(slices); i++) {
        struct bench b;
        struct fit_data d;
        struct fit f;
        bench_open(&b, slices[i], 0.01);
        write_grid(&b);
        run(&b, &d, &f);
        cr_expect_gt(apart_p95(&b, &b.base), 0.25, "%s: the base knows it already", slices[i]);
        cr_expect_lt(apart_p95(&b, &f.profile), 0.02, "%s", slices[i]);
        cr_expect_lt(f.errors[FIT_STEP][LAYOUT_MAX].abs_p95, 0.025);
        cr_expect_lt(f.held_out[FIT_STEP][LAYOUT_MAX].abs_p95, 0.03);
        cr_expect_eq(f.errors[FIT_STEP][LAYOUT_MAX].n, 5 * (13 + 8 + 1));
        cr_expect_eq(f.held_out[FIT_STEP][LAYOUT_MAX].n, 5 * (22 / 5));
        expect_truth(&f);
        fit_release(&f);
        fit_data_release(&d);
        bench_release(&b);
    }
}

/* At most four rows: whatever products and prompts cost, no step says. */
Test(fit, keeps_what_is_not_in_the_data)
{
    static const char *const kept[] = {
        "proj.flop_frac[64]", "attn_prefill.launch_us", "attn_prefill.flop_frac[64]",
        "ffn.flop_frac[64]",  "all_reduce.gb_per_s",
    };
    struct bench b;
    struct fit_data d;
    struct fit f;
    bench_open(&b, "deepseek-r1-slice", 0.01);
    write_few(&b);
    run(&b, &d, &f);
    for (int i = 0; i < N(kept); i++) {
        const struct fit_param *q = find(&f, kept[i]);
        cr_expect_eq(q->state, FIT_KEPT, "%s: %g (%g)", kept[i], q->value, q->sigma);
        cr_expect_eq(q->value, q->base, "%s", kept[i]);
    }
    const struct efficiency *is = &f.profile.stage[STAGE_FFN].flop_frac,
                            *was = &b.base.stage[STAGE_FFN].flop_frac;
    for (double rows = 1; rows <= 65536; rows *= 2)
        cr_expect_float_eq(efficiency_at(is, rows), efficiency_at(was, rows), 1e-12);
    cr_expect_eq(find(&f, "attn_decode.launch_us")->state, FIT_FITTED);
    fit_release(&f);
    fit_data_release(&d);
    bench_release(&b);
}

/* What the profile would be as a file. */
static char *text_of(const struct fit *f, const struct fit_data *d, const struct profile *base)
{
    char *text;
    size_t size;
    int n;
    FILE *out = open_memstream(&text, &size);
    char **source = fit_sources(f, d, base, &n);
    profile_write(&f->profile, (const char *const *)source, n, out);
    collective_write(&f->profile.collectives, out);
    for (int i = 0; i < n; i++)
        free(source[i]);
    free(source);
    fclose(out);
    return text;
}

/* Two fits to plans that are equal but for the stages of switching steps; their text compared from
 * the first stage on, since the paths differ. */
Test(fit, is_repeatable_and_takes_stages_from_steps_that_do_not_switch)
{
    char *text[2];
    for (int i = 0; i < 2; i++) {
        struct bench b;
        struct fit_data d;
        struct fit f;
        bench_open(&b, "llama-3.1-405b-slice", 0.01);
        b.switch_stages = i ? 10 : 1;
        write_few(&b);
        run(&b, &d, &f);
        text[i] = text_of(&f, &d, &b.base);
        cr_expect(strstr(text[i], "a machine, 75 steps measured (15 without a switch)") != NULL,
                  "%s", text[i]);
        cr_expect(strstr(text[i], "assumed: as in h200-analytic: head, ") != NULL);
        cr_expect_eq(f.errors[FIT_TRANSFER][LAYOUT_MAX].n, 18, "tp and dp reach dop by discards");
        fit_release(&f);
        fit_data_release(&d);
        bench_release(&b);
    }
    cr_expect_str_eq(strstr(text[0], "\"stages\""), strstr(text[1], "\"stages\""));
    free(text[0]);
    free(text[1]);
}

Test(fit, refuses_data_in_which_every_step_switches)
{
    struct bench b;
    struct fit_data d;
    struct fit f;
    struct err err = ERR_NONE;
    bench_open(&b, "llama-3.1-405b-slice", 0);
    write_switches(&b, 2, 1000);
    load(&b, &d);
    cr_expect_eq(fit_run(&f, &d, &b.base, &err), -1);
    cr_expect(strstr(err.text, "every measured step switches") != NULL, "%s", err.text);
    fit_data_release(&d);
    bench_release(&b);
}
