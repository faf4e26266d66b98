/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits that are told how collectives grow: steps of few rows and switches, priced by the cost model
 * under a profile that the fit does not know.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/mem.h"
#include "sim/cost/transition.h"
#include "sim/study/fit.h"

enum { DECODES_MAX = 4, CTX_TOKENS = 20000 };

/* Of the machine, over the base's: latencies by themselves and among a step's work, and growth. */
static const double alone_latency = 0.1, step_latency = 0.45, growth = 0.8;
static const double weights_factor = 1.3, kv_factor = 1.6;

struct bench {
    struct model model;
    struct cluster cluster;
    struct profile base, truth;
    struct cost *cost;
    struct fit_data data;
};

static void scale(struct collective_table *t, int op, double latency)
{
    for (int i = 0; i < t->n[op]; i++) {
        struct collective_curve *c = &t->curve[op][i];
        for (int k = 0; k < c->n; k++)
            c->point[k].us = latency * c->latency_us + growth * (c->point[k].us - c->latency_us);
        c->latency_us *= latency;
    }
}

static void add_step(struct bench *b, int layout, int from, int n)
{
    struct fit_data *d = &b->data;
    struct fit_step s = {.layout = layout, .from = from, .blocks = from >= 0};
    struct step_cost c;
    struct transition t;
    int64_t tokens[RANKS_MAX] = {0};
    s.item = xcalloc((size_t)n, sizeof *s.item);
    for (int i = 0; i < n; i++) {
        s.item[i] = (struct batch_item){CTX_TOKENS, 1, i % 2};
        tokens[i % 2] += CTX_TOKENS - 1;
    }
    s.batch = (struct batch){.n_decode = n, .n = n, .item = s.item};
    cost_step(b->cost, layout, &s.batch, &c);
    s.meas = (struct plan_times){.step_ns = c.step.a_ps / 1000,
                                 .proj_ns = c.proj.a_ps / 1000,
                                 .attn_ns = c.attn.a_ps / 1000,
                                 .exchange_ns = c.exchange.a_ps / 1000,
                                 .ffn_ns = c.ffn.a_ps / 1000};
    if (from >= 0) {
        transition_cost(b->cost, from, layout, tokens, &c, &t);
        s.meas.switch_exposed_ns = t.blocking_ps / 1000;
    }
    d->step = xgrow(d->step, &d->cap, d->n + 1, sizeof *d->step);
    d->step[d->n++] = s;
}

static void bench_open(struct bench *b)
{
    struct err err = ERR_NONE;
    *b = (struct bench){0};
    model_load(&b->model, "deepseek-r1-slice", &err);
    cluster_load(&b->cluster, "h200x2", &err);
    profile_load(&b->base, "h200-analytic", &err);
    profile_load(&b->truth, "h200-analytic", &err);
    cr_assert_not(err.set, "%s", err.text);
    fit_as_replayed(&b->truth.attention);
    b->truth.transfer.weights_factor = weights_factor;
    b->truth.transfer.kv_factor = kv_factor;
    b->truth.transfer.regroup_hbm_frac = 0.4;
    b->truth.transfer.repack_hbm_frac = 0;
    for (int op = 0; op < COLL_COUNT; op++)
        scale(&b->truth.collectives, op, step_latency);
    fit_data_init(&b->data, &b->model, &b->cluster);
    b->data.n_layouts = layout_parse_list(b->data.layout, "tp,cp,dp,dop,helix:kvp=2,tpa=1",
                                          &b->model, b->cluster.ranks, &err);
    int n = b->data.n_layouts;
    b->cost = cost_new(&b->model, &b->cluster, &b->truth, b->data.layout, n, 64);
    for (int to = 0; to < n; to++)
        for (int from = -1; from < n; from++)
            for (int rows = 1; rows <= DECODES_MAX && from != to; rows++)
                add_step(b, to, from, rows);
}

static void bench_release(struct bench *b)
{
    fit_data_release(&b->data);
    cost_free(b->cost);
    profile_release(&b->truth);
    profile_release(&b->base);
}

/* Measured over 2 ranks, but for all_to_all if that is said, which a machine of 4 did. */
static void load_collectives(struct bench *b, bool with_all_to_all)
{
    char path[] = "/tmp/test_fit_XXXXXX";
    struct err err = ERR_NONE;
    struct collective_table t = collective_copy(&b->base.collectives);
    FILE *out = fdopen(mkstemp(path), "w");
    fputs("# collectives of a machine\nop,ranks,bytes,us\n", out);
    for (int op = 0; op < COLL_COUNT; op++) {
        int ranks = op == COLL_ALL_TO_ALL && !with_all_to_all ? 4 : 2;
        scale(&t, op, alone_latency);
        for (double bytes = 1024; bytes <= 1 << 28; bytes *= 2)
            fprintf(out, "%s,%d,%.0f,%.9g\n", collective_names[op], ranks, bytes,
                    1e6 * collective_s(&t, (enum collective)op, ranks, bytes));
    }
    fclose(out);
    cr_assert_eq(fit_data_load_collectives(&b->data, path, &err), 0, "%s", err.text);
    collective_release(&t);
    unlink(path);
}

