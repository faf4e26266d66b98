/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/chart.h"

#include <math.h>

#include "sim/report/html.h"

enum { WIDTH = 400, LEFT = 60, RIGHT = 10, TOP = 8, BOTTOM = 40, TICKS = 5, TICKS_MAX = 32 };

/* Beyond this ratio ticks are 1, 2, 5 times powers of ten, below they are evenly spaced. */
static const double log_ticks_ratio = 6;

/* 0 at the axis's beginning, 1 at its end. */
static double along(const struct chart_axis *a, double v)
{
    v = fmin(fmax(v, a->min), a->max);
    return a->log ? log(v / a->min) / log(a->max / a->min) : (v - a->min) / (a->max - a->min);
}

double chart_x(const struct chart *c, double x)
{
    return LEFT + along(&c->x, x) * (WIDTH - LEFT - RIGHT);
}

double chart_y(const struct chart *c, double y)
{
    return c->height - BOTTOM - along(&c->y, y) * (c->height - TOP - BOTTOM);
}

static void begin_data(struct chart *c)
{
    csv_link_begin(&c->data);
    csv_link_text(&c->data, "series");
    csv_link_text(&c->data, "drawn as");
    csv_link_text(&c->data, c->x.title);
    csv_link_text(&c->data, c->y.title);
    csv_link_text(&c->data, "note");
    csv_link_row_end(&c->data);
}

static void add_data(struct chart *c, int series, const char *as, double x, double y,
                     const char *note)
{
    csv_link_text(&c->data, c->series[series]);
    csv_link_text(&c->data, as);
    csv_link_number(&c->data, x);
    csv_link_number(&c->data, y);
    csv_link_text(&c->data, note);
    csv_link_row_end(&c->data);
}

void chart_begin(struct chart *c, const char *label)
{
    begin_data(c);
    fprintf(c->out, "<figure><svg viewBox=\"0 0 %d %g\" role=\"img\" aria-label=\"", WIDTH,
            c->height);
    html_text(c->out, label);
    fputs("\">\n", c->out);
}

void chart_end(struct chart *c, const char *caption)
{
    fputs("</svg>\n<figcaption>", c->out);
    html_printf(c->out, "%s ", caption);
    csv_link_end(&c->data, caption, c->out);
    fputs("</figcaption></figure>\n", c->out);
}

/* Polygons are cut where they leave the chart, so that their edges keep their slopes. */
void chart_band(const struct chart *c, const char *class, const double low[2], const double high[2])
{
    enum { PIECES = 64 };
    fprintf(c->out, "<polygon class=\"%s\" points=\"", class);
    for (int i = 0; i < 2 * (PIECES + 1); i++) {
        const double *edge = i <= PIECES ? low : high;
        double t = (double)(i <= PIECES ? i : 2 * PIECES + 1 - i) / PIECES;
        double x = c->x.log ? c->x.min * pow(c->x.max / c->x.min, t)
                            : c->x.min + t * (c->x.max - c->x.min);
        double y =
            c->y.log ? edge[0] * pow(edge[1] / edge[0], t) : edge[0] + t * (edge[1] - edge[0]);
        fprintf(c->out, "%.1f,%.1f ", chart_x(c, x), chart_y(c, y));
    }
    fputs("\"/>\n", c->out);
}

static int even_ticks(const struct chart_axis *a, double *tick)
{
    double rough = (a->max - a->min) / TICKS, power = pow(10, floor(log10(rough)));
    double lead = rough / power, step = power * (lead < 1.5   ? 1
                                                 : lead < 3.5 ? 2
                                                 : lead < 7.5 ? 5
                                                              : 10);
    int n = 0;
    for (double k = ceil(a->min / step - 1e-9); k * step <= a->max * (1 + 1e-9) && n < TICKS_MAX;
         k++)
        tick[n++] = k * step + 0.0; /* no -0 */
    return n;
}

