/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/reproduction_charts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/chart.h"
#include "sim/report/csv_link.h"
#include "sim/report/html.h"
#include "sim/report/percent.h"

enum { PLATFORM_FIGURES = 3, NOTE_SIZE = 256 };

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Rows of a figure or table, "figure5.", whose ids end so, and that the paper has. */
static bool is_of(const struct row *row, const char *table, const char *end)
{
    return strncmp(row->id, table, strlen(table)) == 0 && ends_with(row->id, end) &&
           row->paper[0] != '\0';
}

static double paper_of(const struct row *row)
{
    return strtod(row->paper, NULL);
}

/* Before it was rounded, where that can be told. */
static double ours_of(const struct row *row)
{
    return isnan(row->error_frac) ? strtod(row->ours, NULL) : paper_of(row) * (1 + row->error_frac);
}

static const char *row_note(const struct row *row, char note[NOTE_SIZE])
{
    char error[PERCENT_SIZE];
    snprintf(note, NOTE_SIZE, "%s: paper %s, ours %s, %s", row->id, row->paper, row->ours,
             percent_signed(row->error_frac, error));
    return note;
}

static void bar(FILE *out, const struct row *row, const char *value, double longest, int y,
                const char *class)
{
    enum { ZERO = 62, REACH = 290 };
    char note[NOTE_SIZE];
    double length = strtod(value, NULL) / longest * REACH;
    fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"13\"><title>", class,
            ZERO, y, length);
    html_text(out, row_note(row, note));
    fprintf(out, "</title></rect><text x=\"%.1f\" y=\"%d\">%s</text>\n", ZERO + length + 4, y + 11,
            value);
}

/* The direction in an id: "tp-cp" of "figure5.tp-cp.kv_ms". */
static int direction_length(const char *id, const char **at)
{
    *at = strchr(id, '.') + 1;
    return (int)strcspn(*at, ".");
}

static void bars_data(const struct reproduction *r, const char *figure, const char *end,
                      const char *caption, FILE *out)
{
    struct csv_link data;
    csv_link_begin(&data);
    fputs("direction,paper,ours\n", data.rows);
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->row[i];
        const char *direction;
        if (!is_of(row, figure, end))
            continue;
        int length = direction_length(row->id, &direction);
        fprintf(data.rows, "%.*s,%s,%s\n", length, direction, row->paper, row->ours);
    }
    csv_link_end(&data, caption, out);
}

static void bars(const struct reproduction *r, const char *figure, const char *end,
                 const char *caption, FILE *out)
{
    enum { ROW = 40 };
    double longest = 0;
    int n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (is_of(&r->row[i], figure, end)) {
            longest = fmax(longest, fmax(paper_of(&r->row[i]), ours_of(&r->row[i])));
            n++;
        }
    fprintf(out, "<figure><svg viewBox=\"0 0 400 %d\" role=\"img\" aria-label=\"", n * ROW);
    html_printf(out, "%s: the paper's above ours", caption);
    fputs("\">\n", out);
    for (size_t i = 0, y = 0; i < r->n; i++) {
        const struct row *row = &r->row[i];
        const char *direction;
        if (!is_of(row, figure, end))
            continue;
        int length = direction_length(row->id, &direction);
        fprintf(out, "<text x=\"0\" y=\"%zu\">%.*s</text>\n", y + 20, length, direction);
        bar(out, row, row->paper, longest, (int)y + 2, "c0");
        bar(out, row, row->ours, longest, (int)y + 17, "c1");
        y += ROW;
    }
    fputs("</svg><figcaption>", out);
    html_printf(out, "%s. ", caption);
    bars_data(r, figure, end, caption, out);
    fputs("</figcaption></figure>\n", out);
}

/* KV from DOP to CP by context, of several batches: a line of each from the origin. */
static const struct panel {
    const char *figure, *caption;
    int longest_k;
} panels[] = {{"figure5", "Figure 5a, B200: KV from DOP to CP, ms a layer.", 256},
              {"figure9", "Figure 9a, DCU: KV from DOP to CP, ms a layer.", 128},
              {"figure11", "Figure 11a, H200: KV from DOP to CP, ms a layer.", 128}};

