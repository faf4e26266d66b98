/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator judged by measurements made up by hand, one request to a step.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/study/validation.h"

enum { LINES_MAX = 64 };

/* A step of a plan, and what a replay of it measured. */
struct line {
    const char *layout, *from, *mechanism; /* from and mechanism NULL without a switch */
    int64_t req, ctx_tokens;
    struct plan_times pred, meas; /* step, proj, attn, exchange, ffn, exposed, first */
};

struct trial {
    struct plan plan, measured;
    struct plan_step planned[LINES_MAX], seen[LINES_MAX];
    struct plan_row row[LINES_MAX];
    struct validation v;
    struct err err;
};

static void set_name(char name[PLAN_NAME_MAX], const char *text)
{
    snprintf(name, PLAN_NAME_MAX, "%s", text ? text : "");
}

static void make_plans(struct trial *t, const struct line *line, int n)
{
    cr_assert_leq(n, LINES_MAX);
    *t = (struct trial){
        .plan = {.header = {"m", "c", 2, 4, 7, {"", "", "", "", 0}}, .step = t->planned, .n = n}};
    for (int i = 0; i < n; i++) {
        struct plan_step *s = &t->planned[i];
        t->row[i] = (struct plan_row){line[i].req, 0, line[i].ctx_tokens, 1};
        *s = (struct plan_step){
            .step = 10 + i, .row = &t->row[i], .n_rows = 1, .pred = line[i].pred};
        set_name(s->layout, line[i].layout);
        set_name(s->from, line[i].from);
        set_name(s->mechanism, line[i].mechanism);
        t->seen[i] = *s;
        t->seen[i].is_measured = true;
        t->seen[i].meas_p50 = line[i].meas;
        t->seen[i].check_error = 1e-3 * (i + 1);
        t->seen[i].pred.step_ns = 1; /* an older prediction, which must not count */
    }
    t->measured = t->plan;
    t->measured.step = t->seen;
}

static int join(struct trial *t)
{
    return validation_init(&t->v, &t->plan, "p.jsonl", &t->measured, "m.jsonl", &t->err);
}

static void validate(struct trial *t, const struct line *line, int n)
{
    make_plans(t, line, n);
    cr_assert_eq(join(t), 0, "%s", t->err.text);
}

#define N_OF(lines) ((int)(sizeof(lines) / sizeof *(lines)))

#define expect_near(x, y) cr_expect_float_eq(x, y, 1e-12, "%.15g is not %.15g", (double)(x), y)

static void expect_errors(const struct error_summary *e, int n, double p50, double p95, double mean)
{
    cr_expect_eq(e->n, n);
    expect_near(e->p50, p50);
    expect_near(e->p95, p95);
    expect_near(e->mean, mean);
}

Test(sample, quantiles_are_nearest_rank)
{
    double x[] = {5, 1, 4, 2, 3}, twenty[20];
    for (int i = 0; i < 20; i++)
        twenty[i] = 20 - i;
    cr_expect_eq(sample_quantile(x, 5, 0.5), 3);
    cr_expect_eq(sample_quantile(x, 4, 0.5), 2); /* of an even number, the lower */
    cr_expect_eq(sample_quantile(x, 5, 0), 1);
    cr_expect_eq(sample_quantile(x, 5, 0.81), 5);
    cr_expect_eq(sample_quantile(twenty, 20, 0.95), 19);
    cr_expect(isnan(sample_median(x, 0)));
    cr_expect(isnan(sample_errors(x, 0).mean));
}

/* Errors +10%, -10%, +5%; the switch is in none of them. */
static const struct line steps[] = {
    {"tp", NULL, NULL, 1, 100, {1100, 100, 500, 100, 300, 0, 0}, {1000, 100, 400, 100, 300, 0, 0}},
    {"dp", NULL, NULL, 1, 200, {1800, 400, 400, 200, 600, 0, 0}, {2000, 400, 400, 400, 600, 0, 0}},
    {"tp", NULL, NULL, 1, 300, {1050, 100, 450, 100, 300, 0, 0}, {1000, 100, 400, 100, 300, 0, 0}},
    {"dp", "tp", "blocking", 1, 400, {1500, 0, 0, 0, 0, 0, 0}, {3000, 0, 0, 0, 0, 0, 0}},
};

