/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_charts.h"

#include <math.h>

#include "sim/report/chart.h"
#include "sim/report/csv_link.h"
#include "sim/report/html.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"

static const double near_frac = 0.05, far_frac = 0.15;

static int stride_of(int n)
{
    return (n + CHART_STEPS_MAX - 1) / CHART_STEPS_MAX;
}

static void end_chart(struct chart *c, const char *text, int n)
{
    char caption[256];
    int stride = stride_of(n);
    if (stride > 1)
        snprintf(caption, sizeof caption, "%s One step in %d is drawn.", text, stride);
    chart_end(c, stride > 1 ? caption : text);
}

static void mark_step(struct chart *c, const struct joined *j, const struct joined_step *s,
                      double x, double y)
{
    static const enum chart_mark mark[STEP_KIND_COUNT] = {
        [STEP_STEADY] = MARK_FULL, [STEP_READY] = MARK_FAINT, [STEP_SWITCH] = MARK_OPEN};
    char pred[32], meas[32], error[PERCENT_SIZE], from[96] = "", note[320];
    if (s->from >= 0)
        snprintf(from, sizeof from, " from %s, %s", j->layout[s->from],
                 mechanism_names[s->mechanism]);
    snprintf(note, sizeof note, "step %lld, %s%s: predicted %s ms, measured %s ms, %s",
             (long long)s->at->step, j->layout[s->layout], from,
             table_number((double)s->pred->step_ns / 1e6, pred, sizeof pred),
             table_number((double)s->meas->step_ns / 1e6, meas, sizeof meas),
             percent_signed(s->error, error));
    chart_mark(c, x, y, s->layout, mark[s->kind], note);
}

/* Predictions of 0 have no place on a logarithmic axis: they go to its edge. */
static struct chart_axis time_axis(const struct joined *j, const char *title)
{
    struct chart_axis a = {.min = INFINITY, .log = true, .title = title, .unit = ""};
    for (int i = 0; i < j->n; i++) {
        double pred = (double)j->step[i].pred->step_ns, meas = (double)j->step[i].meas->step_ns;
        a.min = fmin(a.min, pred > 0 ? fmin(pred, meas) : meas);
        a.max = fmax(a.max, fmax(pred, meas));
    }
    a.min *= 0.8 / 1e6;
    a.max *= 1.25 / 1e6;
    return a;
}

void parity_chart(const struct joined *j, FILE *out)
{
    struct chart c = {
        .out = out,
        .x = time_axis(j, "measured step time, ms"),
        .y = time_axis(j, "predicted step time, ms"),
        .height = 384,
        .series = j->layout,
    };
    chart_begin(&c, "Predicted against measured step time, by layout, with bands of 5% and 15% "
                    "about equality. The marks' titles have the numbers.");
    chart_parity_band(&c, "far", far_frac);
    chart_parity_band(&c, "near", near_frac);
    chart_axes(&c);
    chart_parity_line(&c);
    for (int i = 0; i < j->n; i += stride_of(j->n))
        mark_step(&c, j, &j->step[i], (double)j->step[i].meas->step_ns / 1e6,
                  (double)j->step[i].pred->step_ns / 1e6);
    end_chart(&c,
              "Predicted against measured step time. Bands: within 5% and 15%. Open marks have a "
              "switch inside, faint ones are target-ready.",
              j->n);
}

/* As large as the largest error, within reason. */
static double error_limit(const struct joined *j)
{
    double max = 0;
    for (int i = 0; i < j->n; i++)
        max = fmax(max, fabs(j->step[i].error));
    return fmin(fmax(max * 1.1, 0.2), 1) * 100;
}

static void error_band(const struct chart *c, const char *class, double frac)
{
    double low[2] = {-100 * frac, -100 * frac}, high[2] = {100 * frac, 100 * frac};
    chart_band(c, class, low, high);
}

