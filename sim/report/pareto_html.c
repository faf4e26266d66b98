/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/pareto_html.h"

#include "sim/base/json.h"
#include "sim/report/html.h"
#include "sim/report/pareto_text.h"
#include "sim/report/table.h"

enum { PIPELINES_MAX = 24 };

static const char *set_name(int set)
{
    return set == SEARCH_HOPB ? "helix, HOP-B" : mapping_family_names[set];
}

static json_t *point_row(const struct pareto_point *p)
{
    char text[MAPPING_TEXT_SIZE];
    return json_pack("[o,o,s,I,i,o]", json_num(p->tok_s_user), json_num(p->tok_s_gpu),
                     mapping_text(&p->mapping, text), (json_int_t)p->batch,
                     mapping_gpus(&p->mapping), json_num(1e3 / p->tok_s_user));
}

static json_t *frontier_rows(const struct frontier *f)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(rows, point_row(&f->point[i]));
    return rows;
}

/* {"context_tokens", "sets": [{"name", "rows"}]}: all, the baseline, then each family by itself. */
static json_t *frontiers(const struct pareto_study *s)
{
    json_t *sets = json_array();
    json_array_append_new(
        sets, json_pack("{s:s, s:o}", "name", "all families", "rows", frontier_rows(&s->all)));
    json_array_append_new(
        sets, json_pack("{s:s, s:o}", "name", "baseline", "rows", frontier_rows(&s->base)));
    for (int i = 0; i < SEARCH_SETS; i++)
        if (s->result.set[i].n > 0)
            json_array_append_new(sets, json_pack("{s:s, s:o}", "name", set_name(i), "rows",
                                                  frontier_rows(&s->result.set[i])));
    return json_pack("{s:I, s:o}", "context_tokens", (json_int_t)s->search->context_tokens, "sets",
                     sets);
}

/* [[compute from, to, exchange from, to], ...] in microseconds of one layer. */
static json_t *spans(const struct decode_plan *p, int64_t batch, int hopb)
{
    struct pipeline_part part[SUB_BATCHES_MAX];
    struct pipeline_span span[SUB_BATCHES_MAX];
    json_t *list = json_array();
    int n = decode_parts(p, batch, hopb, part);
    pipeline_end_s(part, n, span);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("[o,o,o,o]", json_num(1e6 * span[i].compute_start_s),
                                              json_num(1e6 * span[i].compute_end_s),
                                              json_num(1e6 * span[i].exchange_start_s),
                                              json_num(1e6 * span[i].exchange_end_s)));
    return list;
}

static json_t *pipeline_json(const struct search *s, const struct pareto_point *p)
{
    char text[MAPPING_TEXT_SIZE];
    struct decode_plan plan;
    decode_plan_init(&plan, &s->machine, &p->mapping, s->context_tokens);
    return json_pack("{s:s, s:I, s:o, s:o}", "mapping", mapping_text(&p->mapping, text), "batch",
                     (json_int_t)p->batch, "lockstep", spans(&plan, p->batch, 1), "hopb",
                     spans(&plan, p->batch, p->mapping.hopb));
}

/* Of the frontier's mappings with sub-batches, evenly chosen. */
static json_t *pipelines(const struct pareto_study *s)
{
    json_t *list = json_array();
    const struct frontier *f = &s->all;
    size_t n = 0, seen = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->point[i].mapping.hopb > 1;
    size_t stride = (n + PIPELINES_MAX - 1) / PIPELINES_MAX;
    for (size_t i = 0; i < f->n; i++)
        if (f->point[i].mapping.hopb > 1 && seen++ % stride == 0)
            json_array_append_new(list, pipeline_json(s->search, &f->point[i]));
    return list;
}

static void cell_ratio(FILE *out, double ratio)
{
    if (ratio > 0)
        html_cell(out, "%.2fx", ratio);
    else
        html_cell(out, "-");
}

static void cell_at(FILE *out, double at)
{
    char buf[32];
    html_cell(out, "%s", at > 0 ? table_number(at, buf, sizeof buf) : "-");
}

static void gain_row(const char *name, const struct gain *g, FILE *out)
{
    html_row(out);
    html_cell(out, "%s", name);
    cell_ratio(out, g->interactivity.ratio);
    cell_at(out, g->interactivity.at);
    cell_ratio(out, g->interactivity_median);
    cell_ratio(out, g->concurrency.ratio);
    cell_at(out, g->concurrency.at > 0 ? 1e3 / g->concurrency.at : 0);
    cell_ratio(out, g->concurrency_median);
    cell_ratio(out, g->fastest_ratio);
    cell_ratio(out, g->densest_ratio);
}

