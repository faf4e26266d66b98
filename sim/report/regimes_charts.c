/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures 1, 6 and 7: latency of the four layouts by Eq. 11 and 12 up to where their KV fills
 * memory, dashed beyond, with the changes of the fastest.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/report/chart.h"
#include "sim/report/html.h"
#include "sim/report/reproduction_charts.h"
#include "sim/reproduce/crossovers.h"

enum { POINTS = 240 };

static const struct figure {
    const char *name, *platform, *title;
    double longest_k, highest;              /* of the axes, as in the paper */
    double said_limit_k[CROSSOVER_LAYOUTS]; /* that the paper prescribes; 0: a row has it */
} figures[] = {
    {"figure1", "b200", "Figure 1: GLM-5.3 on B200", 525, 35, {0, 450, 400, 512}},
    {"figure6", "dcu", "Figure 6: GLM-5.3-Flash on DCU", 415, 30, {0}},
    {"figure7", "h200", "Figure 7: DeepSeek-V3.2 on H200", 260, 30, {0}},
};

static const struct row *row_of(const struct reproduction *r, const char *a, const char *b,
                                const char *c)
{
    char id[64];
    snprintf(id, sizeof id, "%s.%s.%s", a, b, c);
    return reproduction_row(r, id);
}

static double number(const struct row *row, double otherwise)
{
    return row != NULL ? strtod(row->ours, NULL) : otherwise;
}

/* A figure with what was computed for it. */
struct drawing {
    const struct reproduction *r;
    const struct figure *f;
    double alpha; /* of Eq. 12; the DCU is the reference */
    struct chart chart;
};

static double latency(const struct drawing *d, int layout, double k_tokens)
{
    return crossovers_latency(layout, k_tokens / d->alpha) /
           crossovers_latency(CROSSOVER_TP, 1 / d->alpha);
}

static double limit_k(const struct drawing *d, int layout)
{
    char of[32];
    snprintf(of, sizeof of, "%s.%s", d->f->platform, crossover_layouts[layout]);
    return number(row_of(d->r, d->f->name, of, "limit_k"), d->f->said_limit_k[layout]);
}

static const struct row *crossover(const struct drawing *d, int from, int to)
{
    char of[32];
    snprintf(of, sizeof of, "%s.%s-%s", d->f->platform, crossover_layouts[from],
             crossover_layouts[to]);
    return row_of(d->r, d->f->name, of, "k_tokens");
}

static bool is_inside(const struct chart *c, double x, double y)
{
    return x >= c->x.min && x <= c->x.max && y >= c->y.min && y <= c->y.max;
}

/* From one length to another, as far as it stays within the chart. */
static void draw_curve(struct drawing *d, int layout, double from_k, double to_k, bool dashed)
{
    struct chart *c = &d->chart;
    double x[POINTS + 1], y[POINTS + 1];
    double first = fmax(from_k, c->x.min), last = fmin(to_k, c->x.max);
    int n = 0;
    for (int i = 0; first < last && i <= POINTS; i++) {
        x[n] = first + (last - first) * i / POINTS;
        y[n] = latency(d, layout, x[n]);
        n += is_inside(c, x[n], y[n]);
    }
    if (n > 0)
        chart_line(c, x, y, n, layout, dashed);
}

static void draw_layout(struct drawing *d, int layout)
{
    char note[96];
    struct chart *c = &d->chart;
    double limit = limit_k(d, layout), at = latency(d, layout, limit);
    draw_curve(d, layout, 0, limit, false);
    draw_curve(d, layout, limit, INFINITY, true);
    if (!is_inside(c, limit, at))
        return;
    snprintf(note, sizeof note, "%s: KV fits up to %gk tokens%s", crossover_layouts[layout], limit,
             d->f->said_limit_k[layout] > 0 ? " (prescribed by the paper)" : "");
    chart_mark(c, limit, at, layout, MARK_FULL, note);
}

static void draw_crossover(struct drawing *d, int from, int to)
{
    char note[128];
    struct chart *c = &d->chart;
    const struct row *row = crossover(d, from, to);
    double k_tokens = number(row, NAN), at = latency(d, to, k_tokens);
    if (row == NULL || !is_inside(c, k_tokens, at))
        return;
    snprintf(note, sizeof note, "from %s to %s at %sk tokens; the paper has %sk",
             crossover_layouts[from], crossover_layouts[to], row->ours, row->paper);
    chart_mark(c, k_tokens, at, to, MARK_OPEN, note);
}

static void draw(struct drawing *d, const char *about)
{
    char caption[96];
    chart_begin(&d->chart, d->f->title);
    chart_axes(&d->chart);
    for (int layout = 0; layout < CROSSOVER_LAYOUTS; layout++)
        draw_layout(d, layout);
    for (int from = 0; from < CROSSOVER_LAYOUTS; from++)
        for (int to = 0; to < CROSSOVER_LAYOUTS; to++)
            draw_crossover(d, from, to);
    snprintf(caption, sizeof caption, "%s%s", d->f->title, about);
    chart_end(&d->chart, caption);
}

static void draw_figure(const struct reproduction *r, const struct figure *f, FILE *out)
{
    struct drawing d = {
        .r = r,
        .f = f,
        .alpha = number(row_of(r, "eq12", "alpha", f->platform), 1),
        .chart = {.out = out,
                  .x = {.max = f->longest_k, .title = "nominal input, 1024 tokens", .unit = ""},
                  .y = {.max = f->highest, .title = "latency over TP's at 1k", .unit = ""},
                  .height = 320,
                  .series = crossover_layouts},
    };
    double first_k = number(crossover(&d, CROSSOVER_TP, CROSSOVER_DP), 1),
           first = latency(&d, CROSSOVER_TP, first_k);
    fputs("<div class=\"pair\">\n", out);
    draw(&d, ".");
    d.chart.x.min = first_k * 0.6;
    d.chart.x.max = first_k * 1.8;
    d.chart.y.min = first * 0.6;
    d.chart.y.max = first * 1.6;
    draw(&d, ": about the first crossover.");
    fputs("</div>\n", out);
}

void regimes_charts(const struct reproduction *r, FILE *out)
{
    html_legend(out, crossover_layouts, CROSSOVER_LAYOUTS);
    html_p(out,
           "Open marks: the fastest layout changes to the mark's. Full marks: KV fills "
           "memory; dashed beyond. On B200 the paper prescribes the limits of DP, CP and DOP.");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        draw_figure(r, &figures[i], out);
}