static void mark_switches(const struct chart *c, const struct joined *j)
{
    double bottom = chart_y(c, c->y.min);
    for (int i = 0; i < j->n; i++) {
        const struct joined_step *s = &j->step[i];
        if (s->from < 0)
            continue;
        fprintf(c->out, "<path class=\"axis\" d=\"M%.1f %.1fv-10\"><title>",
                chart_x(c, (double)s->at->step), bottom);
        html_printf(c->out, "step %lld: %s to %s, %s", (long long)s->at->step, j->layout[s->from],
                    j->layout[s->layout], mechanism_names[s->mechanism]);
        fputs("</title></path>\n", c->out);
    }
}

void error_chart(const struct joined *j, FILE *out)
{
    double first = (double)j->step[0].at->step, last = (double)j->step[j->n - 1].at->step;
    double limit = error_limit(j), room = fmax((last - first) * 0.02, 0.5 + last * 1e-12);
    struct chart c = {
        .out = out,
        .x = {.min = first - room, .max = last + room, .title = "step", .unit = ""},
        .y = {.min = -limit, .max = limit, .title = "predicted / measured - 1, %", .unit = "%"},
        .height = 384,
        .series = j->layout,
    };
    chart_begin(&c, "Error of each step over the schedule, with bands of 5% and 15%, and a line "
                    "at the bottom for each switch. The marks' titles have the numbers.");
    error_band(&c, "far", far_frac);
    error_band(&c, "near", near_frac);
    chart_axes(&c);
    fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", chart_x(&c, c.x.min),
            chart_y(&c, 0), chart_x(&c, c.x.max));
    mark_switches(&c, j);
    for (int i = 0; i < j->n; i += stride_of(j->n))
        mark_step(&c, j, &j->step[i], (double)j->step[i].at->step, 100 * j->step[i].error);
    end_chart(&c,
              "Error over the schedule; beyond 100% at the edge. Lines at the bottom are switches.",
              j->n);
}

static void stage_bar(FILE *out, double frac, double limit, double y, const char *class,
                      const char *title)
{
    enum { ZERO = 225, REACH = 115 };
    char text[PERCENT_SIZE];
    double length = fmin(fabs(frac) / limit, 1) * REACH, side = frac < 0 ? -1 : 1;
    if (isnan(frac))
        return;
    fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"13\"><title>",
            class, frac < 0 ? ZERO - length : ZERO, y, length);
    html_printf(out, "%s %s", title, percent_signed(frac, text));
    fprintf(out, "</title></rect><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
            ZERO + side * (length + 4), y + 11, frac < 0 ? "end" : "start", text);
}

static void stage_data(const struct step_errors *e, FILE *out)
{
    struct csv_link data;
    csv_link_begin(&data);
    fputs("stage,share of time,mean error,part of the step's error\n", data.rows);
    for (int p = 0; p < PART_COUNT; p++) {
        csv_link_text(&data, step_part_names[p]);
        csv_link_number(&data, e->part[p].share_frac);
        csv_link_number(&data, e->part[p].error.mean);
        csv_link_number(&data, e->part[p].blame);
        csv_link_row_end(&data);
    }
    csv_link_end(&data, "Errors by stage", out);
}

void stage_chart(const struct step_errors *e, FILE *out)
{
    enum { ROW = 42 };
    double limit = 0.05;
    for (int p = 0; p < PART_COUNT; p++)
        limit = fmax(limit, fmax(fabs(e->part[p].error.mean), fabs(e->part[p].blame)));
    limit = fmin(limit, 0.5);
    fprintf(out,
            "<figure><svg viewBox=\"0 0 400 %d\" role=\"img\" aria-label=\"Mean error of each "
            "stage, and its part of the step's error. The table has the numbers.\">\n",
            ROW * PART_COUNT);
    for (int p = 0; p < PART_COUNT; p++) {
        char share[PERCENT_SIZE];
        fprintf(out, "<text x=\"0\" y=\"%d\">%s</text>", ROW * p + 16, step_part_names[p]);
        fprintf(out, "<text class=\"dim\" x=\"0\" y=\"%d\">%s of time</text>\n", ROW * p + 31,
                percent(e->part[p].share_frac, share));
        stage_bar(out, e->part[p].error.mean, limit, ROW * p + 5, "c0", "mean error of the stage");
        stage_bar(out, e->part[p].blame, limit, ROW * p + 20, "c1", "part of the step's error");
    }
    fprintf(out, "<path class=\"axis\" d=\"M225 0V%d\"/></svg>\n", ROW * PART_COUNT);
    fputs("<figcaption>Upper bar: mean error of the stage itself (cut at 50%). Lower bar: its part "
          "of the step's mean error. ",
          out);
    stage_data(e, out);
    fputs("</figcaption></figure>\n", out);
}