Test(validation, step_errors_leave_switches_out_and_split_by_layout)
{
    struct trial t;
    validate(&t, steps, N_OF(steps));
    cr_expect_eq(t.v.main, &t.v.steady);
    expect_errors(&t.v.steady.all, 3, 0.1, 0.1, 0.05 / 3);
    cr_expect_str_eq(t.v.joined.layout[0], "tp");
    expect_errors(&t.v.steady.layout[0], 2, 0.05, 0.1, 0.075);
    expect_errors(&t.v.steady.layout[1], 1, 0.1, 0.1, -0.1);
    cr_expect_eq(t.v.ready.all.n, 0);
    cr_expect_eq(t.v.steady.n_worst, 3);
    cr_expect_eq(t.v.steady.worst[0], 0);
    cr_expect_eq(t.v.steady.worst[2], 2);
    expect_near(t.v.joined.check_max_error, 4e-3);
    validation_release(&t.v);
}

Test(validation, parts_of_the_step_error_add_up_to_it)
{
    struct trial t;
    validate(&t, steps, N_OF(steps));
    const struct part_error *part = t.v.steady.part;
    /* attn: +25%, 0, +12.5% of itself; 1200 of 4000 measured; 100 of 1000 and 50 of 1000 */
    expect_errors(&part[PART_ATTN].error, 3, 0.125, 0.25, 0.125);
    expect_near(part[PART_ATTN].share_frac, 0.3);
    expect_near(part[PART_ATTN].blame, 0.05);
    /* exchange: 200 of 400 are missing in the second step, which takes 2000 */
    expect_errors(&part[PART_EXCHANGE].error, 3, 0, 0.5, -0.5 / 3);
    expect_near(part[PART_EXCHANGE].blame, -0.1 / 3);
    expect_near(part[PART_REST].share_frac, 0.1);
    double sum = 0;
    for (int p = 0; p < PART_COUNT; p++)
        sum += part[p].blame;
    expect_near(sum, t.v.steady.all.mean);
    validation_release(&t.v);
}

Test(validation, a_part_that_took_no_time_has_no_error_but_its_blame)
{
    static const struct line line[] = {
        {"tp", NULL, NULL, 1, 100, {110, 0, 0, 10, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}}};
    struct trial t;
    validate(&t, line, 1);
    const struct part_error *exchange = &t.v.steady.part[PART_EXCHANGE];
    cr_expect_eq(exchange->error.n, 0);
    cr_expect(isnan(exchange->error.mean));
    expect_near(exchange->blame, 0.1);
    validation_release(&t.v);
}

Test(validation, the_schedule_counts_everything_and_windows_begin_with_switches)
{
    struct trial t;
    validate(&t, steps, N_OF(steps));
    const struct schedule_errors *e = &t.v.schedule;
    expect_near(e->error, 5450.0 / 7000 - 1);
    cr_expect_eq(e->n_windows, 2);
    cr_expect_eq(e->window[0].n, 3);
    expect_near(e->window[0].error, 3950.0 / 4000 - 1);
    cr_expect_eq(e->window[1].first, 3);
    expect_errors(&e->windows, 2, 0.0125, 0.5, -0.25625);
    validation_release(&t.v);
}

Test(validation, a_measurement_may_end_early)
{
    struct trial t;
    make_plans(&t, steps, N_OF(steps));
    t.measured.n = 1;
    cr_assert_eq(join(&t), 0, "%s", t.err.text);
    cr_expect_eq(t.v.joined.n, 1);
    cr_expect_eq(t.v.joined.unmatched, 3);
    expect_errors(&t.v.steady.all, 1, 0.1, 0.1, 0.1);
    validation_release(&t.v);
}

static void other_model(struct trial *t)
{
    set_name(t->measured.header.model, "n");
}
static void other_layers(struct trial *t)
{
    t->measured.header.layers = 2;
}
static void other_step(struct trial *t)
{
    t->seen[1].step = 12;
}
static void other_layout(struct trial *t)
{
    set_name(t->seen[1].layout, "cp");
}
static void other_from(struct trial *t)
{
    set_name(t->seen[3].from, "cp");
}
static void other_mechanism(struct trial *t)
{
    set_name(t->seen[3].mechanism, "overlapped");
}
static void other_context(struct trial *t)
{
    static struct plan_row row = {1, 0, 201, 1};
    t->seen[1].row = &row;
}
static void fewer_rows(struct trial *t)
{
    t->planned[2].n_rows = 0;
}
static void unmeasured(struct trial *t)
{
    t->seen[0].is_measured = false;
}
static void no_time(struct trial *t)
{
    t->seen[0].meas_p50.step_ns = 0;
}
static void nothing(struct trial *t)
{
    t->measured.n = 0;
}
static void longer(struct trial *t)
{
    t->plan.n = 3;
}

