/* SPDX-License-Identifier: Apache-2.0
 *
 * What people and programs read of a validation, from a plan and measurements made up by hand.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/chart.h"
#include "sim/report/doubts.h"
#include "sim/report/html.h"
#include "sim/report/notes.h"
#include "sim/report/percent.h"
#include "sim/report/validation_charts.h"
#include "sim/report/validation_html.h"
#include "sim/report/validation_json.h"
#include "sim/report/validation_text.h"

Test(percent, has_two_digits_or_more_and_a_sign_where_asked)
{
    static const struct {
        double frac;
        const char *plain, *with_sign;
    } cases[] = {
        {0.0314, "3.1%", "+3.1%"}, {-0.0314, "-3.1%", "-3.1%"}, {0.0994, "9.9%", "+9.9%"},
        {0.0996, "10%", "+10%"},   {-1.234, "-123%", "-123%"},  {-0.0004, "0.0%", "0.0%"},
        {NAN, "-", "-"},           {0, "0.0%", "0.0%"},
    };
    char buf[PERCENT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_str_eq(percent(cases[i].frac, buf), cases[i].plain);
        cr_expect_str_eq(percent_signed(cases[i].frac, buf), cases[i].with_sign);
    }
}

/* Text that a report writes; to be freed. */
struct sink {
    char *text;
    size_t size;
    FILE *f;
};

static void sink_open(struct sink *s)
{
    s->f = open_memstream(&s->text, &s->size);
}

static const char *sink_text(struct sink *s)
{
    fclose(s->f);
    return s->text;
}

Test(html, text_cannot_become_markup)
{
    struct sink s;
    sink_open(&s);
    html_printf(s.f, "%s", "<a & \"b\">");
    cr_expect_str_eq(sink_text(&s), "&lt;a &amp; &quot;b&quot;&gt;");
    free(s.text);
}

Test(chart, values_fall_between_the_axes_and_those_beyond_at_their_ends)
{
    struct chart c = {.x = {1, 100, true, "", ""}, .y = {-10, 10, false, "", ""}, .height = 248};
    cr_expect_float_eq(chart_x(&c, 1), 60, 1e-9);
    cr_expect_float_eq(chart_x(&c, 10), (60 + 390) / 2.0, 1e-9); /* the middle of two decades */
    cr_expect_float_eq(chart_x(&c, 1000), 390, 1e-9);
    cr_expect_float_eq(chart_y(&c, 10), 8, 1e-9);
    cr_expect_float_eq(chart_y(&c, 0), (8 + 208) / 2.0, 1e-9);
    cr_expect_float_eq(chart_y(&c, -11), 208, 1e-9);
}

Test(chart, carries_its_data_as_a_link)
{
    static const char *const series[] = {"tp", "cp, long"};
    struct sink s;
    sink_open(&s);
    struct chart c = {.out = s.f,
                      .x = {.max = 9, .title = "step", .unit = ""},
                      .y = {.max = 9, .title = "time, ms", .unit = ""},
                      .height = 320,
                      .series = series};
    chart_begin(&c, "what it shows");
    chart_line(&c, (double[]){1, 2}, (double[]){0.5, 1.0 / 3}, 2, 0, true);
    chart_mark(&c, 99, 4, 1, MARK_OPEN, "say \"hi\"");
    chart_end(&c, "Figure 5a, B200: times");
    cr_expect_neq(strstr(sink_text(&s),
                         "<figcaption>Figure 5a, B200: times <a class=\"csv\" "
                         "download=\"figure-5a-b200.csv\" href=\"data:text/csv;charset=utf-8,"
                         "series,drawn%20as,step,%22time,%20ms%22,note%0A"
                         "tp,dashed%20line,1,0.5,%0Atp,dashed%20line,2,0.333333333,%0A"
                         "%22cp,%20long%22,open%20mark,99,4,%22say%20%22%22hi%22%22%22%0A\">"),
                  NULL);
    free(s.text);
}

enum { STEPS = 6 };

/* Two layouts; a step of 1000 ns has 100 in proj, 600 in attn, none in exchange, 200 in ffn. */
struct trial {
    struct plan plan, measured;
    struct plan_step planned[STEPS], seen[STEPS];
    struct plan_row row[STEPS];
    struct validation v;
    struct validation_about about;
};

