/* SPDX-License-Identifier: Apache-2.0
 *
 * A run's course keeps sums exact and extremes whole in bounded memory, and says why a run
 * switched.
 */
#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/report/course.h"
#include "tests/engine_world.h"

static const struct batch_item items[] = {{100, 1, 0}, {200, 1, 1}, {64, 32, 0}};
static const struct batch two = {2, 2, items}, three = {2, 3, items};

/* A step of layout 0 that nothing happens before. */
static struct span_record span(int64_t start_us, int64_t end_us)
{
    return (struct span_record){
        .n = 1,
        .start_ps = start_us * PS_PER_US,
        .end_ps = end_us * PS_PER_US,
        .from = -1,
        .wanted = -1,
        .kv_capacity_pages = 100,
        .batch = &two,
    };
}

static double mean(const struct course *c, int bin, enum course_quantity q)
{
    return c->bin[bin].range[q].area_ps / (double)c->bin[bin].busy_ps;
}

Test(course, a_step_over_two_bins_counts_in_both)
{
    struct course *c = course_new(1);
    struct span_record r = span(500, 1250);
    r.layout = 1;
    r.n_waiting = 4;
    r.kv_pages = 25;
    r.batch = &three;
    course_span(c, &r);
    cr_expect_eq(c->bin_ps, PS_PER_MS);
    cr_expect_eq(c->n_bins, 2);
    cr_expect_eq(c->bin[0].layout_ps[1], 500 * PS_PER_US);
    cr_expect_eq(c->bin[1].layout_ps[1], 250 * PS_PER_US);
    for (int i = 0; i < 2; i++) {
        cr_expect_float_eq(mean(c, i, COURSE_QUEUE), 4, 1e-9);
        cr_expect_float_eq(mean(c, i, COURSE_DECODE), 2, 1e-9);
        cr_expect_float_eq(mean(c, i, COURSE_PREFILL), 1, 1e-9);
        cr_expect_float_eq(mean(c, i, COURSE_CTX_TOKENS), 364, 1e-9);
        cr_expect_float_eq(mean(c, i, COURSE_KV_FRAC), 0.25, 1e-12);
    }
    course_free(c);
}

/* 101 steps of two requests: from 300 tokens in the first to 500 in the last. */
Test(course, contexts_grow_within_a_jump)
{
    struct course *c = course_new(1);
    struct span_record r = span(0, 2000);
    r.n = 101;
    course_span(c, &r);
    const struct course_range *first = &c->bin[0].range[COURSE_CTX_TOKENS];
    cr_expect_float_eq(first->min, 300, 1e-9);
    cr_expect_float_eq(first->max, 400, 1e-9);
    cr_expect_float_eq(mean(c, 0, COURSE_CTX_TOKENS), 350, 1e-9);
    cr_expect_float_eq(mean(c, 1, COURSE_CTX_TOKENS), 450, 1e-9);
    course_free(c);
}

/* The last step ends at 5 s, so bins of 1 ms have become bins of 8 ms. */
Test(course, bins_become_wider_and_lose_nothing)
{
    struct course *c = course_new(1);
    struct span_record r = span(1000, 1010);
    r.n_waiting = 77;
    course_span(c, &r);
    r = span(1500, 2500);
    r.n_waiting = 1;
    course_span(c, &r);
    r = span(4999000, 5000000);
    r.layout = 1;
    course_span(c, &r);
    cr_expect_eq(c->bin_ps, 8 * PS_PER_MS);
    cr_expect_eq(c->n_bins, 625);
    cr_expect_eq(c->bin[0].layout_ps[0], 1010 * PS_PER_US);
    cr_expect_float_eq(c->bin[0].range[COURSE_QUEUE].max, 77, 1e-9);
    cr_expect_float_eq(c->bin[0].range[COURSE_QUEUE].min, 1, 1e-9);
    cr_expect_float_eq(mean(c, 0, COURSE_QUEUE), (77 * 10 + 1 * 1000) / 1010., 1e-9);
    cr_expect_eq(c->bin[624].layout_ps[1], 1000 * PS_PER_US);
    cr_expect_eq(c->bin[1].busy_ps, 0);
    course_free(c);
}

