/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/sim_html.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/report/html.h"

/* A number of a run, as its JSON has it. */
static const struct column {
    const char *head, *object, *key;
    double scale;
    const char *meaning; /* where it is not that of the column before */
} columns[] = {
    {"done", NULL, "completed", 1, "requests that got all of their output"},
    {"tok/s", NULL, "total_tok_s", 1,
     "input and output tokens of these / (last finish - first arrival)"},
    {"output tok/s", NULL, "output_tok_s", 1, "the same of output tokens alone"},
    {"goodput req/s", NULL, "goodput_req_s", 1,
     "completed requests within all limits of --slo / (last finish - first arrival); without "
     "limits, all completed"},
    {"TTFT p50 s", "ttft_s", "p50", 1,
     "time to first token: end of the step that made it - arrival; queueing is in it"},
    {"TTFT p90 s", "ttft_s", "p90", 1, NULL},
    {"TTFT p99 s", "ttft_s", "p99", 1, NULL},
    {"TPOT p50 ms", "tpot_s", "p50", 1e3,
     "time per output token: (finish - first token) / (output tokens - 1), one value per request "
     "with at least 2 output tokens. Other tools divide by all output tokens, count the first "
     "token's time, or pool the gaps between tokens of all requests: do not compare those"},
    {"TPOT p90 ms", "tpot_s", "p90", 1e3, NULL},
    {"TPOT p99 ms", "tpot_s", "p99", 1e3, NULL},
    {"E2E mean s", "e2e_s", "mean", 1, "end to end: finish - arrival"},
    {"E2E p99 s", "e2e_s", "p99", 1, NULL},
    {"switches", NULL, "switches", 1, "layout changes carried out"},
    {"exposed s", NULL, "switch_exposed_s", 1, "what they added to steps"},
    {"refused", NULL, "switches_refused", 1,
     "times a policy's wish changed to a layout that memory forbids"},
    {"regret %", NULL, "regret_frac", 100,
     "mean E2E / the smallest mean E2E of best-fixed and the oracles - 1; without either, none"},
};

enum { N_COLUMNS = sizeof columns / sizeof *columns };

static double value_of(const json_t *run, const struct column *c)
{
    const json_t *of = c->object != NULL ? json_object_get(run, c->object) : run;
    const json_t *value = json_object_get(of, c->key);
    return json_is_number(value) ? c->scale * json_number_value(value) : NAN;
}

static void write_policies(const struct sim_page *p, FILE *out)
{
    const char *head[N_COLUMNS + 2] = {"policy"};
    const json_t *runs = json_object_get(p->result, "runs");
    for (int i = 0; i < N_COLUMNS; i++)
        head[i + 1] = columns[i].head;
    fputs("<div class=\"number\">\n", out);
    html_table_begin(out, "policies", head);
    for (int i = 0; i < p->summary->n; i++) {
        html_row(out);
        html_cell(out, "%s", p->summary->row[i].policy);
        for (int k = 0; k < N_COLUMNS; k++)
            html_cell_number(out, value_of(json_array_get(runs, (size_t)i), &columns[k]));
    }
    html_table_end(out);
    fputs("</div>\n<dl>\n", out);
    for (int i = 0; i < N_COLUMNS; i++)
        if (columns[i].meaning != NULL)
            fprintf(out, "<dt>%s</dt><dd>%s</dd>\n", columns[i].head, columns[i].meaning);
    fputs("</dl>\n", out);
}

static void write_verdict(const struct summary *s, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    summary_print_verdict(s, f);
    fclose(f);
    html_p(out, "%s", text);
    free(text);
}

static void write_direction(const struct sim_course *c, const struct course_direction *d,
                            const char *from, const char *to, FILE *out)
{
    double n = d->n > 0 ? (double)d->n : NAN, weighed = d->weighed > 0 ? (double)d->weighed : NAN;
    html_row(out);
    html_cell(out, "%s", c->policy);
    html_cell(out, "%s to %s", from, to);
    html_cell_number(out, (double)d->n);
    html_cell_number(out, ps_to_s(d->exposed_ps) * 1e3);
    html_cell_number(out, ps_to_s(d->exposed_ps) * 1e3 / n);
    html_cell_number(out, ps_to_s(d->most_exposed_ps) * 1e3);
    html_cell_number(out, 100 * d->lead_min + 0 * weighed);
    html_cell_number(out, 100 * d->lead_sum / weighed);
    html_cell_number(out, 100 * d->lead_max + 0 * weighed);
    html_cell_number(out, (double)d->forced);
    html_cell_number(out, (double)d->refused);
    html_cell_number(out, d->refused > 0 ? 100 * d->refused_lead_max : NAN);
}

static int write_directions(const struct sim_page *p, const struct sim_course *c, FILE *out)
{
    const struct layout *layout = p->summary->layouts;
    int n = 0;
    for (int from = 0; from < p->summary->n_layouts; from++)
        for (int to = 0; to < p->summary->n_layouts; to++) {
            const struct course_direction *d = &c->course->direction[from][to];
            if (d->n + d->refused == 0)
                continue;
            write_direction(c, d, layout[from].name, layout[to].name, out);
            n++;
        }
    return n;
}