static struct plan_times times(int64_t step_ns, int64_t attn_ns, int64_t exposed_ns)
{
    return (struct plan_times){step_ns, 100, attn_ns, 0, 200, exposed_ns, 0};
}

static void set_step(struct trial *t, int i, const char *layout, const char *mechanism)
{
    struct plan_step *s = &t->planned[i];
    t->row[i] = (struct plan_row){.req = 1, .owner = 0, .ctx_tokens = 2000 + i, .q = 1};
    *s = (struct plan_step){.step = i, .row = &t->row[i], .n_rows = 1, .pred = times(1000, 600, 0)};
    snprintf(s->layout, sizeof s->layout, "%s", layout);
    if (mechanism != NULL) {
        snprintf(s->from, sizeof s->from, "%s", i > 0 ? t->planned[i - 1].layout : "dp");
        snprintf(s->mechanism, sizeof s->mechanism, "%s", mechanism);
    }
    t->seen[i] = *s;
    t->seen[i].is_measured = true;
    t->seen[i].meas_p50 = s->pred;
    t->seen[i].check_error = 1e-3;
}

/* All as predicted; tests spoil `seen` before they join. */
static void make_trial(struct trial *t)
{
    *t = (struct trial){
        .plan = {.header = {"<m>", "c", 2, 4, 7, {"", "", "", "", 0}}, .step = t->planned}};
    set_step(t, 0, "tp", NULL);
    set_step(t, 1, "dp", "free");
    set_step(t, 2, "dp", NULL);
    set_step(t, 3, "tp", "blocking");
    t->planned[3].pred = t->seen[3].meas_p50 = times(1050, 600, 50);
    set_step(t, 4, "tp", NULL);
    t->planned[4].pred = t->seen[4].meas_p50 = times(900, 500, 0);
    set_step(t, 5, "dp", "free");
    t->plan.n = STEPS;
    t->measured = t->plan;
    t->measured.step = t->seen;
    t->seen[3].meas_p50.switch_exposed_ns = 50;
}

static void join(struct trial *t)
{
    struct err err = ERR_NONE;
    cr_assert_eq(validation_init(&t->v, &t->plan, "p", &t->measured, "m", &err), 0, "%s", err.text);
    t->about = (struct validation_about){
        .version = "1.2.3",
        .command = "wavetank validate p m",
        .plan_path = "p",
        .measured_path = "m",
        .plan = &t->plan.header,
        .measured = &t->measured.header,
        .profile_fault = "unknown cluster \"c\"; clusters: a, b",
    };
}

static void expect_doubts(const struct trial *t, const char *const *sentence, int n)
{
    struct doubts d;
    doubts_init(&d, &t->v);
    cr_expect_eq(d.n, n);
    for (int i = 0; i < n && i < d.n; i++)
        cr_expect_str_eq(d.sentence[i], sentence[i]);
    doubts_release(&d);
}

Test(doubts, a_simulator_that_is_right_is_told_so)
{
    static const char *const sentences[] = {
        "Within what was measured, no rule finds a place: stages are within 5% on average, every "
        "layout's median step within 5%, every step within 15%, every switch within 20%, and every "
        "layout picked is fastest or within 2% of it."};
    struct trial t;
    make_trial(&t);
    join(&t);
    expect_doubts(&t, sentences, 1);
    validation_release(&t.v);
}

/* The third step takes 1200 for a predicted 900, all of it in attn; the first switch adds 100 for
 * 50, the second nothing for 50. */
static void spoil(struct trial *t)
{
    t->planned[2].pred = times(900, 500, 0);
    t->seen[2].meas_p50 = times(1200, 800, 0);
    t->seen[3].meas_p50.switch_exposed_ns = 100;
    t->planned[5].pred = times(1050, 600, 50);
    snprintf(t->planned[5].mechanism, PLAN_NAME_MAX, "overlapped");
    snprintf(t->seen[5].mechanism, PLAN_NAME_MAX, "overlapped");
}

