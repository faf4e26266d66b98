/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plans hold that put the simulator on trial: which shapes, in what order, and that their
 * predictions are the cost model's.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/cost/transition.h"
#include "sim/study/trial_plans.h"

#define ALL "tp,cp,dp,dop,helix:kvp=2,tpa=1"

struct bench {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
    struct trial_setting setting;
};

/* memory_frac 0: the cluster's own. */
static void bench_init(struct bench *b, const char *model, const char *layouts, double memory_frac)
{
    struct err err = ERR_NONE;
    model_load(&b->model, model, &err);
    cluster_load(&b->cluster, "h200x2", &err);
    profile_load(&b->profile, b->cluster.profile, &err);
    cr_assert_not(err.set, "%s", err.text);
    if (memory_frac > 0)
        b->cluster.memory_frac = memory_frac;
    b->n_layouts = layout_parse_list(b->layout, layouts, &b->model, b->cluster.ranks, &err);
    cr_assert_gt(b->n_layouts, 0, "%s", err.text);
    b->cost =
        cost_new(&b->model, &b->cluster, &b->profile, b->layout, b->n_layouts, TRIAL_PAGE_TOKENS);
    b->setting = (struct trial_setting){b->cost, "h200x2", 5};
}

static void bench_release(struct bench *b)
{
    cost_free(b->cost);
    profile_release(&b->profile);
}

static int layout_of(const struct bench *b, const char *name)
{
    for (int l = 0; l < b->n_layouts; l++)
        if (strcmp(b->layout[l].name, name) == 0)
            return l;
    return -1;
}

static bool is_steady(const struct plan_step *s)
{
    return s->from[0] == '\0';
}

static int64_t tokens_of(const struct plan_step *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->n_rows; i++)
        sum += s->row[i].ctx_tokens;
    return sum;
}

/* Requests of the step on one owner. */
static int count_owned(const struct plan_step *s, int owner)
{
    int n = 0;
    for (int i = 0; i < s->n_rows; i++)
        n += s->row[i].owner == owner;
    return n;
}

/* The row of a request in the nearest step before, or NULL. */
static const struct plan_row *row_before(const struct plan *p, int step, int64_t req)
{
    for (int i = step - 1; i >= 0; i--)
        for (int k = 0; k < p->step[i].n_rows; k++)
            if (p->step[i].row[k].req == req)
                return &p->step[i].row[k];
    return NULL;
}

/* What every such plan keeps to. Returns how many requests it has. */
static int expect_in_order(const struct plan *p)
{
    int requests = 0;
    for (int i = 0; i < p->n; i++) {
        const struct plan_step *s = &p->step[i], *last = i > 0 ? s - 1 : NULL;
        cr_expect_eq(s->step, i);
        cr_expect_eq(s->at_ns, last ? last->at_ns + last->pred.step_ns : 0);
        cr_expect_str_eq(s->from,
                         last != NULL && strcmp(last->layout, s->layout) != 0 ? last->layout : "");
        cr_expect_eq(s->mechanism[0] == '\0', is_steady(s));
        for (int k = 0; k < s->n_rows; k++) {
            const struct plan_row *r = &s->row[k], *before = row_before(p, i, r->req);
            requests += before == NULL;
            if (before == NULL)
                continue;
            cr_expect_eq(r->owner, before->owner);
            cr_expect_eq(r->q, before->q);
            cr_expect_eq(r->ctx_tokens, before->ctx_tokens, "step %d", i);
        }
    }
    return requests;
}