static void write_switches(const struct sim_page *p, FILE *out)
{
    static const char *const head[] = {
        "policy", "switch", "times",  "exposed ms", "mean ms",          "most ms", "lead % min",
        "mean",   "max",    "forced", "refused",    "led by % at most", NULL,
    };
    int n = 0;
    fputs("<h2>Switches, and why</h2>\n<div class=\"number\">\n", out);
    html_table_begin(out, "switches by direction", head);
    for (int i = 0; i < p->n_courses; i++)
        n += write_directions(p, &p->course[i], out);
    html_table_end(out);
    fputs("</div>\n", out);
    if (n == 0)
        html_p(out, "No policy switched or wished to.");
    html_p(out, "Exposed is what switches added to the steps that they came before. The lead is "
                "by how much of the coming step's time the new layout was faster, when the switch "
                "was decided; of steps whose prompts' chunks differ, for equal query rows. Forced: "
                "the running requests' KV no longer fitted where they were. Refused: the policy "
                "wanted the layout, but their KV would not fit there.");
}

static json_t *seconds_of(const struct hist *h, const json_t *share)
{
    json_t *seconds = json_array();
    for (size_t i = 0; h->n > 0 && i < json_array_size(share); i++)
        json_array_append_new(
            seconds,
            json_num(ps_to_s(hist_quantile(h, json_number_value(json_array_get(share, i))))));
    return seconds;
}

/* {"share": [0, ..., 1], "runs": [{"ttft_s": [seconds by share], ...}]} */
static json_t *distributions(const struct summary *s)
{
    json_t *share = json_array(), *runs = json_array();
    for (int i = 0; i <= 100; i++)
        json_array_append_new(share, json_real(i / 100.0));
    json_array_insert_new(share, 100, json_real(0.999));
    json_array_insert_new(share, 100, json_real(0.995));
    for (int i = 0; i < s->n; i++) {
        const struct run_result *r = s->row[i].result;
        json_array_append_new(runs, json_pack("{s:o, s:o, s:o, s:o}", "ttft_s",
                                              seconds_of(&r->ttft_ps, share), "tpot_s",
                                              seconds_of(&r->tpot_ps, share), "e2e_s",
                                              seconds_of(&r->e2e_ps, share), "queued_s",
                                              seconds_of(&r->queued_ps, share)));
    }
    return json_pack("{s:o, s:o}", "share", share, "runs", runs);
}

static json_t *all_courses(const struct sim_page *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->n_courses; i++)
        json_array_append_new(all, course_json(p->course[i].course, p->course[i].policy,
                                               p->summary->layouts, p->summary->n_layouts));
    return all;
}

static void write_data(const struct sim_page *p, FILE *out)
{
    enum { RESULT_DIGITS = 9, CHART_DIGITS = 5 };
    json_t *dist = distributions(p->summary), *courses = all_courses(p);
    page_data(out, "result", p->result, RESULT_DIGITS);
    page_data(out, "distributions", dist, CHART_DIGITS);
    page_data(out, "courses", courses, CHART_DIGITS);
    json_decref(dist);
    json_decref(courses);
}

static void write_comparison(FILE *out)
{
    page_figure(out, "throughput", "Throughput",
                "Tokens of completed requests per second from first arrival to last finish.");
    page_figure(out, "latency", "Latency percentiles",
                "Of completed requests; TTFT, TPOT and E2E as defined above.");
    page_figure(out, "distribution", "Distribution",
                "Share of completed requests that were served within a time (CDF).");
    page_figure(out, "layout-time", "Time in layout",
                "Share of the groups' busy time in steps of a layout; switch time counts with the "
                "new one.");
    page_figure(out, "regret", "Regret",
                "How much longer mean E2E is than that of the best of best-fixed and the oracles.");
}

void sim_html(const struct sim_page *p, FILE *out)
{
    html_begin(out, "wavetank sim: policies on a trace");
    page_about(&p->about, out);
    write_verdict(p->summary, out);
    fputs("<h2>Policies</h2>\n", out);
    write_policies(p, out);
    write_comparison(out);
    fputs("<h2>Over time</h2>\n", out);
    page_figure(
        out, "course", "Layout, switches, queue, batch, context and KV",
        "Time runs in equal bins, over all groups: layouts as shares of a bin (what is missing was "
        "idle), exposed switch time as its sum, the rest as the mean over steps with the range "
        "from "
        "least to most. Queue: requests that wait. Batch: requests that decode, and those with a "
        "prefill chunk. Context: tokens of the batch's contexts. KV: share of the fullest rank's "
        "pages. Marks are a bin's costliest switch. Drag or pinch to zoom; with the chart in "
        "focus, "
        "the keys + - and the arrows.");
    write_switches(p, out);
    write_data(p, out);
    page_scripts(out, "report_sim.js");
    html_end(out);
}
