/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/whatif_html.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/json.h"
#include "sim/report/html.h"

static void write_variations(const struct whatif_report *w, FILE *out)
{
    static const char *const head[] = {"variation", "sets", NULL};
    if (w->n == 1)
        return;
    fputs("<h2>Variations of the base</h2>\n", out);
    html_table_begin(out, "variations", head);
    for (int i = 1; i < w->n; i++) {
        char *set = whatif_set_text(w->row[i].set);
        html_row(out);
        html_cell(out, "%s", w->row[i].name);
        html_cell(out, "%s", set);
        free(set);
    }
    html_table_end(out);
}

static void write_case(const struct whatif_row *row, FILE *out)
{
    const struct outcome *o = &row->outcome;
    bool priced = row->terms.price_per_gpu_hour > 0;
    html_row(out);
    html_cell(out, "%s", row->name);
    html_cell(out, "%s", !row->has_slo ? "-" : o->meets_slo ? "met" : "missed");
    if (row->has_slo)
        html_cell(out, "%.1f%%", 100 * o->slo_met_frac);
    else
        html_cell(out, "-");
    html_cell_number(out, o->total_tok_s);
    html_cell_number(out, o->output_tok_s);
    html_cell_number(out, o->ttft_p99_s);
    html_cell_number(out, 1000 * o->tpot_p99_s);
    html_cell_number(out, o->e2e_p99_s);
    html_cell_count(out, row->terms.gpus);
    html_cell_number(out, o->gpu_hours);
    html_cell_number(out, priced ? o->price_per_m_output_tokens : NAN);
    html_cell_number(out, priced ? o->price_per_m_total_tokens : NAN);
}

static void write_cases(const struct whatif_report *w, FILE *out)
{
    static const char *const head[] = {
        "case",         "SLO",        "within SLO",        "tok/s",
        "output tok/s", "TTFT p99 s", "TPOT p99 ms",       "E2E p99 s",
        "GPUs",         "GPU-hours",  "price/Mtok output", "price/Mtok total",
        NULL,
    };
    fputs("<h2>Cases</h2>\n<div class=\"number\">\n", out);
    html_table_begin(out, "cases", head);
    for (int i = 0; i < w->n; i++)
        write_case(&w->row[i], out);
    html_table_end(out);
    fputs("</div>\n", out);
    html_p(out, "Within SLO: requests completed within all limits / all requests; met where that "
                "is at least the share asked for. GPU-hours: GPUs x (last finish - first arrival), "
                "so idle GPUs are paid for too. Prices: GPU-hours x the price of one / millions of "
                "tokens of completed requests.");
    page_figure(out, "slo", "Within the SLO",
                "Share of all requests that were completed within all limits, and the share asked "
                "for.");
    page_figure(out, "latency", "Latency",
                "99th percentile of completed requests, and the limit. A case can keep its SLO "
                "above a limit here, where less than 99% are asked for.");
    page_figure(out, "throughput", "Throughput",
                "Tokens of completed requests per second from first arrival to last finish.");
    page_figure(out, "cost", "Cost",
                "GPUs, their hours, and what tokens cost where an hour has a price.");
}

static void write_answers(const struct whatif_report *w, enum whatif_question q, FILE *out)
{
    static const char *const head[] = {"case", "answer", NULL};
    html_table_begin(out, whatif_question_names[q], head);
    for (int i = 0; i < w->n; i++) {
        char *answer = whatif_answer_text(w, &w->row[i], q);
        char *breach = whatif_breach_text(w, &w->row[i], q);
        html_row(out);
        html_cell(out, "%s", w->row[i].name);
        html_cell(out, "%s%s%s", answer, breach != NULL ? "; " : "", breach != NULL ? breach : "");
        free(answer);
        free(breach);
    }
    html_table_end(out);
}

static void write_finding(const struct whatif_report *w, enum whatif_question q, FILE *out)
{
    static const char *const title[FIND_COUNT] = {
        [FIND_MAX_RATE] = "The highest rate that meets the SLO",
        [FIND_MIN_GPUS] = "The fewest GPUs that meet the SLO",
    };
    fprintf(out, "<h2>%s</h2>\n", title[q]);
    if (q == FIND_MAX_RATE)
        html_p(out, "In steps of %g up to %g times the recorded rate.", w->rate_step,
               whatif_rate(w->rate_step, w->max_rate_steps));
    else
        html_p(out,
               "Up to %lld groups; of the splits of so many groups the one with most "
               "requests within the SLO.",
               (long long)w->max_groups);
    write_answers(w, q, out);
    page_figure(out, whatif_question_names[q], "Trials",
                "Each trial, met or missed; the bar is where the edge still lies: after all "
                "trials, or, for one case, after each of them, in the order they were made.");
}

static void write_text(const struct whatif_report *w, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    whatif_print(w, f);
    fclose(f);
    fputs("<details><summary>The same as text</summary>\n<pre class=\"wide\">", out);
    html_text(out, text);
    fputs("</pre></details>\n", out);
    free(text);
}

static json_t *limit(double s)
{
    return isnan(s) ? json_null() : json_num(s);
}

static json_t *limits_json(const struct whatif_report *w)
{
    json_t *all = json_array();
    for (int i = 0; i < w->n; i++) {
        const struct whatif_limits *l = &w->row[i].limits;
        json_array_append_new(all, json_pack("{s:o, s:o, s:o}", "ttft_s", limit(l->ttft_s),
                                             "tpot_s", limit(l->tpot_s), "e2e_s", limit(l->e2e_s)));
    }
    return all;
}

void whatif_html(const struct whatif_page *p, FILE *out)
{
    enum { DIGITS = 9 };
    const struct whatif_report *w = p->report;
    html_begin(out, "wavetank whatif: a scenario and its variations");
    page_about(&p->about, out);
    write_variations(w, out);
    write_cases(w, out);
    for (enum whatif_question q = 0; q < FIND_COUNT; q++)
        if (w->asked[q])
            write_finding(w, q, out);
    write_text(w, out);
    json_t *limits = limits_json(w);
    page_data(out, "result", p->result, DIGITS);
    page_data(out, "limits", limits, DIGITS);
    json_decref(limits);
    page_scripts(out, "report_whatif.js");
    html_end(out);
}