static void expect_predicted(const struct bench *b, const struct plan_step *s)
{
    struct batch_item item[128];
    struct batch batch = {.item = item};
    struct step_cost cost;
    struct transition t;
    int64_t tokens[RANKS_MAX] = {0}, exposed_ps = 0;
    int to = layout_of(b, s->layout), from = layout_of(b, s->from);
    bool charged = strcmp(s->mechanism, "blocking") == 0 || strcmp(s->mechanism, "overlapped") == 0;
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        item[batch.n++] = (struct batch_item){r->ctx_tokens, (int32_t)r->q, r->owner};
        batch.n_decode += r->q == 1;
        tokens[r->owner] += r->ctx_tokens - r->q;
    }
    cost_step(b->cost, to, &batch, &cost);
    if (from >= 0)
        transition_cost(b->cost, from, to, tokens, &cost, &t);
    if (strcmp(s->mechanism, "blocking") == 0)
        exposed_ps = t.blocking_ps;
    if (strcmp(s->mechanism, "overlapped") == 0)
        exposed_ps = t.exposed_ps;
    cr_expect_eq(s->pred.switch_exposed_ns, (exposed_ps + 500) / 1000);
    cr_expect_eq(s->pred.switch_first_ns, charged ? (t.first_ps + 500) / 1000 : 0);
    cr_expect_eq(s->pred.step_ns, (cost.step.a_ps + exposed_ps + 500) / 1000);
    cr_expect_eq(s->pred.proj_ns, (cost.proj.a_ps + 500) / 1000);
    cr_expect_eq(s->pred.attn_ns, (cost.attn.a_ps + 500) / 1000);
    cr_expect_eq(s->pred.exchange_ns, (cost.exchange.a_ps + 500) / 1000);
    cr_expect_eq(s->pred.ffn_ns, (cost.ffn.a_ps + 500) / 1000);
}

static struct plan make_grid(const struct bench *b, int64_t max_tokens)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(trial_plans_grid(&p, &b->setting, max_tokens, &err), 0, "%s", err.text);
    return p;
}

/* 32 shapes of decode (7 batches at 1K, 4K and 16K, 6 at 64K, 5 at 128K: a context is three
 * quarters of that in the mean), 5 mixed, 8 uneven and 19 of prefill (2,048 rows at 128K take too
 * long); each under 5 layouts with 4 changes between; then three tours of 20 and their first steps:
 * 64 x 9 + 3 x 21. Requests: 3 x 64 + 32 + 16 decode, 6 + 19 with chunks, 4 x 16 uneven, 3 x 16 on
 * tour. */
Test(trial_plans, the_grid_has_every_shape_under_every_layout)
{
    struct bench b;
    int steady[LAYOUT_MAX] = {0};
    bench_init(&b, "deepseek-r1-slice", ALL, 0);
    struct plan p = make_grid(&b, 2 << 20);
    cr_expect_eq(p.n, 639);
    cr_expect_eq(expect_in_order(&p), 377);
    for (int i = 0; i < p.n; i++) {
        cr_expect_leq(tokens_of(&p.step[i]), 2 << 20);
        expect_predicted(&b, &p.step[i]);
        steady[layout_of(&b, p.step[i].layout)] += is_steady(&p.step[i]);
    }
    for (int l = 0; l < b.n_layouts; l++) /* tours end in the first, so two begin there */
        cr_expect_eq(steady[l], l == 0 ? 66 : 64, "%s: %d", b.layout[l].name, steady[l]);
    cr_expect_str_eq(p.header.model, "deepseek-r1-slice");
    cr_expect_str_eq(p.header.cluster, "h200x2");
    cr_expect_eq(p.header.ranks, 2);
    cr_expect_eq(p.header.layers, 4);
    cr_expect_eq(p.header.seed, 5);
    cr_expect_eq(p.header.origin.device[0], '\0');
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, the_grid_blocks_in_every_direction_at_three_contexts)
{
    struct bench b;
    int seen[LAYOUT_MAX][LAYOUT_MAX] = {0};
    bench_init(&b, "deepseek-r1-slice", ALL, 0);
    struct plan p = make_grid(&b, 2 << 20);
    for (int i = 0; i < p.n; i++)
        if (strcmp(p.step[i].mechanism, "blocking") == 0)
            seen[layout_of(&b, p.step[i].from)][layout_of(&b, p.step[i].layout)]++;
    for (int from = 0; from < 5; from++)
        for (int to = 0; to < 5; to++)
            cr_expect_eq(seen[from][to], from == to ? 0 : 3);
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, the_grid_has_owners_with_all_and_with_none)
{
    struct bench b;
    int all = 0, most = 0;
    bench_init(&b, "llama-3.1-405b-slice", "tp,dp", 0);
    struct plan p = make_grid(&b, 2 << 20);
    for (int i = 0; i < p.n; i++) {
        const struct plan_step *s = &p.step[i];
        all += is_steady(s) && count_owned(s, 0) == 16 && count_owned(s, 1) == 0;
        most += is_steady(s) && count_owned(s, 0) == 12 && count_owned(s, 1) == 4;
    }
    cr_expect_eq(all, 2 * 2, "two contexts under two layouts, got %d", all);
    cr_expect_eq(most, 2 * 2, "two contexts under two layouts, got %d", most);
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, the_grid_leaves_out_layouts_that_do_not_fit)
{
    struct bench b;
    int under[2] = {0};
    /* A fifth of 140 GiB, less 4 GiB and 14 GiB of weights, holds about 0.65M tokens of 16 KiB: too
     * few for an owner of 16 requests of 48K, enough for a shard of half the positions. */
    bench_init(&b, "llama-3.1-405b-slice", "cp,dp", 0.2);
    struct plan p = make_grid(&b, 2 << 20);
    for (int i = 0; i < p.n; i++)
        if (is_steady(&p.step[i]) && count_owned(&p.step[i], 0) == 16 &&
            tokens_of(&p.step[i]) > 700000)
            under[layout_of(&b, p.step[i].layout)]++;
    cr_expect_eq(under[0], 1);
    cr_expect_eq(under[1], 0);
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, the_grid_keeps_to_the_tokens_allowed)
{
    struct bench b;
    bench_init(&b, "tiny-mla", ALL, 0);
    struct plan p = make_grid(&b, 4096);
    for (int i = 0; i < p.n; i++)
        cr_expect_leq(tokens_of(&p.step[i]), 4096);
    /* Decode: 1, 2 and 4 at 1K, 1 at 4K; no mixed nor uneven; five first chunks; one tour with a
     * batch of 1. */
    cr_expect_eq(p.n, 9 * 9 + 21);
    plan_release(&p);

    p = make_grid(&b, 64);
    cr_expect_eq(p.n, 9);
    cr_expect_eq(p.step[0].row[0].q, 64);
    cr_expect_eq(p.step[8].row[0].ctx_tokens, 64);
    plan_release(&p);

    struct err err = ERR_NONE;
    cr_expect_eq(trial_plans_grid(&p, &b.setting, 63, &err), -1);
    cr_expect_neq(strstr(err.text, "--max-tokens"), NULL, "%s", err.text);
    bench_release(&b);
}