Test(doubts, each_rule_has_its_sentence)
{
    static const char *const sentences[] = {
        /* -3/8 in one of three steps; 1900 of 3100; -300 of 1200 in one of three */
        "attn is predicted 12% too short on average; it is 61% of the measured time and moves the "
        "step by -8.3%.",
        "Under dp the median step is off by 25%.",
        "Under dp, 1 of 1 decode steps are off by more than 15%, the worst by -25% (requests: 1, "
        "mean context: 2,002).",
        "What overlapped switches add is not resolved from the noise: tp to dp (predicted 50 ns, "
        "measured 0 s).",
        "What blocking switches add is off by more than 20%: dp to tp by -50% (predicted 50 ns, "
        "measured 100 ns).",
        "In 1 of 1 comparisons it picks a layout that is slower by 2% or more.",
        "From step 0 on (requests: 1, mean context: 2,000) it picks dp, where tp is fastest and dp "
        "takes 20% longer.",
        "The run was cut: the last 2 steps of the plan were not measured.",
        "No output was checked against the reference, or all were exact.",
    };
    struct trial t;
    make_trial(&t);
    spoil(&t);
    t.plan.n = STEPS;
    t.measured.n = STEPS;
    join(&t);
    expect_doubts(&t, sentences, 7);
    validation_release(&t.v);
    t.measured.n = 4;
    for (int i = 0; i < 4; i++)
        t.seen[i].check_error = 0;
    join(&t);
    struct doubts d;
    doubts_init(&d, &t.v);
    cr_expect_str_eq(d.sentence[d.n - 2], sentences[7]);
    cr_expect_str_eq(d.sentence[d.n - 1], sentences[8]);
    doubts_release(&d);
    validation_release(&t.v);
}

static const char *skip_to(const char *at, const char *part)
{
    const char *found = strstr(at, part);
    cr_assert(found != NULL, "%s is missing in %s", part, at);
    return found + strlen(part);
}

Test(validation_json, has_the_keys_of_the_contract_in_order_and_null_for_the_unknown)
{
    static const char *const parts[] = {
        "{\"steps\":6,\"step_error_p50\":0.0,\"step_error_p95\":0.25,\"schedule_error\":",
        ",\"layout_agreement\":0.0,\"stages\":{\"proj\":{\"share_frac\":",
        "\"exchange\":{\"share_frac\":0.0,\"error_p50\":null,",
        "\"rest\":{",
        "},\"switches\":[{\"from\":\"tp\",\"to\":\"dp\",\"mechanism\":\"overlapped\",\"count\":1,",
        "\"measured_p50_ns\":0,\"measured_p95_ns\":0,\"predicted_ns\":50,\"error\":null,",
        "\"resolved\":false,\"hidden_frac\":null,",
        "\"predicted_hidden_frac\":null,\"hidden_frac_max\":0.75,",
        "\"measured_parts\":{\"waits_ns\":0,\"first_ns\":0,\"later_ns\":0,\"slowed_ns\":0},",
        "\"predicted_parts\":{\"waits_ns\":50,\"first_ns\":null,\"later_ns\":null,\"slowed_ns\":",
        "{\"from\":\"dp\",\"to\":\"tp\",\"mechanism\":\"blocking\",\"count\":1,",
        "\"measured_p50_ns\":100,\"measured_p95_ns\":100,\"predicted_ns\":50,\"error\":-0.5,",
        "],\"check_max_error\":0.001,\"unmatched\":0,",
        "\"layouts\":{\"tp\":{\"steps\":2,",
        "\"windows\":[{\"first_step\":0,\"steps\":1,\"layout\":\"tp\",",
        "\"groups\":[{\"first_step\":0,\"last_step\":2,\"layouts\":{\"tp\":{\"predicted_ns\":1000,",
        "\"verdict\":\"wrong\",\"kendall_tau\":-1.0,",
        "\"hopb\":[],\"noise\":{\"p50_ns\":null,\"p95_ns\":null},",
        "\"first_run\":{\"after_switch\":{\"steps\":0,\"p50\":null,\"p95\":null},\"others\":{",
        "\"doubts\":[\"attn is",
        "\"wavetank\":\"1.2.3\",\"plan\":\"p\",\"measured\":\"m\",\"model\":\"<m>\"",
        "\"profile\":null,\"origin\":{}}",
    };
    struct trial t;
    make_trial(&t);
    spoil(&t);
    join(&t);
    json_t *json = validation_json(&t.v, &t.about);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at = skip_to(at, parts[i]);
    cr_expect_str_eq(at, "");
    free(text);
    json_decref(json);
    validation_release(&t.v);
}

