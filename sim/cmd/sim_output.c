/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/sim_output.h"

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/cmd/profile_about.h"
#include "sim/cmd/version.h"
#include "sim/report/result_json.h"

static void count_tokens(const struct trace *t, int64_t *input_tokens, int64_t *output_tokens)
{
    *input_tokens = *output_tokens = 0;
    for (size_t i = 0; i < t->n; i++) {
        *input_tokens += t->request[i].input_tokens;
        *output_tokens += t->request[i].output_tokens;
    }
}

static json_t *trace_json(const struct trace *t)
{
    int64_t input_tokens, output_tokens, skipped = 0;
    json_t *obj = json_object(), *path = json_string(t->path);
    count_tokens(t, &input_tokens, &output_tokens);
    for (int i = 0; i < SKIP_COUNT; i++)
        skipped += t->skipped[i];
    json_object_set_new(obj, "path", path != NULL ? path : json_string("(not UTF-8)"));
    json_object_set_new(obj, "format", json_string(t->format));
    json_object_set_new(obj, "requests", json_integer((json_int_t)t->n));
    json_object_set_new(obj, "skipped", json_integer(skipped));
    json_object_set_new(obj, "span_s", json_num(ps_to_s(t->last_ps)));
    json_object_set_new(obj, "input_tokens_total", json_integer(input_tokens));
    json_object_set_new(obj, "output_tokens_total", json_integer(output_tokens));
    return obj;
}

static json_t *run_json(const struct sim_output *o, int i)
{
    const struct summary_row *row = &o->summary->row[i];
    const struct run_result *yardstick = summary_yardstick(o->summary);
    json_t *run = result_json(row->policy, row->result, o->setup->layout, o->setup->n_layouts);
    double frac;
    if (yardstick != NULL)
        json_object_set_new(run, "regret_frac",
                            summary_regret(row->result, yardstick, &frac) ? json_num(frac)
                                                                          : json_null());
    return run;
}

json_t *sim_output_json(const struct sim_output *o)
{
    json_t *doc = json_object(), *runs = json_array();
    for (int i = 0; i < o->summary->n; i++)
        json_array_append_new(runs, run_json(o, i));
    json_object_set_new(doc, "wavetank", json_string(WAVETANK_VERSION));
    json_object_set_new(doc, "trace", trace_json(o->trace));
    json_object_set_new(doc, "model", json_string(o->setup->model.name));
    json_object_set_new(doc, "cluster", json_string(o->setup->cluster.name));
    json_object_set_new(doc, "scenario", json_deep_copy(o->scenario));
    json_object_set_new(doc, "runs", runs);
    return doc;
}

static void print_trace(const struct trace *t, FILE *out)
{
    int64_t input_tokens, output_tokens;
    char requests[32], span[32], input[32], output[32];
    count_tokens(t, &input_tokens, &output_tokens);
    fprintf(out,
            "trace    %s (%s)\n"
            "         %s requests over %s, %s input and %s output tokens\n",
            t->path, t->format, units_count((int64_t)t->n, requests, sizeof requests),
            units_time(t->last_ps, span, sizeof span),
            units_count(input_tokens, input, sizeof input),
            units_count(output_tokens, output, sizeof output));
}

void sim_output_tables(const struct sim_output *o, FILE *out)
{
    print_trace(o->trace, out);
    setup_print(o->setup, out);
    fputc('\n', out);
    summary_print(o->summary, out);
}

enum { FACT_BYTES = 512 };

static void describe_trace(const struct trace *t, char text[FACT_BYTES])
{
    int64_t input_tokens, output_tokens;
    char requests[32], span[32], input[32], output[32];
    count_tokens(t, &input_tokens, &output_tokens);
    snprintf(text, FACT_BYTES, "%s (%s): %s requests over %s, %s input and %s output tokens",
             t->path, t->format, units_count((int64_t)t->n, requests, sizeof requests),
             units_time(t->last_ps, span, sizeof span),
             units_count(input_tokens, input, sizeof input),
             units_count(output_tokens, output, sizeof output));
}

static void describe_cluster(const struct cluster *c, char text[FACT_BYTES])
{
    char memory[32];
    snprintf(text, FACT_BYTES, "%s: %d x %s, %s each", c->name, c->ranks, c->device.name,
             units_bytes(c->device.memory_bytes, memory, sizeof memory));
}

void sim_output_page(const struct sim_output *o, const json_t *result,
                     const struct sim_course *course, int n_courses, const char *command, FILE *out)
{
    struct profile_about profile;
    char trace[FACT_BYTES], cluster[FACT_BYTES];
    profile_about_open(&profile, o->profile);
    describe_trace(o->trace, trace);
    describe_cluster(&o->setup->cluster, cluster);
    const struct page_fact facts[] = {{"trace", trace},
                                      {"model", o->setup->model.name},
                                      {"cluster", cluster},
                                      {"profile", profile.text},
                                      {0}};
    const struct sim_page page = {
        .about = {.fact = facts,
                  .version = "wavetank " WAVETANK_VERSION,
                  .command = command,
                  .profile_source = profile.source,
                  .options = o->scenario},
        .summary = o->summary,
        .result = result,
        .course = course,
        .n_courses = n_courses,
    };
    sim_html(&page, out);
    profile_about_close(&profile);
}