static void switch_to(struct course *c, int64_t at_us, int64_t exposed_us, struct weighed why)
{
    struct span_record r = span(at_us, at_us + 10);
    r.layout = 1;
    r.from = 0;
    r.exposed_ps = exposed_us * PS_PER_US;
    r.switch_why = why;
    course_span(c, &r);
}

Test(course, a_bin_shows_its_costliest_switch_and_directions_all)
{
    struct course *c = course_new(1);
    switch_to(c, 100, 5, (struct weighed){100, 75, false});
    switch_to(c, 200, 9, (struct weighed){100, 60, false});
    switch_to(c, 300, 7, (struct weighed){100, 300, true});
    switch_to(c, 3000, 1, (struct weighed){0});
    const struct course_event *e = &c->bin[0].switched;
    const struct course_direction *d = &c->direction[0][1];
    cr_expect_eq(e->n, 3);
    cr_expect_eq(e->exposed_ps, 9 * PS_PER_US);
    cr_expect_eq(e->at_ps, 200 * PS_PER_US);
    cr_expect_float_eq(course_lead(&e->why), 0.4, 1e-12);
    cr_expect_eq(c->bin[0].exposed_ps, 21 * PS_PER_US);
    cr_expect_eq(d->n, 4);
    cr_expect_eq(d->forced, 1);
    cr_expect_eq(d->weighed, 2);
    cr_expect_eq(d->exposed_ps, 22 * PS_PER_US);
    cr_expect_eq(d->most_exposed_ps, 9 * PS_PER_US);
    cr_expect_float_eq(d->lead_min, 0.25, 1e-12);
    cr_expect_float_eq(d->lead_max, 0.4, 1e-12);
    cr_expect_float_eq(d->lead_sum, 0.65, 1e-12);
    course_free(c);
}

Test(course, a_wish_counts_when_it_changes)
{
    static const int wanted[] = {-1, 2, 2, 3, -1, 2};
    struct course *c = course_new(1);
    for (int i = 0; i < 6; i++) {
        struct span_record r = span(10 * i, 10 * i + 10);
        r.wanted = wanted[i];
        r.wanted_why = (struct weighed){100, 90 - 10 * i, false};
        course_span(c, &r);
    }
    cr_expect_eq(c->bin[0].refused.n, 3);
    cr_expect_eq(c->bin[0].refused.to, 2, "the one that led by most");
    cr_expect_float_eq(course_lead(&c->bin[0].refused.why), 0.6, 1e-12);
    cr_expect_eq(c->direction[0][2].refused, 2);
    cr_expect_eq(c->direction[0][3].refused, 1);
    course_free(c);
}

Test(course, json_rows_are_bins_and_events)
{
    static const struct layout layouts[] = {{.name = "tp"}, {.name = "dp"}};
    struct course *c = course_new(2);
    switch_to(c, 1000, 5, (struct weighed){100, 75, false});
    json_t *o = course_json(c, "p", layouts, 2);
    json_t *rows = json_object_get(o, "rows"), *row = json_array_get(rows, 1);
    cr_expect_eq(json_array_size(rows), 2);
    cr_expect_eq(json_array_size(row), json_array_size(json_object_get(o, "columns")));
    cr_expect(json_is_null(json_array_get(json_array_get(rows, 0), 3)), "no step, no queue");
    /* 10 us of 1 ms and two groups */
    cr_expect_float_eq(json_number_value(json_array_get(row, 2)), 0.5, 1e-12);
    json_t *event = json_array_get(json_object_get(json_object_get(o, "switches"), "rows"), 0);
    cr_expect_str_eq(json_string_value(json_array_get(event, 2)), "tp");
    cr_expect_str_eq(json_string_value(json_array_get(event, 3)), "dp");
    cr_expect_float_eq(json_number_value(json_array_get(event, 4)), 0.005, 1e-12);
    cr_expect_float_eq(json_number_value(json_array_get(event, 5)), 25, 1e-12);
    cr_expect_str_eq(json_string_value(json_array_get(event, 6)), "it led");
    json_decref(o);
    course_free(c);
}