static const struct trial_switches three_ways = {
    .batch = 5, .ctx_tokens = 2000, .spread_frac = 0.5, .repeats = 3};

static struct plan make_switches(const struct bench *b, const struct trial_switches *s)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(trial_plans_switches(&p, &b->setting, s, &err), 0, "%s", err.text);
    return p;
}

Test(trial_plans, switches_try_every_direction_three_ways)
{
    static const char *const mechanism[] = {"free", "blocking", "overlapped"};
    struct bench b;
    int seen[3][LAYOUT_MAX][LAYOUT_MAX] = {0};
    bench_init(&b, "deepseek-r1-slice", ALL, 0);
    struct plan p = make_switches(&b, &three_ways);
    cr_assert_eq(p.n, 2 * 3 * 20 * 3);
    cr_expect_eq(expect_in_order(&p), 5);
    for (int i = 0; i < p.n; i += 2) {
        const struct plan_step *before = &p.step[i], *s = &p.step[i + 1];
        cr_expect(is_steady(before) || strcmp(before->mechanism, "free") == 0);
        cr_expect_str_eq(s->from, before->layout);
        expect_predicted(&b, before);
        expect_predicted(&b, s);
        for (int m = 0; m < 3; m++)
            if (strcmp(s->mechanism, mechanism[m]) == 0)
                seen[m][layout_of(&b, s->from)][layout_of(&b, s->layout)]++;
        if (i % 120 != 118) /* the end of a round */
            continue;
        for (int m = 0; m < 3; m++)
            for (int from = 0; from < 5; from++)
                for (int to = 0; to < 5; to++)
                    cr_expect_eq(seen[m][from][to], from == to ? 0 : i / 120 + 1);
    }
    for (int k = 0; k < 5; k++) {
        const struct plan_row *r = &p.step[0].row[k];
        cr_expect(r->ctx_tokens >= 1000 && r->ctx_tokens <= 3000);
        cr_expect_eq(r->owner, k % 2);
        cr_expect(k == 0 || r->ctx_tokens != r[-1].ctx_tokens);
    }
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, switches_may_have_a_chunk_of_each_owner)
{
    struct bench b;
    struct trial_switches s = three_ways;
    bench_init(&b, "deepseek-r1-slice", "tp,dp", 0);
    s.chunk_rows = 512;
    struct plan p = make_switches(&b, &s);
    for (int i = 0; i < p.n; i++) {
        const struct plan_row *row = p.step[i].row;
        cr_assert_eq(p.step[i].n_rows, 5);
        for (int k = 0; k < 5; k++)
            cr_expect_eq(row[k].q, k < 3 ? 1 : 512);
        cr_expect_neq(row[3].owner, row[4].owner);
    }
    plan_release(&p);
    bench_release(&b);
}

