/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/csv_link.h"
#include "sim/report/doubts.h"
#include "sim/report/html.h"
#include "sim/report/notes.h"
#include "sim/report/percent.h"
#include "sim/report/switches_html.h"
#include "sim/report/table.h"
#include "sim/report/validation_charts.h"

static void heading(FILE *out, const char *text)
{
    fprintf(out, "<h2>%s</h2>\n", text);
}

static void write_about(const struct validation_about *a, const struct joined *j, FILE *out)
{
    struct about_facts facts;
    char program[64];
    about_facts_init(&facts, a, j);
    fputs("<dl>\n", out);
    for (int i = 0; i < facts.n; i++)
        html_fact(out, facts.fact[i].label, facts.fact[i].text);
    snprintf(program, sizeof program, "wavetank %s, plan format %d", a->version, PLAN_VERSION);
    html_fact(out, "program", program);
    html_fact(out, "command", a->command);
    fputs("</dl>\n", out);
    if (a->profile_predicts)
        html_sources(out, a->profile_source);
}

static void write_tiles(const struct validation *v, FILE *out)
{
    char buf[PERCENT_SIZE], check[32];
    fputs("<div class=\"tiles\">\n", out);
    html_tile(out, percent(v->main->all.p50, buf), "step error, p50");
    html_tile(out, percent(v->main->all.p95, buf), "step error, p95");
    html_tile(out, percent_signed(v->schedule.error, buf), "schedule error");
    html_tile(out, percent(v->order.agreement, buf), "layout agreement");
    snprintf(check, sizeof check, "%.1e", v->joined.check_max_error);
    html_tile(out, v->joined.check_max_error > 0 ? check : "-", "largest error of an output");
    fputs("</div>\n", out);
}

static void write_doubts(const struct validation *v, FILE *out)
{
    struct doubts d;
    doubts_init(&d, v);
    heading(out, "Where not to believe it");
    fputs("<ul>\n", out);
    for (int i = 0; i < d.n; i++) {
        fputs("<li>", out);
        html_text(out, d.sentence[i]);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
    doubts_release(&d);
}

static void row_errors(FILE *out, const char *name, const struct error_summary *e)
{
    html_row(out);
    html_cell(out, "%s", name);
    html_cell_count(out, e->n);
    html_cell_percent(out, e->p50);
    html_cell_percent(out, e->p95);
    html_cell_signed(out, e->mean);
}

static void write_layouts(const struct joined *j, const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "layout", "steps", "|error| p50", "p95", "mean error", NULL,
    };
    html_table_begin(out, "step errors by layout", head);
    row_errors(out, "all", &e->all);
    for (int l = 0; l < j->n_layouts; l++)
        if (e->layout[l].n > 0)
            row_errors(out, j->layout[l], &e->layout[l]);
    html_table_end(out);
}

static void write_stages(const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "stage", "time", "|error| p50", "p95", "mean error", "of step error", NULL,
    };
    html_table_begin(out, "errors by stage", head);
    for (int p = 0; p < PART_COUNT; p++) {
        const struct part_error *part = &e->part[p];
        html_row(out);
        html_cell(out, "%s", step_part_names[p]);
        html_cell_percent(out, part->share_frac);
        html_cell_percent(out, part->error.p50);
        html_cell_percent(out, part->error.p95);
        html_cell_signed(out, part->error.mean);
        html_cell_signed(out, part->blame);
    }
    html_table_end(out);
}

static void write_worst(const struct joined *j, const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "step",         "layout",          "requests",     "query rows",  "prefill rows",
        "mean context", "longest context", "predicted ms", "measured ms", "error",
        NULL,
    };
    fputs("<h3>The steps furthest off</h3>\n", out);
    html_table_begin(out, "the steps furthest off", head);
    for (int i = 0; i < e->n_worst; i++) {
        const struct joined_step *s = &j->step[e->worst[i]];
        struct step_shape shape = joined_shape(s->at);
        html_row(out);
        html_cell(out, "%lld", (long long)s->at->step);
        html_cell(out, "%s", j->layout[s->layout]);
        html_cell_count(out, shape.requests);
        html_cell_count(out, shape.rows);
        html_cell_count(out, shape.prefill_rows);
        html_cell_count(out, shape.mean_ctx_tokens);
        html_cell_count(out, shape.max_ctx_tokens);
        html_cell_ms(out, (double)s->pred->step_ns);
        html_cell_ms(out, (double)s->meas->step_ns);
        html_cell_signed(out, s->error);
    }
    html_table_end(out);
}

