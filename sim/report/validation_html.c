/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/doubts.h"
#include "sim/report/html.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"
#include "sim/report/validation_charts.h"

/* A longer table is folded away. */
enum { ROWS_OPEN_MAX = 24 };

static void cell_percent(FILE *out, double frac)
{
    char buf[PERCENT_SIZE];
    html_cell(out, "%s", percent(frac, buf));
}

static void cell_signed(FILE *out, double frac)
{
    char buf[PERCENT_SIZE];
    html_cell(out, "%s", percent_signed(frac, buf));
}

static void cell_count(FILE *out, int64_t n)
{
    char buf[32];
    html_cell(out, "%s", units_count(n, buf, sizeof buf));
}

static const char *ms(double ns, char buf[40])
{
    char number[32];
    snprintf(buf, 40, "%s%s", ns < 0 ? "-" : "",
             isnan(ns) ? "-" : table_number(fabs(ns) / 1e6, number, sizeof number));
    return buf;
}

static void cell_ms(FILE *out, double ns)
{
    char buf[40];
    html_cell(out, "%s", ms(ns, buf));
}

static void heading(FILE *out, const char *text)
{
    fprintf(out, "<h2>%s</h2>\n", text);
}

static void fold_begin(FILE *out, int rows)
{
    if (rows > ROWS_OPEN_MAX)
        fprintf(out, "<details><summary>%d rows</summary>\n", rows);
}

static void fold_end(FILE *out, int rows)
{
    if (rows > ROWS_OPEN_MAX)
        fputs("</details>\n", out);
}

static void write_fact(FILE *out, const char *label, const char *text)
{
    fprintf(out, "<dt>%s</dt><dd>", label);
    html_text(out, text);
    fputs("</dd>\n", out);
}

static void write_sources(const json_t *source, FILE *out)
{
    fputs("<details><summary>Where the profile's numbers come from</summary>\n<ul>\n", out);
    for (size_t i = 0; i < json_array_size(source); i++) {
        fputs("<li>", out);
        html_text(out, json_string_value(json_array_get(source, i)));
        fputs("</li>\n", out);
    }
    fputs("</ul></details>\n", out);
}

static void write_about(const struct validation_about *a, const struct joined *j, FILE *out)
{
    struct about_facts facts;
    char program[64];
    about_facts_init(&facts, a, j);
    fputs("<dl>\n", out);
    for (int i = 0; i < facts.n; i++)
        write_fact(out, facts.fact[i].label, facts.fact[i].text);
    snprintf(program, sizeof program, "wavetank %s, plan format %d", a->version, PLAN_VERSION);
    write_fact(out, "program", program);
    write_fact(out, "command", a->command);
    fputs("</dl>\n", out);
    if (a->profile_predicts)
        write_sources(a->profile_source, out);
}

static void tile(FILE *out, const char *number, const char *what)
{
    fprintf(out, "<div><b>%s</b><span>%s</span></div>\n", number, what);
}

static void write_tiles(const struct validation *v, FILE *out)
{
    char buf[PERCENT_SIZE], check[32];
    fputs("<div class=\"tiles\">\n", out);
    tile(out, percent(v->main->all.p50, buf), "step error, p50");
    tile(out, percent(v->main->all.p95, buf), "step error, p95");
    tile(out, percent_signed(v->schedule.error, buf), "schedule error");
    tile(out, percent(v->order.agreement, buf), "layout agreement");
    snprintf(check, sizeof check, "%.1e", v->joined.check_max_error);
    tile(out, v->joined.check_max_error > 0 ? check : "-", "largest error of an output");
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
    cell_count(out, e->n);
    cell_percent(out, e->p50);
    cell_percent(out, e->p95);
    cell_signed(out, e->mean);
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
        cell_percent(out, part->share_frac);
        cell_percent(out, part->error.p50);
        cell_percent(out, part->error.p95);
        cell_signed(out, part->error.mean);
        cell_signed(out, part->blame);
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
        cell_count(out, shape.requests);
        cell_count(out, shape.rows);
        cell_count(out, shape.prefill_rows);
        cell_count(out, shape.mean_ctx_tokens);
        cell_count(out, shape.max_ctx_tokens);
        cell_ms(out, (double)s->pred->step_ns);
        cell_ms(out, (double)s->meas->step_ns);
        cell_signed(out, s->error);
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
    char pred[40], meas[40], error[PERCENT_SIZE], p50[PERCENT_SIZE], p95[PERCENT_SIZE];
    heading(out, "Schedule");
    html_p(out,
           "All steps with their switches: %s ms predicted, %s ms measured, %s. From switch "
           "to switch: |error| p50 %s, p95 %s.",
           ms(e->pred_ns, pred), ms(e->meas_ns, meas), percent_signed(e->error, error),
           percent(e->windows.p50, p50), percent(e->windows.p95, p95));
    fold_begin(out, e->n_windows);
    html_table_begin(out, "from switch to switch", head);
    for (int i = 0; i < e->n_windows; i++) {
        const struct window *w = &e->window[i];
        const struct joined_step *s = &v->joined.step[w->first];
        html_row(out);
        html_cell(out, "%lld", (long long)s->at->step);
        html_cell(out, "%s", v->joined.layout[s->layout]);
        cell_count(out, w->n);
        cell_ms(out, w->pred_ns);
        cell_ms(out, w->meas_ns);
        cell_signed(out, w->error);
    }
    html_table_end(out);
    fold_end(out, e->n_windows);
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
        char time[40];
        html_printf(out, "%s%s %s", i > 0 ? " < " : "", j->layout[m[i].layout],
                    ms((double)(measured ? m[i].meas_ns : m[i].pred_ns), time));
    }
    free(m);
}

