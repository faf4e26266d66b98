/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/pareto_text.h"

#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/units.h"
#include "sim/report/table.h"

enum { NUMBER_SIZE = 40, CHART_CELLS = 64 };

char *pareto_families_text(unsigned families, char text[MAPPING_TEXT_SIZE])
{
    int at = 0;
    text[0] = '\0';
    for (int f = 0; f < FAMILY_COUNT; f++)
        if (families >> f & 1)
            at += snprintf(text + at, (size_t)(MAPPING_TEXT_SIZE - at), "%s%s", at > 0 ? "," : "",
                           mapping_family_names[f]);
    return text;
}

static void add_number(struct table *t, double x, const char *suffix)
{
    char text[NUMBER_SIZE];
    if (x == 0)
        table_add(t, "-");
    else
        table_add(t, "%s%s", table_number(x, text, sizeof text), suffix);
}

static void add_point(struct table *t, const struct pareto_point *p)
{
    char text[MAPPING_TEXT_SIZE];
    table_add(t, "%s", mapping_text(&p->mapping, text));
    table_add(t, "%d", mapping_gpus(&p->mapping));
    table_add(t, "%lld", (long long)p->batch);
    add_number(t, 1e3 / p->tok_s_user, "");
    add_number(t, p->tok_s_user, "");
    add_number(t, p->tok_s_gpu, "");
}

