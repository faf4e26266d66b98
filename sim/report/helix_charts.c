/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures 1, 5, 6 and 7 of the Helix paper: curves whose rows have the abscissa at the end of their
 * ids and the ordinate as ours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/chart.h"
#include "sim/report/html.h"
#include "sim/report/reproduction_charts.h"

enum { POINTS_MAX = 256, SERIES_MAX = 3 };

struct curve {
    int n;
    double x[POINTS_MAX], y[POINTS_MAX];
    const struct row *row[POINTS_MAX];
};

/* Rows whose ids begin so, in their order. */
static void take_curve(const struct reproduction *r, const char *prefix, double x_unit,
                       struct curve *c)
{
    size_t length = strlen(prefix);
    c->n = 0;
    for (size_t i = 0; i < r->n && c->n < POINTS_MAX; i++) {
        const struct row *row = &r->row[i];
        if (strncmp(row->id, prefix, length) != 0)
            continue;
        c->x[c->n] = strtod(row->id + length, NULL) / x_unit;
        c->y[c->n] = strtod(row->ours, NULL);
        c->row[c->n++] = row;
    }
}

static const struct figure {
    const char *caption;
    const char *prefix[SERIES_MAX]; /* one a series; NULL: none */
    double x_unit;
    const char *x_title, *y_title;
    bool log;
} roofline[] =
    {
        {"Figure 1, left: by TP, 10^6 tokens.",
         {"helix.figure1.kv_ms.tp.", "helix.figure1.weights_ms.tp."},
         1,
         "TP",
         "ms a layer",
         true},
        {"Figure 1, middle: by context, TP 8.",
         {"helix.figure1.kv_ms.context."},
         1e6,
         "context, 10^6 tokens",
         "ms a layer",
         false},
        {"Figure 1, right: by KVP, TP 8, 10^6 tokens.",
         {"helix.figure1.kv_ms.kvp."},
         1,
         "KVP",
         "ms a layer",
         false},
},
  frontiers[] =
      {
          {"Figure 5: DeepSeek-R1.",
           {"helix.r1.baseline.at_", "helix.r1.helix.at_"},
           1,
           "tokens/s/user",
           "tokens/s/GPU",
           true},
          {"Figure 6: Llama-405B.",
           {"helix.405b.baseline.at_", "helix.405b.helix.at_", "helix.405b.medha.at_"},
           1,
           "tokens/s/user",
           "tokens/s/GPU",
           true},
},
  ablation[] = {
      {"Figure 7, left: DeepSeek-R1.",
       {"helix.r1.hopb_off.at_", "helix.r1.hopb_on.at_"},
       1,
       "tokens/s/user",
       "tokens/s/GPU",
       true},
      {"Figure 7, right: Llama-405B.",
       {"helix.405b.hopb_off.at_", "helix.405b.hopb_on.at_"},
       1,
       "tokens/s/user",
       "tokens/s/GPU",
       true},
};

/* A margin of a tenth about all values; from 0 where the axis is even. */
static struct chart_axis axis_of(const struct curve *c, bool is_x, bool log, const char *title)
{
    struct chart_axis a = {.min = INFINITY, .log = log, .title = title, .unit = ""};
    for (int s = 0; s < SERIES_MAX; s++)
        for (int i = 0; i < c[s].n; i++) {
            double v = is_x ? c[s].x[i] : c[s].y[i];
            a.min = fmin(a.min, v);
            a.max = fmax(a.max, v);
        }
    a.min = log ? a.min / 1.1 : 0;
    a.max *= 1.1;
    return a;
}

static void draw_curve(struct chart *chart, const struct curve *c, int series)
{
    char note[160];
    if (c->n == 0)
        return;
    chart_line(chart, c->x, c->y, c->n, series, false);
    for (int i = 0; i < c->n; i++) {
        snprintf(note, sizeof note, "%s: %s", c->row[i]->id, c->row[i]->ours);
        chart_mark(chart, c->x[i], c->y[i], series, MARK_FULL, note);
    }
}

static void draw(const struct reproduction *r, const struct figure *f, const char *const *series,
                 FILE *out)
{
    struct curve curve[SERIES_MAX];
    int points = 0;
    for (int s = 0; s < SERIES_MAX; s++) {
        curve[s].n = 0;
        if (f->prefix[s] != NULL)
            take_curve(r, f->prefix[s], f->x_unit, &curve[s]);
        points += curve[s].n;
    }
    if (points == 0)
        return;
    struct chart chart = {.out = out,
                          .x = axis_of(curve, true, f->log, f->x_title),
                          .y = axis_of(curve, false, f->log, f->y_title),
                          .height = 320,
                          .series = series};
    chart_begin(&chart, f->caption);
    chart_axes(&chart);
    for (int s = 0; s < SERIES_MAX; s++)
        draw_curve(&chart, &curve[s], s);
    chart_end(&chart, f->caption);
}

static void draw_all(const struct reproduction *r, const struct figure *f, size_t n,
                     const char *const *series, FILE *out)
{
    fputs("<div class=\"pair\">\n", out);
    for (size_t i = 0; i < n; i++)
        draw(r, &f[i], series, out);
    fputs("</div>\n", out);
}

void roofline_charts(const struct reproduction *r, FILE *out)
{
    static const char *const name[] = {"KV", "weights"};
    html_legend(out, name, 2);
    draw_all(r, roofline, sizeof roofline / sizeof *roofline, name, out);
}

void frontiers_charts(const struct reproduction *r, FILE *out)
{
    static const char *const name[] = {"baseline", "Helix", "Medha"};
    html_legend(out, name, 3);
    draw_all(r, frontiers, sizeof frontiers / sizeof *frontiers, name, out);
}

void ablation_charts(const struct reproduction *r, FILE *out)
{
    static const char *const name[] = {"HOP-B off", "HOP-B on"};
    html_legend(out, name, 2);
    draw_all(r, ablation, sizeof ablation / sizeof *ablation, name, out);
}