static const struct {
    void (*spoil)(struct trial *t);
    const char *part;
} mismatches[] = {
    {other_model, "m.jsonl: model is \"n\", but \"m\" in p.jsonl"},
    {other_layers, "m.jsonl: layers is 2, but 4 in p.jsonl"},
    {other_step, "m.jsonl: step 12 comes where p.jsonl has step 11"},
    {other_layout, "step 11: layout is \"cp\", but \"dp\" in p.jsonl"},
    {other_from, "step 13: from is \"cp\", but \"tp\""},
    {other_mechanism, "step 13: mechanism is \"overlapped\", but \"blocking\""},
    {other_context, "step 11: rows[0].ctx is 201, but 200"},
    {fewer_rows, "step 12: number of rows is 1, but 0"},
    {unmeasured, "step 10 has no \"meas\""},
    {no_time, "step 10: .meas.p50.step_ns is 0"},
    {nothing, "m.jsonl: no step was measured"},
    {longer, "step 13 is not in p.jsonl"},
};

Test(validation, what_does_not_belong_together_is_refused_by_step)
{
    for (size_t i = 0; i < sizeof mismatches / sizeof *mismatches; i++) {
        struct trial t;
        make_plans(&t, steps, N_OF(steps));
        mismatches[i].spoil(&t);
        cr_expect_eq(join(&t), -1, "%s", mismatches[i].part);
        cr_expect_neq(strstr(t.err.text, mismatches[i].part), NULL, "%s -> %s", mismatches[i].part,
                      t.err.text);
    }
}

/* clang-format off */
#define STEADY(name, ctx, p, m) {name, NULL, NULL, 1, ctx, {.step_ns = p}, {.step_ns = m}}
#define READY(name, from, ctx, p, m) {name, from, "free", 1, ctx, {.step_ns = p}, {.step_ns = m}}
/* clang-format on */

/* Three comparisons. Steps after free switches must not count: there, whatever comes last is far
 * ahead. */
static const struct line comparisons[] = {
    STEADY("tp", 1000, 100, 95),
    READY("cp", "tp", 1001, 90, 1),
    STEADY("cp", 1002, 90, 100),
    READY("dp", "cp", 1003, 80, 1),
    STEADY("dp", 1004, 80, 90),
    /* dp again: the next */
    STEADY("dp", 1005, 80, 1000),
    READY("tp", "dp", 1006, 79, 1),
    STEADY("tp", 1007, 79, 1019),
    /* tp again */
    STEADY("tp", 1008, 50, 100),
    READY("dp", "tp", 1009, 60, 1),
    STEADY("dp", 1010, 60, 90),
};

Test(validation, the_order_of_layouts_is_judged_group_by_group)
{
    struct trial t;
    validate(&t, comparisons, N_OF(comparisons));
    const struct layout_order *o = &t.v.order;
    cr_assert_eq(o->n, 3);
    cr_expect_eq(o->group[0].n, 3);
    cr_expect_eq(o->group[0].end, 5);
    cr_expect_eq(o->group[0].verdict, ORDER_RIGHT);
    expect_near(o->group[0].tau, 1.0 / 3); /* tp and cp are the wrong way round */
    cr_expect_eq(o->group[0].regret, 0);
    cr_expect_eq(o->group[1].verdict, ORDER_TIE);
    expect_near(o->group[1].regret, 0.019);
    cr_expect_eq(o->group[2].verdict, ORDER_WRONG);
    expect_near(o->group[2].regret, 1.0 / 9);
    expect_near(o->agreement, 2.0 / 3);
    expect_near(o->tau, (1.0 / 3 - 1 - 1) / 3);
    expect_near(o->regret, (0.019 + 1.0 / 9) / 3);
    validation_release(&t.v);
}