/* In two sub-batches 25% slower than in one piece, and predicted to be no slower. A switch that
 * adds 100 to a step; a first run that takes 10% longer. */
static void make_full(struct trial *t)
{
    make_trial(t);
    for (int i = 0; i < STEPS; i++)
        set_step(t, i, i % 2 == 0 ? "helix:kvp=2,tpa=1" : "helix:kvp=2,tpa=1,hopb=2", NULL);
    set_step(t, 2, "dp", "overlapped");
    set_step(t, 3, "helix:kvp=2,tpa=1,hopb=2", "free");
    set_step(t, 4, "dp", "free");
    set_step(t, 5, "dp", NULL);
    t->seen[1].meas_p50 = times(1250, 850, 0);
    t->planned[2].pred = t->seen[2].meas_p50 = times(1100, 600, 80);
    t->planned[2].pred.switch_first_ns = 30;
    t->seen[2].meas_p50.switch_first_ns = 20;
    t->seen[5].meas_first_ns = 1100;
}

Test(validation_text, shows_what_a_switch_is_made_of_and_where_sub_batches_lose)
{
    static const char *const parts[] = {
        "HOP-B (gain: step time in one piece / in sub-batches - 1)",
        "   0  helix:kvp=2,tpa=1         1    2,000        1  0.00100  0.00100      -      -\n"
        "   0  helix:kvp=2,tpa=1         1    2,000        2  0.00100  0.00125   0.0%   -20%\n",
        "It loses in 1 of 1 comparisons, most with 2 sub-batches from step 0 on: -20%.",
        "Switches: what they add",
        "What a switch's time is made of, in ms",
        "0.000100  0.000080  0.000020  0.000060  0.000020  0.000030  0.000050\n",
        "A step's first run against its median: +10% (p95 +10%) right after a switch (1\n"
        "steps), - (p95 -) elsewhere (0 steps).\n",
        "- In 1 of 1 comparisons HOP-B's gain has the wrong sign, by 2% or more: most\n"
        "  with 2 sub-batches of helix:kvp=2,tpa=1 from step 0 on (predicted 0.0%,\n"
        "  measured -20%).\n",
    };
    struct trial t;
    struct sink s;
    make_full(&t);
    join(&t);
    sink_open(&s);
    validation_print(&t.v, &t.about, s.f);
    const char *at = sink_text(&s);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at = skip_to(at, parts[i]);
    free(s.text);
    validation_release(&t.v);
}