static void row_group(FILE *out, const struct joined *j, const struct order_group *g)
{
    struct step_shape shape = joined_shape(j->step[g->first].at);
    html_row(out);
    html_cell(out, "%lld", (long long)j->step[g->first].at->step);
    cell_count(out, shape.requests);
    cell_count(out, shape.rows);
    cell_count(out, shape.mean_ctx_tokens);
    html_cell(out, "%s", order_verdict_names[g->verdict]);
    cell_percent(out, g->regret);
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
    fold_begin(out, o->n);
    html_table_begin(out, "layouts in order of predicted and of measured time", head);
    for (int i = 0; i < o->n; i++)
        row_group(out, &v->joined, &o->group[i]);
    html_table_end(out);
    fold_end(out, o->n);
}

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

static void row_way(FILE *out, const struct joined *j, const struct switch_direction *d,
                    enum mechanism m, double longest)
{
    const struct switch_way *w = &d->way[m];
    char p50[40], p95[40];
    html_row(out);
    html_cell(out, "%s", j->layout[d->from]);
    html_cell(out, "%s", j->layout[d->to]);
    cell_count(out, w->n);
    cell_ms(out, d->ready_ns);
    cell_ms(out, w->step_ns);
    html_cell(out, "%s (%s)", ms(w->dt_ns, p50), ms(w->dt_p95_ns, p95));
    cell_ms(out, w->pred_ns);
    if (w->resolved)
        cell_signed(out, w->error);
    else
        html_cell(out, "not resolved");
    cell_ms(out, d->noise_ns);
    if (m == MECH_OVERLAPPED)
        cell_percent(out, d->hidden_frac);
    fputs("<td>", out);
    switch_bars(w, longest, out);
}

static void write_mechanism(const struct validation *v, enum mechanism m, FILE *out)
{
    static const char *const head[] = {
        "from", "to", "trials", "ready", "T", "dT p50 (p95)", "predicted dT", "error", "noise",
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
        heads[n++] = "hidden";
    heads[n] = "measured above predicted";
    fprintf(out, "<h3>%s</h3>\n", mechanism_names[m]);
    html_table_begin(out, mechanism_names[m], heads);
    for (int i = 0; i < v->trials.n; i++)
        if (v->trials.direction[i].way[m].n > 0)
            row_way(out, &v->joined, &v->trials.direction[i], m, longest);
    html_table_end(out);
}

static void write_switches(const struct validation *v, FILE *out)
{
    heading(out, "Switches");
    if (v->trials.n == 0) {
        html_p(out, "No step has a switch inside.");
        return;
    }
    html_p(out, "Times in ms. T is the step with the switch inside, ready the same step when the "
                "switch was over before the clock started, dT = T - ready what the switch adds. "
                "A dT below the noise between ready steps is not resolved. Hidden is 1 - dT "
                "overlapped / dT blocking.");
    for (int m = 0; m < MECH_COUNT; m++)
        write_mechanism(v, m, out);
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
    write_switches(v, out);
    write_doubts(v, out);
    html_end(out);
}