static void print_frontier(const struct frontier *f, size_t rows, FILE *out)
{
    static const char *const head[] = {"mapping", "GPUs",       "batch",
                                       "TTL ms",  "tok/s/user", "tok/s/GPU"};
    struct table t;
    size_t shown = f->n < rows ? f->n : rows;
    table_init(&t, "lrrrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (size_t i = 0; i < shown; i++)
        add_point(&t, &f->point[shown > 1 ? i * (f->n - 1) / (shown - 1) : 0]);
    fprintf(out, "\nfrontier: %zu of its %zu points\n\n", shown, f->n);
    table_print(&t, out);
    table_release(&t);
}

static void start_gains(struct table *t, const char *what)
{
    table_init(t, "lrrrrrrrr");
    table_skip(t, 1);
    table_add(t, "tok/s/user");
    table_skip(t, 1);
    table_add(t, "at equal");
    table_add(t, "tok/s/GPU");
    table_skip(t, 1);
    table_add(t, "at equal");
    table_add(t, "fastest");
    table_add(t, "densest");
    table_add(t, "%s", what);
    table_add(t, "most");
    table_add(t, "median");
    table_add(t, "tok/s/GPU");
    table_add(t, "most");
    table_add(t, "median");
    table_add(t, "TTL ms");
    table_add(t, "user");
    table_add(t, "GPU");
}

static void add_gain(struct table *t, const struct gain *g)
{
    add_number(t, g->interactivity.ratio, "x");
    add_number(t, g->interactivity_median, "x");
    add_number(t, g->interactivity.at, "");
    add_number(t, g->concurrency.ratio, "x");
    add_number(t, g->concurrency_median, "x");
    add_number(t, g->concurrency.at > 0 ? 1e3 / g->concurrency.at : 0, "");
    add_number(t, g->fastest_ratio, "x");
    add_number(t, g->densest_ratio, "x");
}

static void print_gains(const struct pareto_study *s, FILE *out)
{
    char base[MAPPING_TEXT_SIZE];
    struct table t;
    fprintf(out, "\nwhat Helix buys: the frontier with it over the one without\n\n");
    start_gains(&t, "over");
    table_add(&t, "%s", pareto_families_text(s->baseline, base));
    add_gain(&t, &s->gain);
    table_print(&t, out);
    table_release(&t);
    fprintf(out, "\nwhat each of its choices buys\n\n");
    start_gains(&t, "over tp,pp");
    for (int i = 0; i < GAIN_STEPS; i++) {
        table_add(&t, "%s", gain_step_names[i]);
        add_gain(&t, &s->step[i]);
    }
    table_print(&t, out);
    table_release(&t);
}

void pareto_text_print(const struct pareto_study *s, int rows, FILE *out)
{
    char tokens[NUMBER_SIZE], configs[NUMBER_SIZE], skipped[NUMBER_SIZE];
    fprintf(out, "context  %s tokens\n",
            units_count(s->search->context_tokens, tokens, sizeof tokens));
    fprintf(out, "space    %zu mappings, %s configurations, %s more ruled out; %.2f s\n",
            s->search->n, units_count(s->result.configs, configs, sizeof configs),
            units_count(s->result.skipped, skipped, sizeof skipped), s->wall_s);
    if (s->all.n == 0) {
        fprintf(out, "\nnothing fits: the weights and one context need more memory\n");
        return;
    }
    print_frontier(&s->all, (size_t)rows, out);
    if (s->families >> FAMILY_HELIX & 1)
        print_gains(s, out);
}

void pareto_text_contexts(const struct pareto_study *s, int n, FILE *out)
{
    struct table t;
    char tokens[NUMBER_SIZE];
    fprintf(out, "\nby context\n\n");
    start_gains(&t, "tokens");
    for (int i = 0; i < n; i++) {
        int64_t context = s[i].search->context_tokens;
        table_add(&t, "%s", units_count(context, tokens, sizeof tokens));
        add_gain(&t, &s[i].gain);
    }
    table_print(&t, out);
    table_release(&t);
}

void pareto_text_sensitivity(const struct sensitivity s[SENSITIVITIES], FILE *out)
{
    struct table t;
    fprintf(out, "\nwhere Helix stops paying: one thing varied, powers of two of GPUs\n\n");
    start_gains(&t, "varied");
    for (int i = 0; i < SENSITIVITIES; i++) {
        table_add(&t, "%s %.12g", s[i].of, s[i].value);
        add_gain(&t, &s[i].gain);
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_stages(const struct decode_plan *p, int64_t batch, FILE *out)
{
    struct decode_step lockstep, step;
    struct table t;
    decode_step(p, batch, 1, &lockstep);
    decode_step(p, batch, p->mapping.hopb, &step);
    const struct {
        const char *name;
        double lockstep_s, step_s;
    } row[] = {
        {"projections", lockstep.proj_s, step.proj_s},
        {"attention", lockstep.attn_s, step.attn_s},
        {"partial outputs, seen", lockstep.exchange_s, step.exchange_s},
        {"FFN", lockstep.ffn_s, step.ffn_s},
        {"other exchanges, seen", lockstep.reduce_s, step.reduce_s},
        {"head, launches, hops", lockstep.once_s, step.once_s},
        {"TTL", lockstep.ttl_s, step.ttl_s},
    };
    table_init(&t, "lrr");
    table_add(&t, "ms, all layers");
    table_add(&t, "lockstep");
    table_add(&t, "hopb=%d", p->mapping.hopb);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        table_add(&t, "%s", row[i].name);
        table_add(&t, "%.4f", row[i].lockstep_s * 1e3);
        table_add(&t, "%.4f", row[i].step_s * 1e3);
    }
    fputc('\n', out);
    table_print(&t, out);
    table_release(&t);
}

static int cell_of(double at_s, double cell_s)
{
    return (int)(at_s / cell_s + 0.5);
}

/* At least one cell, however short. */
static void draw(char *line, double start_s, double end_s, double cell_s, char mark)
{
    int from = cell_of(start_s, cell_s), to = cell_of(end_s, cell_s);
    if (from >= CHART_CELLS)
        from = CHART_CELLS - 1;
    line[from] = mark;
    for (int i = from + 1; i < to && i < CHART_CELLS; i++)
        line[i] = mark;
}

/* Each sub-batch is a digit, on the GPU and on the link. */
static void print_pipeline(const struct pipeline_part *part, int n, double cell_s, FILE *out)
{
    struct pipeline_span span[SUB_BATCHES_MAX];
    char gpu[CHART_CELLS + 1], link[CHART_CELLS + 1];
    double end_s = pipeline_end_s(part, n, span);
    memset(gpu, '.', CHART_CELLS);
    memset(link, '.', CHART_CELLS);
    gpu[CHART_CELLS] = link[CHART_CELLS] = '\0';
    for (int i = 0; i < n; i++) {
        char mark = (char)('1' + i);
        draw(gpu, span[i].compute_start_s, span[i].compute_end_s, cell_s, mark);
        draw(link, span[i].exchange_start_s, span[i].exchange_end_s, cell_s, mark);
    }
    fprintf(out, "  attend    |%s|\n  exchange  |%s| %.2f us\n", gpu, link, end_s * 1e6);
}

static void print_pipelines(const struct decode_plan *p, int64_t batch, FILE *out)
{
    struct pipeline_part whole[SUB_BATCHES_MAX], cut[SUB_BATCHES_MAX];
    int n_whole = decode_parts(p, batch, 1, whole);
    int n_cut = decode_parts(p, batch, p->mapping.hopb, cut);
    double whole_s = pipeline_end_s(whole, n_whole, NULL), cut_s = pipeline_end_s(cut, n_cut, NULL);
    double cell_s = (whole_s > cut_s ? whole_s : cut_s) / CHART_CELLS;
    fprintf(out, "\none layer's attention, in lockstep\n");
    print_pipeline(whole, n_whole, cell_s, out);
    if (n_cut > 1) {
        fprintf(out, "and in %d sub-batches\n", n_cut);
        print_pipeline(cut, n_cut, cell_s, out);
    }
}

void pareto_text_explain(const struct decode_plan *p, int64_t batch, FILE *out)
{
    char text[MAPPING_TEXT_SIZE], weights[NUMBER_SIZE], kv[NUMBER_SIZE], most[NUMBER_SIZE];
    int64_t held = ceil_div_i64(batch, p->mapping.dp);
    fprintf(out, "\nmapping  %s on %d GPUs\n", mapping_text(&p->mapping, text),
            mapping_gpus(&p->mapping));
    fprintf(out, "memory   %s of weights and %s of KV on the busiest GPU; %s requests fit\n",
            units_bytes(p->weights_bytes, weights, sizeof weights),
            units_bytes((double)held * p->kv_request_bytes, kv, sizeof kv),
            units_count(p->max_batch, most, sizeof most));
    print_stages(p, batch, out);
    if (p->mapping.kvp > 1)
        print_pipelines(p, batch, out);
}
