/* SPDX-License-Identifier: Apache-2.0
 *
 * An x-y chart as inline SVG, for html.h's page: axes, bands and marks, as a figure with
 * a caption and a link to its data as CSV. Whatever lies outside the axes is drawn at their edge.
 */
#ifndef SIM_REPORT_CHART_H
#define SIM_REPORT_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/report/csv_link.h"

struct chart_axis {
    double min, max; /* min < max; above 0 when logarithmic */
    bool log;
    const char *title;
    const char *unit; /* behind each tick's number */
};

struct chart {
    FILE *out;
    struct chart_axis x, y;
    double height;             /* of 400 wide */
    const char *const *series; /* names, for the data: of all that are drawn */
    struct csv_link data;      /* the chart's own */
};

/* `label` says in words what the chart shows. Then bands, marks, and chart_end(). */
void chart_begin(struct chart *c, const char *label);
void chart_end(struct chart *c, const char *caption);

/* The area between the lines through (x_i, low_i) and (x_i, high_i) at both ends of the x axis. */
void chart_band(const struct chart *c, const char *class, const double low[2],
                const double high[2]);
/* Grid lines, numbers and titles: after the bands, which lie below. */
void chart_axes(const struct chart *c);

/* What predicts another quantity: the band within `frac` of equality, and the line of equality. */
void chart_parity_band(const struct chart *c, const char *class, double frac);
void chart_parity_line(const struct chart *c);

/* A line of a series through n points. */
void chart_line(struct chart *c, const double *x, const double *y, int n, int series, bool dashed);

/* Where a value falls, in the chart's own coordinates. */
double chart_x(const struct chart *c, double x);
double chart_y(const struct chart *c, double y);

enum chart_mark { MARK_FULL, MARK_OPEN, MARK_FAINT };

/* One mark of a series, and what it says to who points at it. */
void chart_mark(struct chart *c, double x, double y, int series, enum chart_mark mark,
                const char *note);

#endif