static void switch_bar(FILE *out, double ns, double longest_ns, int y, const char *class,
                       const char *what)
{
    double width = longest_ns > 0 ? 148 * fmax(ns, 0) / longest_ns : 0;
    fprintf(out,
            "<rect class=\"%s\" x=\"0\" y=\"%d\" width=\"%.1f\" height=\"11\"><title>%s %.3f "
            "ms</title></rect>",
            class, y, fmax(width, 1), what, ns / 1e6);
}

void switch_bars(const struct switch_way *w, double longest_ns, FILE *out)
{
    fputs("<svg class=\"bars\" viewBox=\"0 0 150 26\" role=\"img\" aria-label=\"measured above "
          "predicted\">",
          out);
    switch_bar(out, w->dt_ns, longest_ns, 1, "c0", "measured");
    switch_bar(out, w->pred_ns, longest_ns, 14, "c1", "predicted");
    fputs("</svg>", out);
}

/* Colours other than those of measured and predicted. */
static const struct {
    const char *name, *class;
} parts[] = {{"first layer", "c2"}, {"later waits", "c4"}, {"slowed computation", "c3"}};

enum { N_PARTS = sizeof parts / sizeof *parts };

static void stacked_bar(FILE *out, const struct switch_parts *p, double scale, int y,
                        const char *what)
{
    bool split = !isnan(p->first_ns);
    const double ns[N_PARTS] = {p->first_ns, split ? p->later_ns : p->waits_ns, p->slowed_ns};
    double x = 0;
    for (int i = 0; i < N_PARTS; i++) {
        if (!(ns[i] * scale > 0))
            continue;
        fprintf(out,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"11\"><title>%s: "
                "%s %.3f ms</title></rect>",
                parts[i].class, x, y, ns[i] * scale, what,
                i == 1 && !split ? "waits of all layers" : parts[i].name, ns[i] / 1e6);
        x += ns[i] * scale;
    }
}

void parts_bars(const struct switch_way *w, double longest_ns, FILE *out)
{
    double scale = longest_ns > 0 ? 148 / longest_ns : 0;
    fputs("<svg class=\"bars\" viewBox=\"0 0 150 26\" role=\"img\" aria-label=\"parts, measured "
          "above predicted\">",
          out);
    stacked_bar(out, &w->measured, scale, 1, "measured");
    stacked_bar(out, &w->predicted, scale, 14, "predicted");
    fputs("</svg>", out);
}

void parts_legend(FILE *out)
{
    fputs("<ul class=\"key\">", out);
    for (int i = 0; i < N_PARTS; i++)
        fprintf(out,
                "<li><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><rect class=\"%s\" x=\"1\" "
                "y=\"3\" width=\"14\" height=\"10\"/></svg>%s</li>",
                parts[i].class, parts[i].name);
    fputs("</ul>\n", out);
}

static void gain_bar(FILE *out, double gain, double largest, int y, const char *what)
{
    enum { ZERO = 75, REACH = 74 };
    char text[PERCENT_SIZE];
    double length = isnan(gain) ? 0 : fabs(gain) / largest * REACH;
    fprintf(out,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"11\"><title>%s "
            "%s</title></rect>",
            y == 1 ? "c0" : "c1", gain < 0 ? ZERO - length : ZERO, y, length, what,
            percent_signed(gain, text));
}

void gain_bars(const struct hopb_trial *t, double largest, FILE *out)
{
    fputs("<svg class=\"bars\" viewBox=\"0 0 150 26\" role=\"img\" aria-label=\"gain, measured "
          "above predicted\">",
          out);
    gain_bar(out, t->gain, largest, 1, "measured");
    gain_bar(out, t->pred_gain, largest, 14, "predicted");
    fputs("<path class=\"axis\" d=\"M75 0V26\"/></svg>", out);
}
