/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/tune_html.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/html.h"
#include "sim/report/percent.h"

/* Means over the draws that a page has of each setting. */
static const char *const shown[] = {
    "completed",  "total_tok_s", "output_tok_s", "ttft_s_p50", "ttft_s_p99",
    "tpot_s_p50", "tpot_s_p99",  "e2e_s_mean",   "switches",   "switch_exposed_s",
};

enum { N_SHOWN = sizeof shown / sizeof *shown };

static void add(json_t *array, double x)
{
    json_array_append_new(array, isfinite(x) ? json_real(x) : json_null());
}

static void add_text(json_t *array, const char *text)
{
    json_t *string = json_string(text);
    json_array_append_new(array, string != NULL ? string : json_string("(not UTF-8)"));
}

static double mean_metric(const struct findings *f, int64_t setting, int metric)
{
    const struct study *s = f->study;
    const struct rung *last = &s->rung[s->rungs - 1];
    double sum = 0;
    if (!last->in[setting])
        return NAN;
    for (int d = 0; d < s->draws.n; d++)
        sum += f->last.weight[d] * last->run[setting * s->draws.n + d].value[metric];
    return sum;
}

static json_t *setting_row(const struct findings *f, int64_t setting, int64_t rank)
{
    const struct study *s = f->study;
    json_t *row = json_array();
    for (int a = 0; a < s->grid->n; a++)
        add_text(row, grid_value(s->grid, s->point[setting], a));
    add(row, rank >= 0 ? (double)rank + 1 : NAN);
    add(row, rank >= 0 ? scores_objective(&f->last, setting) : NAN);
    add(row, rank >= 0 ? 100 * f->last.mean_frac[setting] : NAN);
    add(row, 100 * f->first.mean_frac[setting]);
    json_array_append_new(row, json_boolean(f->flat[setting]));
    for (int i = 0; i < N_SHOWN; i++)
        add(row, mean_metric(f, setting, metric_find(shown[i])));
    return row;
}