/* Steps of both in which they have the same layout. */
static int count_same(const struct plan *p, const struct plan *q)
{
    int n = 0;
    for (int i = 0; i < p->n && i < q->n; i++)
        n += strcmp(p->step[i].layout, q->step[i].layout) == 0 &&
             tokens_of(&p->step[i]) == tokens_of(&q->step[i]);
    return n;
}

Test(trial_plans, switches_depend_on_the_seed_alone)
{
    struct bench b;
    bench_init(&b, "tiny-gqa", ALL, 0);
    struct plan p = make_switches(&b, &three_ways), q = make_switches(&b, &three_ways);
    cr_expect_eq(count_same(&p, &q), p.n);
    plan_release(&q);
    b.setting.seed = 6;
    q = make_switches(&b, &three_ways);
    cr_expect_lt(count_same(&p, &q), p.n / 2);
    plan_release(&p);
    plan_release(&q);
    bench_release(&b);
}

Test(trial_plans, switches_refuse_what_cannot_be_tried)
{
    struct bench b;
    struct plan p = {.n = 42};
    struct err err = ERR_NONE;
    struct trial_switches s = three_ways;
    bench_init(&b, "deepseek-r1-slice", "dp", 0);
    cr_expect_eq(trial_plans_switches(&p, &b.setting, &s, &err), -1);
    cr_expect_neq(strstr(err.text, "two layouts"), NULL, "%s", err.text);
    bench_release(&b);

    err = ERR_NONE;
    bench_init(&b, "deepseek-r1-slice", "dop,tp", 0);
    s.batch = 512;
    s.ctx_tokens = 64 << 10; /* 32M tokens at 4,608 bytes: 155 GB on each rank under tp */
    cr_expect_eq(trial_plans_switches(&p, &b.setting, &s, &err), -1);
    cr_expect_neq(strstr(err.text, "under tp"), NULL, "%s", err.text);
    bench_release(&b);

    err = ERR_NONE;
    bench_init(&b, "tiny-mla", "dop,tp", 0);
    b.model.max_context_tokens = 3000;
    cost_free(b.cost);
    b.cost = cost_new(&b.model, &b.cluster, &b.profile, b.layout, 2, TRIAL_PAGE_TOKENS);
    b.setting.cost = b.cost;
    s = (struct trial_switches){.batch = 1, .ctx_tokens = 3000, .repeats = 1};
    struct plan made = make_switches(&b, &s); /* two directions, three ways: 12 steps */
    plan_release(&made);
    s.ctx_tokens = 3001;
    cr_expect_eq(trial_plans_switches(&p, &b.setting, &s, &err), -1);
    cr_expect_neq(strstr(err.text, "3001"), NULL, "%s", err.text);
    cr_expect_eq(p.n, 42);
    bench_release(&b);
}

/* Two requests and a chunk, over five steps of a run under tp. */
static struct plan_row source_rows[][3] = {
    {{7, 0, 6400, 1}, {8, 1, 100, 100}}, {{7, 0, 6401, 1}, {8, 1, 300, 200}},
    {{7, 0, 6402, 1}, {8, 1, 301, 1}},   {{7, 0, 6403, 1}, {8, 1, 302, 1}},
    {{7, 0, 6600, 1}, {8, 1, 303, 1}},
};
static struct plan_step source_steps[5];

static struct plan source_plan(void)
{
    for (int i = 0; i < 5; i++) {
        source_steps[i] = (struct plan_step){.step = 10 + i, .row = source_rows[i], .n_rows = 2};
        strcpy(source_steps[i].layout, "tp");
    }
    return (struct plan){.header = {.ranks = 2}, .step = source_steps, .n = 5};
}