static const int panel_batch[] = {1, 4, 8, 16};
enum { PANEL_BATCHES = sizeof panel_batch / sizeof *panel_batch };
static const char *const panel_series[] = {"1 request", "4", "8", "16", "16, volume-exact"};

static const struct row *panel_row(const struct reproduction *r, const struct panel *p, int batch,
                                   int k_tokens, const char *what)
{
    char id[sizeof r->row->id];
    snprintf(id, sizeof id, "%sa.%dx%d.%s", p->figure, batch, k_tokens * 1024, what);
    return reproduction_row(r, id);
}

static void ray(struct chart *c, double to, int series, bool dashed)
{
    if (!isnan(to))
        chart_line(c, (double[]){0, c->x.max}, (double[]){0, to}, 2, series, dashed);
}

static double ours_or_nan(const struct row *row)
{
    return row != NULL ? ours_of(row) : NAN;
}

static void panel_mark(struct chart *c, const struct row *row, int k_tokens)
{
    char note[NOTE_SIZE];
    if (row != NULL)
        chart_mark(c, k_tokens, paper_of(row), PANEL_BATCHES - 1, MARK_FULL, row_note(row, note));
}

static void panel_lines(const struct reproduction *r, const struct panel *p, struct chart *c)
{
    char id[sizeof r->row->id];
    for (int i = 0; i < PANEL_BATCHES; i++) {
        int batch = panel_batch[i];
        ray(c, ours_or_nan(panel_row(r, p, batch, p->longest_k, "linear_ms")), i, false);
        ray(c, ours_or_nan(panel_row(r, p, batch, p->longest_k, "kv_ms")), i, true);
    }
    snprintf(id, sizeof id, "%s.kv_all-to-all.volume_exact_ms", p->figure);
    ray(c, ours_or_nan(reproduction_row(r, id)), PANEL_BATCHES, true);
}

static void panel(const struct reproduction *r, const struct panel *p, FILE *out)
{
    int last = PANEL_BATCHES - 1;
    const struct row *measured = panel_row(r, p, panel_batch[last], p->longest_k, "kv_ms");
    if (measured == NULL)
        return;
    struct chart c = {.out = out,
                      .x = {.max = p->longest_k, .title = "context, 1024 tokens", .unit = ""},
                      .y = {.max = paper_of(measured) * 1.1, .title = "ms a layer", .unit = ""},
                      .height = 320,
                      .series = panel_series};
    chart_begin(&c, p->caption);
    chart_axes(&c);
    ray(&c, paper_of(measured), last, false);
    panel_lines(r, p, &c);
    panel_mark(&c, measured, p->longest_k);
    panel_mark(&c, panel_row(r, p, panel_batch[last], 16, "kv_ms"), 16);
    chart_end(&c, p->caption);
}

static void scaling_charts(const struct reproduction *r, FILE *out)
{
    html_legend(out, panel_series, PANEL_BATCHES + 1);
    html_p(out, "Solid: the paper's Eq. 14, linear in requests and context, from the point that it "
                "measured. Dashed: ours, as long as the busiest owner sends, alike for 1, 4 and 8 "
                "requests. Marks: what the paper prints.");
    fputs("<div class=\"pair\">\n", out);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++)
        panel(r, &panels[i], out);
    fputs("</div>\n", out);
}

void primitives_charts(const struct reproduction *r, FILE *out)
{
    static const struct {
        const char *figure, *weights, *kv;
    } figures[PLATFORM_FIGURES] = {
        {"figure5.", "Figure 5b, B200: weights, ms a layer",
         "Figure 5c, B200: KV of 16 requests of 256K tokens, ms a layer"},
        {"figure9.", "Figure 9b, DCU: weights, ms a layer",
         "Figure 9c, DCU: KV of 16 requests of 128K tokens, ms a layer"},
        {"figure11.", "Figure 11b, H200: weights, ms a layer",
         "Figure 11c, H200: KV of 16 requests of 128K tokens, ms a layer"},
    };
    scaling_charts(r, out);
    html_p(out,
           "Upper bars: the paper's; lower bars: ours. Directions that move nothing have none.");
    for (int i = 0; i < PLATFORM_FIGURES; i++) {
        fputs("<div class=\"pair\">\n", out);
        bars(r, figures[i].figure, "weights_ms", figures[i].weights, out);
        bars(r, figures[i].figure, ".kv_ms", figures[i].kv, out);
        fputs("</div>\n", out);
    }
}

