/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/switches_html.h"

#include <math.h>
#include <string.h>

#include "sim/report/csv_link.h"
#include "sim/report/html.h"
#include "sim/report/notes.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"
#include "sim/report/validation_charts.h"

static double longest_ns(const struct switch_trials *t, enum mechanism m)
{
    double longest = 0;
    for (int i = 0; i < t->n; i++) {
        const struct switch_way *w = &t->direction[i].way[m];
        if (w->n > 0)
            longest = fmax(longest, fmax(w->dt_ns, w->pred_ns));
    }
    return longest;
}

/* Waits alone are longer where computation was faster than in target-ready steps. */
static double longest_bar_ns(const struct switch_way *w)
{
    return fmax(w->pred_ns, fmax(w->dt_ns, w->measured.waits_ns));
}

static void cell_hidden(FILE *out, const struct switch_direction *d)
{
    char measured[PERCENT_SIZE], predicted[PERCENT_SIZE];
    if (isnan(d->hidden_frac) && isnan(d->pred_hidden_frac))
        html_cell(out, "-");
    else
        html_cell(out, "%s (%s)", percent(d->hidden_frac, measured),
                  percent(d->pred_hidden_frac, predicted));
}

static void row_way(FILE *out, const struct joined *j, const struct switch_direction *d,
                    enum mechanism m, double longest)
{
    const struct switch_way *w = &d->way[m];
    char p50[TABLE_MS_SIZE], p95[TABLE_MS_SIZE];
    html_row(out);
    html_cell(out, "%s", j->layout[d->from]);
    html_cell(out, "%s", j->layout[d->to]);
    html_cell_count(out, w->n);
    html_cell_ms(out, d->ready_ns);
    html_cell_ms(out, w->step_ns);
    html_cell(out, "%s (%s)", table_ms(w->dt_ns, p50), table_ms(w->dt_p95_ns, p95));
    html_cell_ms(out, w->pred_ns);
    if (w->resolved)
        html_cell_signed(out, w->error);
    else
        html_cell(out, "noise");
    html_cell_ms(out, d->noise_ns);
    if (m == MECH_OVERLAPPED)
        cell_hidden(out, d);
    fputs("<td>", out);
    switch_bars(w, longest, out);
}

static void write_mechanism(const struct validation *v, enum mechanism m, FILE *out)
{
    static const char *const head[] = {
        "from", "to", "trials", "ready", "T", "dT p50 (p95)", "predicted", "error", "noise",
    };
    const char *heads[sizeof head / sizeof *head + 3] = {0};
    double longest = longest_ns(&v->trials, m);
    int n = sizeof head / sizeof *head, rows = 0;
    for (int i = 0; i < v->trials.n; i++)
        rows += v->trials.direction[i].way[m].n > 0;
    if (rows == 0)
        return;
    memcpy(heads, head, sizeof head);
    if (m == MECH_OVERLAPPED)
        heads[n++] = "hidden (pred.)";
    heads[n] = "dT";
    fprintf(out, "<h3>%s</h3>\n", mechanism_names[m]);
    html_table_begin(out, mechanism_names[m], heads);
    for (int i = 0; i < v->trials.n; i++)
        if (v->trials.direction[i].way[m].n > 0)
            row_way(out, &v->joined, &v->trials.direction[i], m, longest);
    html_table_end(out);
}

static void row_parts(FILE *out, const struct joined *j, const struct switch_direction *d,
                      enum mechanism m, double longest)
{
    const struct switch_way *w = &d->way[m];
    char first[TABLE_MS_SIZE], later[TABLE_MS_SIZE];
    html_row(out);
    html_cell(out, "%s", j->layout[d->from]);
    html_cell(out, "%s", j->layout[d->to]);
    html_cell(out, "%s", mechanism_names[m]);
    html_cell_ms(out, w->dt_ns);
    html_cell_ms(out, w->measured.waits_ns);
    html_cell_ms(out, w->measured.first_ns);
    html_cell_ms(out, w->measured.later_ns);
    html_cell_ms(out, w->measured.slowed_ns);
    if (isnan(w->predicted.first_ns))
        html_cell_ms(out, w->pred_ns);
    else
        html_cell(out, "%s + %s", table_ms(w->predicted.first_ns, first),
                  table_ms(w->predicted.later_ns, later));
    fputs("<td>", out);
    parts_bars(w, longest, out);
}