static const struct fit_param *find(const struct fit *f, const char *op, const char *name)
{
    char full[48];
    snprintf(full, sizeof full, "%s.%s", op, name);
    for (int i = 0; i < f->n_params; i++)
        if (strcmp(f->param[i].name, full) == 0)
            return &f->param[i];
    cr_assert_fail("no parameter %s", full);
    return NULL;
}

static void expect_within(const struct fit_param *q, double want, double frac)
{
    cr_expect(q->state == FIT_FITTED && q->value > want * (1 - frac) &&
                  q->value < want * (1 + frac),
              "%s: %g, not %g", q->name, q->value, want);
}

/* The measured curve, higher by as much at every size; over 2 ranks by what the latency grew. */
static void expect_growth_as_measured(const struct bench *b, const struct fit *f, int op)
{
    const struct fit_param *latency = find(f, collective_names[op], "latency_us");
    struct collective_table was = collective_rebase(&b->base.collectives, &b->data.collectives, 2);
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        double more_us = 0;
        for (double bytes = 1024; bytes <= 1 << 28; bytes *= 2) {
            double us =
                1e6 * (collective_s(&f->profile.collectives, (enum collective)op, ranks, bytes) -
                       collective_s(&was, (enum collective)op, ranks, bytes));
            more_us = bytes > 1024 ? more_us : ranks > 2 ? us : latency->value - latency->base;
            cr_expect_float_eq(us, more_us, 1e-6, "%s over %d, %g bytes: %g us more, not %g",
                               latency->name, ranks, bytes, us, more_us);
        }
        cr_expect_gt(more_us, 1);
    }
    collective_release(&was);
}

static void expect_sources(const struct bench *b, const struct fit *f)
{
    int n;
    char **source = fit_sources(f, &b->data, &b->base, &n);
    cr_expect(strstr(source[0], ": collectives of a machine; what a step adds") != NULL, "%s",
              source[0]);
    for (int i = 0; i < n; i++)
        free(source[i]);
    free(source);
}

/* Few rows say nothing of large sizes; switches, priced there, get their factors all the same. */
Test(fit_collectives, growth_is_as_measured_and_steps_say_latencies)
{
    struct bench b;
    struct fit f;
    struct err err = ERR_NONE;
    bench_open(&b);
    load_collectives(&b, true);
    cr_assert_eq(fit_run(&f, &b.data, &b.base, &err), 0, "%s", err.text);
    for (int op = 0; op < COLL_COUNT; op++) {
        const struct fit_param *speed = find(&f, collective_names[op], "gb_per_s");
        const struct fit_param *latency = find(&f, collective_names[op], "latency_us");
        cr_expect(speed->state == FIT_SET && speed->value == speed->base, "%s", speed->name);
        double base_us = 1e6 * collective_latency_s(&b.base.collectives, (enum collective)op, 2);
        expect_within(latency, latency->base + (step_latency - alone_latency) * base_us, 0.02);
        expect_growth_as_measured(&b, &f, op);
    }
    expect_within(find(&f, "transfer", "weights_factor"), weights_factor, 0.02);
    expect_within(find(&f, "transfer", "kv_factor"), kv_factor, 0.02);
    cr_expect(f.fits_collectives);
    expect_sources(&b, &f);
    fit_release(&f);
    bench_release(&b);
}

Test(fit_collectives, what_was_not_measured_over_these_ranks_is_fitted_as_ever)
{
    struct bench b;
    struct fit f;
    struct err err = ERR_NONE;
    bench_open(&b);
    load_collectives(&b, false);
    cr_assert_eq(fit_run(&f, &b.data, &b.base, &err), 0, "%s", err.text);
    const struct fit_param *latency = find(&f, "all_to_all", "latency_us");
    cr_expect_neq(find(&f, "all_to_all", "gb_per_s")->state, FIT_SET);
    cr_expect_eq(find(&f, "all_gather", "gb_per_s")->state, FIT_SET);
    double base_us = 1e6 * collective_latency_s(&b.base.collectives, COLL_ALL_TO_ALL, 2);
    cr_expect_float_eq(latency->base / base_us, 1, 0.1, "%g", latency->base);
    fit_release(&f);
    bench_release(&b);
}