static void write_steps(const struct joined *j, const struct step_errors *e, const char *title,
                        FILE *out)
{
    if (e->all.n == 0)
        return;
    heading(out, title);
    fputs("<div class=\"pair\"><div>\n", out);
    stage_chart(e, out);
    fputs("</div><div>\n", out);
    write_stages(e, out);
    write_layouts(j, e, out);
    fputs("</div></div>\n", out);
    write_worst(j, e, out);
}

static void write_schedule(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "from step", "layout", "steps", "predicted ms", "measured ms", "error", NULL,
    };
    const struct schedule_errors *e = &v->schedule;
    char pred[TABLE_MS_SIZE], meas[TABLE_MS_SIZE], error[PERCENT_SIZE], p50[PERCENT_SIZE],
        p95[PERCENT_SIZE];
    heading(out, "Schedule");
    html_p(out,
           "All steps with their switches: %s ms predicted, %s ms measured, %s. From switch "
           "to switch: |error| p50 %s, p95 %s.",
           table_ms(e->pred_ns, pred), table_ms(e->meas_ns, meas), percent_signed(e->error, error),
           percent(e->windows.p50, p50), percent(e->windows.p95, p95));
    html_fold_begin(out, e->n_windows);
    html_table_begin(out, "from switch to switch", head);
    for (int i = 0; i < e->n_windows; i++) {
        const struct window *w = &e->window[i];
        const struct joined_step *s = &v->joined.step[w->first];
        html_row(out);
        html_cell(out, "%lld", (long long)s->at->step);
        html_cell(out, "%s", v->joined.layout[s->layout]);
        html_cell_count(out, w->n);
        html_cell_ms(out, w->pred_ns);
        html_cell_ms(out, w->meas_ns);
        html_cell_signed(out, w->error);
    }
    html_table_end(out);
    html_fold_end(out, e->n_windows);
}

/* Layouts of a group by one of their times, fastest first. */
static void cell_ranking(FILE *out, const struct joined *j, const struct order_group *g,
                         bool measured)
{
    struct order_member *m = xcalloc((size_t)g->n, sizeof *m);
    for (int i = 0; i < g->n; i++) {
        int at = i;
        for (; at > 0; at--) {
            const struct order_member *a = &m[at - 1], *b = &g->member[i];
            if (measured ? a->meas_ns <= b->meas_ns : a->pred_ns <= b->pred_ns)
                break;
            m[at] = m[at - 1];
        }
        m[at] = g->member[i];
    }
    fputs("<td>", out);
    for (int i = 0; i < g->n; i++) {
        char time[TABLE_MS_SIZE];
        html_printf(out, "%s%s %s", i > 0 ? " < " : "", j->layout[m[i].layout],
                    table_ms((double)(measured ? m[i].meas_ns : m[i].pred_ns), time));
    }
    free(m);
}

static void row_group(FILE *out, const struct joined *j, const struct order_group *g)
{
    struct step_shape shape = joined_shape(j->step[g->first].at);
    html_row(out);
    html_cell(out, "%lld", (long long)j->step[g->first].at->step);
    html_cell_count(out, shape.requests);
    html_cell_count(out, shape.rows);
    html_cell_count(out, shape.mean_ctx_tokens);
    html_cell(out, "%s", order_verdict_names[g->verdict]);
    html_cell_percent(out, g->regret);
    html_cell(out, "%.2f", g->tau);
    cell_ranking(out, j, g, false);
    cell_ranking(out, j, g, true);
}

static void write_order(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "from step", "requests",    "query rows",    "mean context", "verdict",
        "regret",    "Kendall tau", "predicted, ms", "measured, ms", NULL,
    };
    const struct layout_order *o = &v->order;
    char agreement[PERCENT_SIZE], regret[PERCENT_SIZE];
    heading(out, "Layout order");
    if (o->n == 0) {
        html_p(out, "No batch ran under two layouts.");
        return;
    }
    html_p(out,
           "The layout predicted to be fastest is so in %s of %d comparisons: %d right, %d "
           "ties (slower by less than 2%%), %d wrong. Mean Kendall tau %.2f, mean regret %s.",
           percent(o->agreement, agreement), o->n, o->verdicts[ORDER_RIGHT], o->verdicts[ORDER_TIE],
           o->verdicts[ORDER_WRONG], o->tau, percent(o->regret, regret));
    html_fold_begin(out, o->n);
    html_table_begin(out, "layouts in order of predicted and of measured time", head);
    for (int i = 0; i < o->n; i++)
        row_group(out, &v->joined, &o->group[i]);
    html_table_end(out);
    html_fold_end(out, o->n);
}