static struct plan make_compare(const struct bench *b, int64_t every, int *left_out)
{
    struct plan p, of = source_plan();
    struct err err = ERR_NONE;
    struct trial_source source = {"run.jsonl", &of, every};
    cr_assert_eq(trial_plans_compare(&p, &b->setting, &source, left_out, &err), 0, "%s", err.text);
    return p;
}

Test(trial_plans, compare_runs_steps_under_each_layout_in_turn)
{
    static const struct {
        const char *layout, *from;
        int64_t ctx_tokens[2], q;
    } expected[] = {
        {"tp", "", {6400, 100}, 100}, {"dp", "tp", {6400, 100}, 100}, {"dp", "", {6400, 100}, 100},
        {"dp", "", {6402, 301}, 1},   {"tp", "dp", {6402, 301}, 1},   {"tp", "", {6402, 301}, 1},
        {"tp", "", {6600, 303}, 1},   {"dp", "tp", {6600, 303}, 1},   {"dp", "", {6600, 303}, 1},
    };
    struct bench b;
    int left_out = -1;
    bench_init(&b, "tiny-mla", "tp,dp", 0);
    struct plan p = make_compare(&b, 2, &left_out);
    cr_assert_eq(p.n, 9);
    cr_expect_eq(left_out, 0);
    for (int i = 0; i < p.n; i++) {
        const struct plan_step *s = &p.step[i];
        cr_expect_str_eq(s->layout, expected[i].layout);
        cr_expect_str_eq(s->from, expected[i].from);
        cr_expect_eq(s->n_rows, 2);
        for (int k = 0; k < 2; k++)
            cr_expect_eq(s->row[k].ctx_tokens, expected[i].ctx_tokens[k], "step %d, row %d: %lld",
                         i, k, (long long)s->row[k].ctx_tokens);
        cr_expect_eq(s->row[1].q, expected[i].q);
        cr_expect_eq(s->row[1].req, 8);
        cr_expect_eq(s->row[1].owner, 1);
        expect_predicted(&b, s);
    }
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, compare_counts_what_memory_forbids)
{
    struct bench b;
    int left_out = -1;
    bench_init(&b, "llama-3.1-405b-slice", "tp,dp", 0.12); /* not even dp's weights */
    struct plan p = make_compare(&b, 1, &left_out);
    cr_expect_eq(left_out, 5);
    cr_expect_eq(p.n, 5);
    for (int i = 0; i < p.n; i++)
        cr_expect_str_eq(p.step[i].layout, "tp");
    plan_release(&p);
    bench_release(&b);
}

Test(trial_plans, compare_refuses_other_ranks_and_steps_beyond_the_clock)
{
    static struct plan_row large[] = {
        {1, 0, 1 << 24, 1 << 19}, {2, 1, 1 << 24, 1 << 19}, {3, 1, 1 << 20, 1}};
    struct bench b;
    struct plan p = {.n = 42}, of = source_plan();
    struct err err = ERR_NONE;
    struct trial_source source = {"run.jsonl", &of, 1};
    int left_out = -1;
    bench_init(&b, "tiny-mla", "tp,dp", 0);
    of.header.ranks = 4;
    cr_expect_eq(trial_plans_compare(&p, &b.setting, &source, &left_out, &err), -1);
    cr_expect_neq(strstr(err.text, "run.jsonl:1: the plan is for 4 ranks"), NULL, "%s", err.text);

    err = ERR_NONE;
    of.header.ranks = 2;
    of.step[4].row = large;
    of.step[4].n_rows = 3;
    cr_expect_eq(trial_plans_compare(&p, &b.setting, &source, &left_out, &err), -1);
    cr_expect_neq(strstr(err.text, "run.jsonl: step 14: "), NULL, "%s", err.text);

    err = ERR_NONE;
    large[0].ctx_tokens++;
    of.step[4].n_rows = 1;
    cr_expect_eq(trial_plans_compare(&p, &b.setting, &source, &left_out, &err), -1);
    cr_expect_eq(p.n, 42);
    cr_expect_eq(left_out, -1);
    bench_release(&b);
}