Test(notes, say_nothing_of_what_was_not_measured)
{
    struct trial t;
    char note[NOTE_SIZE];
    make_trial(&t);
    join(&t);
    cr_expect_str_eq(note_noise(&t.v.trials, note), "");
    cr_expect_str_eq(note_hidden(&t.v, note), "");
    cr_expect_str_eq(note_first_runs(&t.v.first_runs, note), "");
    cr_expect_str_eq(note_hopb(&t.v, note), "");
    t.v.trials.noise_p50_ns = 1500;
    t.v.trials.noise_p95_ns = 2500;
    cr_expect_str_eq(note_noise(&t.v.trials, note),
                     "Noise (A/A), the dT between target-ready steps themselves: p50 1.5 us, p95 "
                     "2.5 us over directions.");
    t.v.trials.direction[0].pred_hidden_frac = 0.5;
    cr_expect_str_eq(note_hidden(&t.v, note),
                     "Hidden is 1 - dT overlapped / dT blocking. Of 4 layers the first one's "
                     "transfer always shows: at most 75% hides where all move alike.");
    validation_release(&t.v);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

Test(validation_html, is_one_file_that_needs_no_other)
{
    static const char *const parts[] = {
        "<!DOCTYPE html>",
        "prefers-color-scheme:dark",
        "<h1>Simulator on trial: &lt;m&gt; on c</h1>",
        "not known (unknown cluster &quot;c&quot;)",
        "<h2>Step times</h2>",
        "<h2>Steps without a switch</h2>",
        "<h2>Target-ready steps",
        "<h2>Schedule</h2>",
        "<h2>Layout order</h2>",
        "<h2>Switches</h2>",
        "<h2>Where not to believe it</h2>",
        "</html>",
    };
    static const char *const paired[] = {"svg", "table", "figure", "title", "div", "details", "ul"};
    struct trial t;
    struct sink s;
    make_trial(&t);
    spoil(&t);
    join(&t);
    sink_open(&s);
    validation_html(&t.v, &t.about, s.f);
    const char *at = sink_text(&s);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at = skip_to(at, parts[i]);
    for (size_t i = 0; i < sizeof paired / sizeof *paired; i++) {
        char open[16], close[16];
        snprintf(open, sizeof open, "<%s", paired[i]);
        snprintf(close, sizeof close, "</%s>", paired[i]);
        cr_expect_eq(count(s.text, open), count(s.text, close), "%s", paired[i]);
    }
    cr_expect_eq(count(s.text, "<h2>HOP-B</h2>"), 0);
    cr_expect_eq(count(s.text, "<script") + count(s.text, "http:") + count(s.text, "https:") +
                     count(s.text, "nan"),
                 0);
    cr_expect_neq(strstr(s.text, "<title>step 2, dp: predicted 0.000900 ms, measured 0.00120 ms, "
                                 "-25%</title>"),
                  NULL);
    free(s.text);
    validation_release(&t.v);
}

Test(validation_html, shows_hopb_and_the_parts_of_switches_where_there_are_any)
{
    static const char *const parts[] = {
        "<h2>HOP-B</h2>",
        "It loses in 1 of 1 comparisons",
        "<td>0.00125 (0.00100)<td>-20% (0.0%)<td><svg",
        "<h2>Switches</h2>",
        "<h3>What a switch's time is made of</h3>",
        "<td>0.000030 + 0.000050<td><svg",
        "A step's first run",
    };
    struct trial t;
    struct sink s;
    make_full(&t);
    join(&t);
    sink_open(&s);
    validation_html(&t.v, &t.about, s.f);
    const char *at = sink_text(&s);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at = skip_to(at, parts[i]);
    cr_expect_eq(count(s.text, "nan"), 0);
    free(s.text);
    validation_release(&t.v);
}

Test(validation_charts, a_stack_adds_up_and_what_is_not_told_apart_is_one_piece)
{
    struct switch_way w = {.measured = {80, 20, 60, 20}, .predicted = {50, NAN, NAN, NAN}};
    struct sink s;
    sink_open(&s);
    parts_bars(&w, 148, s.f);
    sink_text(&s);
    cr_expect_neq(strstr(s.text, "x=\"0.0\" y=\"1\" width=\"20.0\""), NULL);
    cr_expect_neq(strstr(s.text, "x=\"20.0\" y=\"1\" width=\"60.0\""), NULL);
    cr_expect_neq(strstr(s.text, "x=\"80.0\" y=\"1\" width=\"20.0\""), NULL);
    cr_expect_neq(strstr(s.text,
                         "x=\"0.0\" y=\"14\" width=\"50.0\" height=\"11\"><title>predicted: "
                         "waits of all layers"),
                  NULL);
    cr_expect_eq(count(s.text, "<rect"), 4);
    free(s.text);
}

Test(validation_charts, gains_stand_to_the_right_of_zero_and_losses_to_the_left)
{
    struct hopb_trial t = {.pred_gain = 0.1, .gain = -0.05};
    struct sink s;
    sink_open(&s);
    gain_bars(&t, 0.1, s.f);
    sink_text(&s);
    cr_expect_neq(strstr(s.text, "x=\"38.0\" y=\"1\" width=\"37.0\""), NULL);
    cr_expect_neq(strstr(s.text, "x=\"75.0\" y=\"14\" width=\"74.0\""), NULL);
    free(s.text);
}

Test(validation_charts, long_schedules_are_drawn_in_part_and_said_to_be)
{
    enum { LONG = 2 * CHART_STEPS_MAX };
    static struct joined_step step[LONG];
    const char *layout[] = {"tp"};
    struct plan_step at = {.step = 1};
    struct plan_times t = times(1000, 600, 0);
    struct joined j = {.step = step, .n = LONG, .layout = layout, .n_layouts = 1};
    struct sink s;
    for (int i = 0; i < LONG; i++)
        step[i] = (struct joined_step){.at = &at, .pred = &t, .meas = &t, .from = -1};
    sink_open(&s);
    parity_chart(&j, s.f);
    sink_text(&s);
    cr_expect_eq(count(s.text, "<use "), CHART_STEPS_MAX);
    cr_expect_neq(strstr(s.text, "One step in 2 is drawn."), NULL);
    free(s.text);
}