static const struct line edges[] = {
    /* 1%, and more */
    STEADY("tp", 3000, 100, 100),
    STEADY("cp", 3030, 90, 90),
    STEADY("tp", 5000, 100, 100),
    STEADY("cp", 5051, 90, 90),
    /* 16 tokens, and more */
    STEADY("tp", 100, 100, 100),
    STEADY("cp", 116, 90, 90),
    STEADY("tp", 200, 100, 100),
    STEADY("cp", 217, 90, 90),
    /* like with like: tp is left out */
    STEADY("tp", 9000, 1, 100),
    READY("cp", "tp", 9001, 3, 8),
    READY("dp", "cp", 9002, 2, 7),
    /* no two alike */
    STEADY("tp", 20000, 1, 100),
    READY("cp", "tp", 20001, 3, 8),
};

Test(validation, only_like_steps_of_one_batch_are_compared)
{
    static const int first[] = {0, 4, 8};
    struct trial t;
    validate(&t, edges, N_OF(edges));
    const struct layout_order *o = &t.v.order;
    cr_assert_eq(o->n, 3);
    for (int i = 0; i < o->n; i++) {
        cr_expect_eq(o->group[i].first, first[i]);
        cr_expect_eq(o->group[i].n, 2);
    }
    cr_expect_str_eq(t.v.joined.layout[o->group[2].member[0].layout], "cp");
    validation_release(&t.v);
}

/* clang-format off */
#define SWITCH(to, how, req, exposed, meas, meas_exposed) \
    {to, "tp", how, req, 1000, {500, 0, 0, 0, 0, exposed, 0}, {meas, 0, 0, 0, 0, meas_exposed, 0}}
/* clang-format on */

/* Ready: 98 to 104, p50 100 (nearest rank). A/A of four: two of the three ways to halve them differ
 * by 2, one by 4. */
static const struct line three_way[] = {
    SWITCH("cp", "free", 1, 0, 100, 0),        SWITCH("cp", "blocking", 1, 150, 300, 1),
    SWITCH("cp", "overlapped", 1, 25, 120, 1), SWITCH("cp", "free", 1, 0, 104, 0),
    SWITCH("cp", "overlapped", 1, 25, 121, 1), SWITCH("cp", "blocking", 1, 150, 310, 1),
    SWITCH("cp", "free", 1, 0, 98, 0),         SWITCH("cp", "blocking", 1, 150, 290, 1),
    SWITCH("cp", "free", 1, 0, 102, 0),        SWITCH("cp", "overlapped", 1, 25, 119, 1),
    SWITCH("cp", "free", 2, 0, 9000, 0), /* of another batch */
    SWITCH("dop", "free", 1, 0, 100, 0),       SWITCH("dop", "free", 1, 0, 104, 0),
    SWITCH("dop", "overlapped", 1, 0, 101, 1), /* below the noise */
    SWITCH("dop", "free", 1, 0, 98, 0),        SWITCH("dop", "free", 1, 0, 102, 0),
    SWITCH("dp", "blocking", 1, 60, 200, 50), /* nothing to compare with */
};

Test(validation, a_switch_costs_what_its_step_takes_longer_than_when_ready)
{
    struct trial t;
    validate(&t, three_way, N_OF(three_way));
    cr_assert_eq(t.v.trials.n, 3);
    const struct switch_direction *d = &t.v.trials.direction[0];
    const struct switch_way *blocking = &d->way[MECH_BLOCKING];
    const struct switch_way *overlapped = &d->way[MECH_OVERLAPPED];
    cr_expect_str_eq(t.v.joined.layout[d->to], "cp");
    cr_expect_eq(d->n_ready, 4);
    cr_expect_eq(d->ready_ns, 100);
    cr_expect_eq(d->noise_ns, 2);
    cr_expect_eq(blocking->n, 3);
    cr_expect_eq(blocking->n_matched, 3);
    cr_expect_eq(blocking->step_ns, 300);
    cr_expect_eq(blocking->dt_ns, 200);
    cr_expect_eq(blocking->dt_p95_ns, 210);
    expect_near(blocking->error, -0.25);
    cr_expect_eq(overlapped->dt_ns, 20);
    expect_near(overlapped->error, 0.25);
    expect_near(d->hidden_frac, 0.9);
    expect_near(d->pred_hidden_frac, 1 - 25.0 / 150);
    cr_expect_eq(d->way[MECH_FREE].n, 0);
    validation_release(&t.v);
}