static void watch(void *course, const struct span_record *r)
{
    course_span(course, r);
}

static struct course *run(struct world *w, const char *policy, bool exact, struct run_result *out)
{
    struct course *c = course_new((int)w->config.replicas);
    struct engine_observer observer = {.span = watch, .context = c};
    struct engine_input in = world_input(w);
    w->config.exact = exact;
    in.observer = &observer;
    world_run_input(w, in, policy, out);
    return c;
}

/* A drained switch that no step follows is a switch all the same. */
static void expect_sums(const struct course *c, const struct run_result *r, bool drains)
{
    int64_t busy_ps = 0, exposed_ps = 0, switches = 0, refused = 0, by_direction = 0;
    int64_t layout_ps[LAYOUT_MAX] = {0};
    for (int i = 0; i < c->n_bins; i++) {
        const struct course_bin *b = &c->bin[i];
        busy_ps += b->busy_ps;
        exposed_ps += b->exposed_ps;
        switches += b->switched.n;
        refused += b->refused.n;
        for (int l = 0; l < LAYOUT_MAX; l++)
            layout_ps[l] += b->layout_ps[l];
    }
    for (int l = 0; l < LAYOUT_MAX; l++)
        for (int to = 0; to < LAYOUT_MAX; to++)
            by_direction += c->direction[l][to].n;
    cr_expect_eq(busy_ps, r->busy_ps);
    cr_expect_eq(exposed_ps, r->switch_exposed_ps);
    cr_expect_eq(by_direction, switches);
    cr_expect(drains ? switches <= r->switches : switches == r->switches);
    cr_expect_eq(refused, r->switches_refused);
    cr_expect_arr_eq(layout_ps, r->layout_ps, sizeof layout_ps);
}

static void make_world(struct world *w, int64_t pages)
{
    world_init(w, "tiny-mla", "tp,cp,dp,dop", 2);
    w->config.token_budget = 256;
    w->config.replicas = 2;
    world_compile_pages(w, pages);
    for (int i = 0; i < 150; i++)
        world_ask(w, i * PS_PER_MS / 2, 100 + 37 * (i % 11), 1 + i % 40);
}

static const struct mode {
    const char *policy;
    bool exact;
} modes[] = {{"splash:margin=0", false},
             {"splash:margin=0", true},
             {"greedy", false},
             {"splash:margin=0,mechanism=drain", false},
             {"fixed:dp", false}};

Test(course, adds_up_to_the_run_that_it_watched)
{
    int64_t switches = 0, refused = 0;
    for (size_t i = 0; i < 2 * sizeof modes / sizeof *modes; i++) {
        static struct world w;
        struct run_result result;
        make_world(&w, i % 2 == 0 ? 60 : 2000);
        struct course *c = run(&w, modes[i / 2].policy, modes[i / 2].exact, &result);
        expect_sums(c, &result, strstr(modes[i / 2].policy, "drain") != NULL);
        switches += result.switches;
        refused += result.switches_refused;
        course_free(c);
        run_result_release(&result);
        world_release(&w);
    }
    cr_expect_gt(switches, 0);
    cr_expect_gt(refused, 0);
}

/* A drained switch happens later than it was decided, and keeps why. */
Test(course, every_switch_of_splash_led_by_its_margin_or_was_forced)
{
    static const char *const policies[] = {"splash:margin=0.002",
                                           "splash:margin=0.002,mechanism=drain"};
    for (int i = 0; i < 2; i++) {
        static struct world w;
        struct run_result result;
        int64_t n = 0;
        make_world(&w, 2000);
        struct course *c = run(&w, policies[i], false, &result);
        for (int from = 0; from < w.n_layouts; from++)
            for (int to = 0; to < w.n_layouts; to++) {
                const struct course_direction *d = &c->direction[from][to];
                cr_expect_eq(d->weighed + d->forced, d->n);
                cr_expect(d->weighed == 0 || d->lead_min > 0.002, "%g", d->lead_min);
                n += d->weighed;
            }
        cr_expect_gt(n, 0, "%s", policies[i]);
        course_free(c);
        run_result_release(&result);
        world_release(&w);
    }
}