/* Series of a parity chart, by the ends of ids. */
struct parity {
    const char *const *name, *const *end;
    int n;
    double near_frac, far_frac;
    const char *x_title, *y_title;
};

static struct chart_axis parity_axis(const struct reproduction *r, const struct parity *p,
                                     const char *table, const char *title)
{
    struct chart_axis a = {.min = INFINITY, .log = true, .title = title, .unit = ""};
    for (size_t i = 0; i < r->n; i++)
        for (int s = 0; s < p->n; s++)
            if (is_of(&r->row[i], table, p->end[s])) {
                a.min = fmin(a.min, fmin(paper_of(&r->row[i]), ours_of(&r->row[i])));
                a.max = fmax(a.max, fmax(paper_of(&r->row[i]), ours_of(&r->row[i])));
            }
    a.min *= 0.8;
    a.max *= 1.25;
    return a;
}

static void parity(const struct reproduction *r, const struct parity *p, const char *table,
                   const char *caption, FILE *out)
{
    struct chart c = {.out = out,
                      .x = parity_axis(r, p, table, p->x_title),
                      .y = parity_axis(r, p, table, p->y_title),
                      .height = 384,
                      .series = p->name};
    char note[NOTE_SIZE];
    chart_begin(&c, caption);
    chart_parity_band(&c, "far", p->far_frac);
    chart_parity_band(&c, "near", p->near_frac);
    chart_axes(&c);
    chart_parity_line(&c);
    for (int s = 0; s < p->n; s++)
        for (size_t i = 0; i < r->n; i++)
            if (is_of(&r->row[i], table, p->end[s]))
                chart_mark(&c, paper_of(&r->row[i]), ours_of(&r->row[i]), s, MARK_FULL,
                           row_note(&r->row[i], note));
    chart_end(&c, caption);
}

static void parities(const struct reproduction *r, const struct parity *p,
                     const char *const table[PLATFORM_FIGURES],
                     const char *const caption[PLATFORM_FIGURES], FILE *out)
{
    char near[PERCENT_SIZE], far[PERCENT_SIZE];
    html_legend(out, p->name, p->n);
    html_p(out, "Bands: within %s and %s.", percent(p->near_frac, near), percent(p->far_frac, far));
    fputs("<div class=\"pair\">\n", out);
    for (int i = 0; i < PLATFORM_FIGURES; i++)
        parity(r, p, table[i], caption[i], out);
    fputs("</div>\n", out);
}

void switches_charts(const struct reproduction *r, FILE *out)
{
    static const char *const name[] = {"blocking", "overlapped"};
    static const char *const end[] = {".blocking_ms", ".overlapped_ms"};
    static const char *const table[] = {"table1.", "table7.", "table8."};
    static const char *const caption[] = {"Table 1, B200: overhead of the twelve switches.",
                                          "Table 7, DCU: overhead of the twelve switches.",
                                          "Table 8, H200: overhead of the twelve switches."};
    static const struct parity p = {name,      end, 2, 0.10, 0.20, "the paper's overhead, ms",
                                    "ours, ms"};
    parities(r, &p, table, caption, out);
}

void throughput_charts(const struct reproduction *r, FILE *out)
{
    static const char *const name[] = {"tp", "cp", "dp", "dop"};
    static const char *const end[] = {".tp.ktok_s", ".cp.ktok_s", ".dp.ktok_s", ".dop.ktok_s"};
    static const char *const table[] = {"table4.", "table5.", "table6."};
    static const char *const caption[] = {"Table 4, B200: throughput.", "Table 5, DCU: throughput.",
                                          "Table 6, H200: throughput."};
    static const struct parity p = {
        name, end, 4, 0.05, 0.15, "the paper's throughput, 1000 tokens/s", "ours, 1000 tokens/s"};
    parities(r, &p, table, caption, out);
}