static void row_hopb(FILE *out, const struct joined *j, const struct hopb_trial *t, double largest)
{
    const struct plan_step *at = j->step[t->step].at;
    struct step_shape shape = joined_shape(at);
    char meas[TABLE_MS_SIZE], pred[TABLE_MS_SIZE], gain[PERCENT_SIZE], pred_gain[PERCENT_SIZE];
    html_row(out);
    html_cell(out, "%lld", (long long)at->step);
    html_cell(out, "%s", j->layout[t->layout]);
    html_cell_count(out, shape.requests);
    html_cell_count(out, shape.mean_ctx_tokens);
    html_cell_count(out, t->sub_batches);
    html_cell(out, "%s (%s)", table_ms((double)t->meas_ns, meas),
              table_ms((double)t->pred_ns, pred));
    if (t->sub_batches > 1)
        html_cell(out, "%s (%s)", percent_signed(t->gain, gain),
                  percent_signed(t->pred_gain, pred_gain));
    else
        html_cell(out, "%s", "");
    fputs("<td>", out);
    if (t->sub_batches > 1)
        gain_bars(t, largest, out);
}

static void hopb_data(const struct validation *v, FILE *out)
{
    struct csv_link data;
    csv_link_begin(&data);
    fputs("from step,layout,sub-batches,measured_ms,predicted_ms,gain,predicted_gain\n", data.rows);
    for (int i = 0; i < v->hopb.n; i++) {
        const struct hopb_trial *t = &v->hopb.trial[i];
        csv_link_number(&data, (double)v->joined.step[t->step].at->step);
        csv_link_text(&data, v->joined.layout[t->layout]);
        csv_link_number(&data, t->sub_batches);
        csv_link_number(&data, (double)t->meas_ns / 1e6);
        csv_link_number(&data, (double)t->pred_ns / 1e6);
        csv_link_number(&data, t->gain);
        csv_link_number(&data, t->pred_gain);
        csv_link_row_end(&data);
    }
    fputs("<p>", out);
    csv_link_end(&data, "HOP-B", out);
    fputs("</p>\n", out);
}

static void write_hopb(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "from step",      "layout",           "requests", "mean context", "sub-batches",
        "ms (predicted)", "gain (predicted)", "gain",     NULL,
    };
    const struct hopb_trials *h = &v->hopb;
    char note[NOTE_SIZE];
    double largest = 0.01;
    if (h->n == 0)
        return;
    for (int i = 0; i < h->n; i++)
        largest = fmax(largest, fmax(fabs(h->trial[i].gain), fabs(h->trial[i].pred_gain)));
    heading(out, "HOP-B");
    html_p(out,
           "Attention to one sub-batch runs beside the exchange of the one before. Gain: step time "
           "in one piece / in sub-batches - 1; bars: measured above predicted. %s",
           note_hopb(v, note));
    html_fold_begin(out, h->n);
    html_table_begin(out, "step times by sub-batches", head);
    for (int i = 0; i < h->n; i++)
        row_hopb(out, &v->joined, &h->trial[i], largest);
    html_table_end(out);
    html_fold_end(out, h->n);
    hopb_data(v, out);
}

void validation_html(const struct validation *v, const struct validation_about *about, FILE *out)
{
    const struct joined *j = &v->joined;
    char title[160];
    snprintf(title, sizeof title, "Simulator on trial: %s on %s", about->plan->model,
             about->plan->cluster);
    html_begin(out, title);
    write_about(about, j, out);
    write_tiles(v, out);
    heading(out, "Step times");
    html_legend(out, j->layout, j->n_layouts);
    fputs("<div class=\"pair\">\n", out);
    parity_chart(j, out);
    error_chart(j, out);
    fputs("</div>\n", out);
    write_steps(j, &v->steady, "Steps without a switch", out);
    write_steps(j, &v->ready, "Target-ready steps: after a free switch", out);
    write_schedule(v, out);
    write_order(v, out);
    write_hopb(v, out);
    switches_html(v, out);
    write_doubts(v, out);
    html_end(out);
}