static int log_ticks(const struct chart_axis *a, double *tick)
{
    static const double lead[] = {1, 2, 5};
    double decades = log10(a->max / a->min);
    int n = 0, leads = decades < 2.5 ? 3 : 1;
    double stride = ceil(decades / (TICKS + 1));
    for (double p = floor(log10(a->min)); p <= log10(a->max) && n < TICKS_MAX - 3; p += stride)
        for (int i = 0; i < leads; i++) {
            double v = lead[i] * pow(10, p);
            if (v >= a->min && v <= a->max)
                tick[n++] = v;
        }
    return n;
}

static int axis_ticks(const struct chart_axis *a, double *tick)
{
    return a->log && a->max / a->min > log_ticks_ratio ? log_ticks(a, tick) : even_ticks(a, tick);
}

static void draw_y_axis(const struct chart *c)
{
    double tick[TICKS_MAX];
    int n = axis_ticks(&c->y, tick);
    for (int i = 0; i < n; i++) {
        double y = chart_y(c, tick[i]);
        fprintf(c->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
        fprintf(c->out, "<text class=\"dim\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n",
                LEFT - 5, y + 4, tick[i], c->y.unit);
    }
    double middle = (c->height - BOTTOM + TOP) / 2;
    fprintf(c->out, "<text transform=\"translate(12 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            middle);
    html_text(c->out, c->y.title);
    fputs("</text>\n", c->out);
}

static void draw_x_axis(const struct chart *c)
{
    double tick[TICKS_MAX], bottom = c->height - BOTTOM;
    int n = axis_ticks(&c->x, tick);
    for (int i = 0; i < n; i++) {
        double x = chart_x(c, tick[i]);
        fprintf(c->out, "<path class=\"grid\" d=\"M%.1f %dV%.1f\"/>", x, TOP, bottom);
        fprintf(c->out,
                "<text class=\"dim\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g%s</text>\n", x,
                bottom + 15, tick[i], c->x.unit);
    }
    fprintf(c->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">", (WIDTH + LEFT - RIGHT) / 2,
            c->height - 6);
    html_text(c->out, c->x.title);
    fputs("</text>\n", c->out);
}

void chart_axes(const struct chart *c)
{
    draw_x_axis(c);
    draw_y_axis(c);
    fprintf(c->out, "<path class=\"axis\" d=\"M%d %dV%gH%d\"/>\n", LEFT, TOP, c->height - BOTTOM,
            WIDTH - RIGHT);
}

void chart_parity_band(const struct chart *c, const char *class, double frac)
{
    double low[2] = {c->x.min * (1 - frac), c->x.max * (1 - frac)};
    double high[2] = {c->x.min * (1 + frac), c->x.max * (1 + frac)};
    chart_band(c, class, low, high);
}

void chart_parity_line(const struct chart *c)
{
    fprintf(c->out, "<path class=\"axis\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", chart_x(c, c->x.min),
            chart_y(c, c->y.min), chart_x(c, c->x.max), chart_y(c, c->y.max));
}

void chart_line(struct chart *c, const double *x, const double *y, int n, int series, bool dashed)
{
    fprintf(c->out, "<path class=\"line%s s%d\" d=\"", dashed ? " dash" : "", series % HTML_SERIES);
    for (int i = 0; i < n; i++) {
        fprintf(c->out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', chart_x(c, x[i]), chart_y(c, y[i]));
        add_data(c, series, dashed ? "dashed line" : "line", x[i], y[i], "");
    }
    fputs("\"/>\n", c->out);
}

void chart_mark(struct chart *c, double x, double y, int series, enum chart_mark mark,
                const char *note)
{
    static const char *const name[] = {
        [MARK_FULL] = "mark", [MARK_OPEN] = "open mark", [MARK_FAINT] = "faint mark"};
    static const char *const class[] = {
        [MARK_FULL] = "mark c", [MARK_OPEN] = "open s", [MARK_FAINT] = "faint c"};
    int s = series % HTML_SERIES;
    fprintf(c->out, "<use href=\"#m%d\" class=\"%s%d\" x=\"%.1f\" y=\"%.1f\"><title>", s,
            class[mark], s, chart_x(c, x), chart_y(c, y));
    html_text(c->out, note);
    fputs("</title></use>\n", c->out);
    add_data(c, series, name[mark], x, y, note);
}