static void gain_table_begin(const char *label, FILE *out)
{
    static const char *const head[] = {
        "over",      "tok/s/user most", "at tok/s/GPU", "median",      "tok/s/GPU most",
        "at TTL ms", "GPU median",      "fastest user", "densest GPU", NULL};
    fputs("<div class=\"number\">\n", out);
    html_table_begin(out, label, head);
}

static void gain_table_end(FILE *out)
{
    html_table_end(out);
    fputs("</div>\n", out);
}

static void write_gains(const struct pareto_page *p, FILE *out)
{
    char base[MAPPING_TEXT_SIZE], name[64];
    fputs("<h2>What Helix buys</h2>\n", out);
    html_p(out, "Ratios of the frontier with it to the one without: of tokens/s/user at equal "
                "tokens/s/GPU, of tokens/s/GPU at equal TTL, the largest and the median over where "
                "both have values; and of the highest each reaches.");
    gain_table_begin("what Helix buys", out);
    for (int i = 0; i < p->n; i++) {
        snprintf(name, sizeof name, "%s at %lld", pareto_families_text(p->study[i].baseline, base),
                 (long long)p->study[i].search->context_tokens);
        gain_row(name, &p->study[i].gain, out);
    }
    gain_table_end(out);
}

static void write_steps(const struct pareto_study *s, FILE *out)
{
    fputs("<h2>What each of its choices buys</h2>\n", out);
    html_p(out, "Over tp and pp, whose attention and FFN have one width: KV parallelism alone, the "
                "FFN on all GPUs alone, both in lockstep, and both with sub-batches (HOP-B).");
    gain_table_begin("what each choice buys", out);
    for (int i = 0; i < GAIN_STEPS; i++)
        gain_row(gain_step_names[i], &s->step[i], out);
    gain_table_end(out);
    page_figure(out, "gain-steps", "Choices", "The same ratios as bars; 1 is no gain.");
}

static void write_sweep(const struct sensitivity *sweep, FILE *out)
{
    char name[64];
    fputs("<h2>Where Helix stops paying</h2>\n", out);
    gain_table_begin("sensitivity", out);
    for (int i = 0; i < SENSITIVITIES; i++) {
        snprintf(name, sizeof name, "%s %.10g", sweep[i].of, sweep[i].value);
        gain_row(name, &sweep[i].gain, out);
    }
    gain_table_end(out);
}

static void write_figures(FILE *out)
{
    page_figure(out, "frontier", "Throughput against interactivity",
                "Each point is a mapping and a batch that no other of its set beats in both: "
                "tokens/s/user is 1 / TTL (time of one decode step), tokens/s/GPU is "
                "batch / TTL / GPUs. Up and to the right is better.");
    page_figure(out, "ratio", "Helix over the baseline",
                "The ratio of one frontier to the other along its whole length; 1 is no gain.");
}

static void write_data(const struct pareto_page *p, FILE *out)
{
    enum { RESULT_DIGITS = 9, CHART_DIGITS = 6 };
    json_t *all = json_array(), *drawn = pipelines(p->study);
    for (int i = 0; i < p->n; i++)
        json_array_append_new(all, frontiers(&p->study[i]));
    page_data(out, "result", p->result, RESULT_DIGITS);
    page_data(out, "frontiers", all, CHART_DIGITS);
    page_data(out, "pipelines", drawn, CHART_DIGITS);
    json_decref(all);
    json_decref(drawn);
}

void pareto_html(const struct pareto_page *p, FILE *out)
{
    html_begin(out, "wavetank pareto: mappings of decode");
    page_about(&p->about, out);
    write_figures(out);
    write_gains(p, out);
    write_steps(p->study, out);
    if (p->sweep != NULL)
        write_sweep(p->sweep, out);
    fputs("<h2>HOP-B</h2>\n", out);
    page_figure(out, "pipeline", "One layer's attention, with sub-batches and in lockstep",
                "Computing and the link, of a mapping on the frontier: sub-batch i's exchange "
                "travels beside sub-batch i + 1's attention.");
    write_data(p, out);
    page_scripts(out, "report_pareto.js");
    html_end(out);
}