Test(validation, what_is_below_the_noise_is_not_resolved)
{
    struct trial t;
    validate(&t, three_way, N_OF(three_way));
    const struct switch_direction *d = &t.v.trials.direction[1];
    const struct switch_way *w = &d->way[MECH_OVERLAPPED];
    cr_expect_str_eq(t.v.joined.layout[d->to], "dop");
    cr_expect_eq(w->dt_ns, 1);
    cr_expect_not(w->resolved);
    cr_expect(isnan(w->error));
    cr_expect(isnan(d->hidden_frac));
    validation_release(&t.v);
}

Test(validation, without_ready_steps_the_replay_says_what_a_switch_added)
{
    struct trial t;
    validate(&t, three_way, N_OF(three_way));
    const struct switch_direction *d = &t.v.trials.direction[2];
    const struct switch_way *w = &d->way[MECH_BLOCKING];
    cr_expect_eq(d->n_ready, 0);
    cr_expect(isnan(d->noise_ns));
    cr_expect_eq(w->n_matched, 0);
    cr_expect_eq(w->dt_ns, 50);
    expect_near(w->error, 0.2);
    validation_release(&t.v);
}

Test(validation, ready_steps_speak_for_a_plan_that_has_hardly_others)
{
    struct trial t;
    validate(&t, three_way, N_OF(three_way));
    cr_expect_eq(t.v.main, &t.v.ready);
    cr_expect_eq(t.v.main->all.n, 9);
    validation_release(&t.v);
}

Test(validation, ten_steps_without_a_switch_are_enough)
{
    struct line line[22];
    struct trial t;
    for (int i = 0; i < 22; i++)
        line[i] = i < 10 ? (struct line)STEADY("tp", 1000, 100, 100)
                         : (struct line)READY("cp", "tp", 1000, 100, 200);
    validate(&t, line, 22);
    cr_expect_eq(t.v.main, &t.v.steady);
    validation_release(&t.v);
    validate(&t, line + 1, 21);
    cr_expect_eq(t.v.main, &t.v.ready);
    validation_release(&t.v);
}

Test(validation, the_noise_of_all_directions_is_that_of_those_that_have_one)
{
    struct trial t;
    validate(&t, three_way, N_OF(three_way)); /* 2, 2, and none */
    cr_expect_eq(t.v.trials.noise_p50_ns, 2);
    cr_expect_eq(t.v.trials.noise_p95_ns, 2);
    validation_release(&t.v);
}

/* Two comparisons and two rounds of trials in which no context grows. */
static const struct line standing[] = {
    STEADY("tp", 1000, 100, 100),        READY("cp", "tp", 1000, 90, 1),
    STEADY("cp", 1000, 90, 90),          READY("dp", "cp", 1000, 80, 1),
    STEADY("dp", 1000, 80, 80),          STEADY("dp", 1000, 80, 80),
    READY("tp", "dp", 1000, 100, 1),     STEADY("tp", 1000, 100, 100),
    READY("cp", "tp", 1000, 90, 1),      STEADY("cp", 1000, 90, 90),
    SWITCH("dop", "free", 1, 0, 100, 0), SWITCH("dop", "blocking", 1, 150, 300, 1),
    SWITCH("dop", "free", 1, 0, 100, 0), SWITCH("dop", "blocking", 1, 150, 320, 1),
};

Test(validation, the_very_same_rows_are_grouped_as_growing_ones_are)
{
    struct trial t;
    validate(&t, standing, N_OF(standing));
    const struct layout_order *o = &t.v.order;
    cr_assert_eq(o->n, 2);
    cr_expect_eq(o->group[0].end, 5);
    cr_expect_eq(o->group[1].first, 5);
    cr_expect_eq(o->group[0].n, 3);
    cr_expect_eq(o->group[1].n, 3);
    cr_expect_eq(t.v.trials.direction[0].way[MECH_BLOCKING].n_matched, 2);
    cr_expect_eq(t.v.trials.direction[0].way[MECH_BLOCKING].dt_ns, 200);
    validation_release(&t.v);
}