static json_t *columns(const struct grid *g)
{
    static const char *const own[] = {"rank", "objective", "above_percent", "first_above_percent",
                                      "flat"};
    json_t *names = json_array();
    for (int a = 0; a < g->n; a++)
        add_text(names, g->axis[a].name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        add_text(names, own[i]);
    for (int i = 0; i < N_SHOWN; i++)
        add_text(names, shown[i]);
    return names;
}

/* Best first; then those that did not come to the last rung, in the grid's order. */
static json_t *settings_json(const struct findings *f)
{
    const struct study *s = f->study;
    json_t *rows = json_array();
    bool *ranked = xcalloc((size_t)s->n, sizeof *ranked);
    int64_t room = TUNE_HTML_SETTINGS_MAX;
    for (int64_t i = 0; i < f->n; i++) {
        ranked[f->order[i]] = true;
        if (room-- > 0)
            json_array_append_new(rows, setting_row(f, f->order[i], i));
    }
    for (int64_t i = 0; i < s->n; i++)
        if (!ranked[i] && room-- > 0)
            json_array_append_new(rows, setting_row(f, i, -1));
    free(ranked);
    return rows;
}

static json_t *axes_json(const struct findings *f)
{
    const struct grid *g = f->study->grid;
    json_t *axes = json_array();
    for (int a = 0; a < g->n; a++) {
        json_t *values = json_array();
        for (int i = 0; i < g->axis[a].n; i++)
            add_text(values, g->axis[a].value[i]);
        json_array_append_new(
            axes,
            json_pack("{s:s, s:o, s:i}", "name", g->axis[a].name, "values", values, "recommended",
                      f->best >= 0 ? grid_at(g, f->study->point[f->best], a) : -1));
    }
    return axes;
}

static json_t *study_json(const struct findings *f)
{
    int axis[2];
    findings_axes(f, axis);
    return json_pack("{s:o, s:[i,i], s:o, s:o}", "axes", axes_json(f), "strongest", axis[0],
                     axis[1], "columns", columns(f->study->grid), "rows", settings_json(f));
}

static void write_recommendation(const struct tune_report *r, FILE *out)
{
    char text[PERCENT_SIZE];
    const struct findings *f = r->findings;
    fputs("<h2>Recommended</h2>\n", out);
    if (f->best < 0) {
        html_p(out, "No setting has a value of the objective on every draw.");
        return;
    }
    fputs("<p><code>", out);
    html_text(out, r->setting);
    fputs("</code></p>\n", out);
    if (isnan(f->confidence_frac))
        html_p(out, "One draw of each trace: how sure that is cannot be told (--seeds).");
    else
        html_p(out, "In %s of %d resamples of the seeds it is within 1%% of the best.",
               percent(f->confidence_frac, text), FINDINGS_RESAMPLES);
}

static void write_flat(const struct findings *f, FILE *out)
{
    static const char *const head[] = {"option",     "values", "flat from", "to",
                                       "on average", "alone",  NULL};
    const struct grid *g = f->study->grid;
    char flat[32], all[32];
    fputs("<h2>Flat region, and what each option matters</h2>\n", out);
    html_p(out,
           "%s of %s settings are within 1%% of the best: the values of each option that are among "
           "them. On average: between an option's best and worst value, each the mean over the "
           "settings that have it. Alone: the same with the other options as recommended.",
           units_count(f->n_flat, flat, sizeof flat), units_count(f->n, all, sizeof all));
    fputs("<div class=\"number\">\n", out);
    html_table_begin(out, "what each option matters", head);
    for (int a = 0; a < g->n; a++) {
        const struct axis_effect *e = &f->effect[a];
        html_row(out);
        html_cell(out, "%s", g->axis[a].name);
        html_cell_count(out, g->axis[a].n);
        html_cell(out, "%s", e->flat_last >= 0 ? g->axis[a].value[e->flat_first] : "-");
        html_cell(out, "%s", e->flat_last >= 0 ? g->axis[a].value[e->flat_last] : "-");
        html_cell_percent(out, e->mean_frac);
        html_cell_percent(out, e->alone_frac);
    }
    html_table_end(out);
    fputs("</div>\n", out);
}

static void write_figures(const struct study *s, FILE *out)
{
    char part[32], meaning[512];
    snprintf(part, sizeof part, " on the first 1/%d of each trace", study_cut(s, 0));
    snprintf(
        meaning, sizeof meaning,
        "By how much the objective is above that of the best setting, the mean over draws%s. A "
        "dot: within 1%% of the best; a star: recommended; blank: did not run, or completed "
        "fewer requests than others.",
        s->rungs > 1 ? part : "");
    page_figure(out, "tune-map", "Map of two options", meaning);
    snprintf(meaning, sizeof meaning,
             "The same number over one option's values: the mean, the least and the greatest of "
             "all settings that have the value.");
    page_figure(out, "tune-option", "What one option does", meaning);
    page_figure(out, "tune-settings", "Settings",
                "Any two numbers of all settings against each other; means over the draws.");
}

static void write_text(const struct tune_report *r, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    tune_text_print(r, f);
    fclose(f);
    fputs("<details><summary>The same as text</summary>\n<pre>", out);
    html_text(out, text);
    fputs("</pre></details>\n", out);
    free(text);
}

void tune_html(const struct tune_report *r, const struct page_about *about, FILE *out)
{
    enum { DIGITS = 9 };
    const struct findings *f = r->findings;
    html_begin(out, "wavetank tune: a policy's options");
    page_about(about, out);
    write_recommendation(r, out);
    write_text(r, out);
    if (f->best >= 0)
        write_flat(f, out);
    fputs("<h2>Settings</h2>\n", out);
    if (f->study->n > TUNE_HTML_SETTINGS_MAX)
        html_p(out, "The page has the best %d settings; --csv writes all.", TUNE_HTML_SETTINGS_MAX);
    write_figures(f->study, out);
    json_t *study = study_json(f);
    page_data(out, "study", study, DIGITS);
    json_decref(study);
    page_scripts(out, "report_tune.js");
    html_end(out);
}