static void write_parts(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "from",  "to",     "mechanism", "dT",    "waits", "first",
        "later", "slowed", "predicted", "parts", NULL,
    };
    const struct switch_trials *t = &v->trials;
    double longest = 0;
    if (!switch_trials_have_parts(t))
        return;
    for (int i = 0; i < t->n; i++)
        for (int m = 0; m < MECH_COUNT; m++)
            if (switch_way_has_parts(&t->direction[i].way[m]))
                longest = fmax(longest, longest_bar_ns(&t->direction[i].way[m]));
    fputs("<h3>What a switch's time is made of</h3>\n", out);
    html_p(out, "dT = waits + computation slowed by the transfer beside it; waits = before the "
                "first layer + before later ones. Predicted: the first + all others, which have "
                "the slowed computation in them. Bars: measured above predicted.");
    parts_legend(out);
    html_table_begin(out, "what a switch's time is made of", head);
    for (int i = 0; i < t->n; i++)
        for (int m = 0; m < MECH_COUNT; m++)
            if (switch_way_has_parts(&t->direction[i].way[m]))
                row_parts(out, &v->joined, &t->direction[i], m, longest);
    html_table_end(out);
}

static void data_row(struct csv_link *data, const struct joined *j,
                     const struct switch_direction *d, enum mechanism m)
{
    const struct switch_way *w = &d->way[m];
    const double ns[] = {
        d->ready_ns,
        w->step_ns,
        w->dt_ns,
        w->dt_p95_ns,
        w->pred_ns,
        d->noise_ns,
        w->measured.waits_ns,
        w->measured.first_ns,
        w->measured.later_ns,
        w->measured.slowed_ns,
        w->predicted.first_ns,
        w->predicted.later_ns,
    };
    csv_link_text(data, j->layout[d->from]);
    csv_link_text(data, j->layout[d->to]);
    csv_link_text(data, mechanism_names[m]);
    csv_link_number(data, w->n);
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        csv_link_number(data, ns[i] / 1e6);
    csv_link_row_end(data);
}

/* All that the bars of this section show. */
static void write_data(const struct validation *v, FILE *out)
{
    struct csv_link data;
    csv_link_begin(&data);
    fputs("from,to,mechanism,trials,ready_ms,step_ms,dt_p50_ms,dt_p95_ms,predicted_dt_ms,noise_ms,"
          "waits_ms,first_layer_ms,later_layers_ms,slowed_ms,predicted_first_layer_ms,"
          "predicted_later_layers_ms\n",
          data.rows);
    for (int i = 0; i < v->trials.n; i++)
        for (int m = 0; m < MECH_COUNT; m++)
            if (v->trials.direction[i].way[m].n > 0)
                data_row(&data, &v->joined, &v->trials.direction[i], (enum mechanism)m);
    fputs("<p>", out);
    csv_link_end(&data, "Switches", out);
    fputs("</p>\n", out);
}

static void write_note(const char *note, FILE *out)
{
    if (note[0] != '\0')
        html_p(out, "%s", note);
}

void switches_html(const struct validation *v, FILE *out)
{
    char note[NOTE_SIZE];
    fputs("<h2>Switches</h2>\n", out);
    if (v->trials.n == 0) {
        html_p(out, "No step has a switch inside.");
    } else {
        html_p(out, "Times in ms. T is the step with the switch inside, ready the same step when "
                    "the switch was over before the clock started, dT = T - ready what the switch "
                    "adds. A dT below three times the noise is not resolved. Bars: measured above "
                    "predicted.");
        write_note(note_noise(&v->trials, note), out);
        write_note(note_hidden(v, note), out);
        for (int m = 0; m < MECH_COUNT; m++)
            write_mechanism(v, m, out);
        write_parts(v, out);
        write_data(v, out);
    }
    write_note(note_first_runs(&v->first_runs, note), out);
}
