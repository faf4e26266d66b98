/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/pareto_json.h"

#include "sim/base/json.h"
#include "sim/report/pareto_text.h"

static void set(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, json_num(value));
}

static json_t *point_json(const struct pareto_point *p)
{
    char text[MAPPING_TEXT_SIZE];
    json_t *o = json_object();
    json_object_set_new(o, "family", json_string(mapping_family_names[p->mapping.family]));
    json_object_set_new(o, "mapping", json_string(mapping_text(&p->mapping, text)));
    json_object_set_new(o, "batch", json_integer(p->batch));
    json_object_set_new(o, "gpus", json_integer(mapping_gpus(&p->mapping)));
    set(o, "ttl_ms", 1e3 / p->tok_s_user);
    set(o, "tok_s_user", p->tok_s_user);
    set(o, "tok_s_gpu", p->tok_s_gpu);
    return o;
}

static json_t *frontier_json(const struct frontier *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, point_json(&f->point[i]));
    return list;
}

static json_t *curve_json(const struct ratio_curve *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(
            list, json_pack("[o,o]", json_num(c->point[i].at), json_num(c->point[i].ratio)));
    return list;
}

static json_t *gain_json(const struct gain *g)
{
    json_t *o = json_object(), *user = json_object(), *gpu = json_object();
    set(user, "max", g->interactivity.ratio);
    set(user, "at_tok_s_gpu", g->interactivity.at);
    set(user, "median", g->interactivity_median);
    set(gpu, "max", g->concurrency.ratio);
    set(gpu, "at_ttl_ms", g->concurrency.at > 0 ? 1e3 / g->concurrency.at : 0);
    set(gpu, "median", g->concurrency_median);
    json_object_set_new(o, "interactivity", user);
    json_object_set_new(o, "concurrency", gpu);
    set(o, "fastest", g->fastest_ratio);
    set(o, "densest", g->densest_ratio);
    return o;
}

static json_t *ratio_json(const struct pareto_study *s)
{
    char base[MAPPING_TEXT_SIZE];
    struct ratio_curve user, gpu;
    json_t *o = gain_json(&s->gain), *steps = json_object();
    ratio_interactivity(&user, &s->helix, &s->base);
    ratio_concurrency(&gpu, &s->helix, &s->base);
    json_object_set_new(o, "baseline", json_string(pareto_families_text(s->baseline, base)));
    json_object_set_new(json_object_get(o, "interactivity"), "curve", curve_json(&user));
    json_object_set_new(json_object_get(o, "concurrency"), "curve", curve_json(&gpu));
    for (int i = 0; i < GAIN_STEPS; i++)
        json_object_set_new(steps, gain_step_names[i], gain_json(&s->step[i]));
    json_object_set_new(o, "steps_over_tp_pp", steps);
    ratio_release(&user);
    ratio_release(&gpu);
    return o;
}

static json_t *contexts_json(const struct pareto_study *s, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *o = gain_json(&s[i].gain);
        json_object_set_new(o, "context_tokens", json_integer(s[i].search->context_tokens));
        json_object_set_new(o, "configs", json_integer(s[i].result.configs));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *sweep_json(const struct sensitivity *sweep)
{
    json_t *list = json_array();
    for (int i = 0; i < SENSITIVITIES; i++) {
        json_t *o = gain_json(&sweep[i].gain);
        set(o, sweep[i].of, sweep[i].value);
        json_array_append_new(list, o);
    }
    return list;
}

json_t *pareto_json(const struct pareto_study *s, int n, const struct sensitivity *sweep)
{
    json_t *o = json_object();
    json_object_set_new(o, "model", json_string(s->search->machine.model->name));
    json_object_set_new(o, "cluster", json_string(s->search->machine.cluster->name));
    json_object_set_new(o, "context_tokens", json_integer(s->search->context_tokens));
    json_object_set_new(o, "configs", json_integer(s->result.configs));
    json_object_set_new(o, "skipped", json_integer(s->result.skipped));
    json_object_set_new(o, "frontier", frontier_json(&s->all));
    json_object_set_new(o, "baseline", frontier_json(&s->base));
    json_object_set_new(o, "ratio", ratio_json(s));
    json_object_set_new(o, "contexts", contexts_json(s, n));
    if (sweep != NULL)
        json_object_set_new(o, "sensitivity", sweep_json(sweep));
    set(o, "wall_s", s->wall_s);
    return o;
}

static void csv_row(void *arg, const struct pareto_point *p, const struct decode_step *t)
{
    char text[MAPPING_TEXT_SIZE];
    fprintf(arg, "%s,\"%s\",%d,%lld,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n",
            mapping_family_names[p->mapping.family], mapping_text(&p->mapping, text),
            mapping_gpus(&p->mapping), (long long)p->batch, t->ttl_s * 1e3, p->tok_s_user,
            p->tok_s_gpu, t->proj_s * 1e3, t->attn_s * 1e3, t->exchange_s * 1e3, t->reduce_s * 1e3,
            t->ffn_s * 1e3, t->once_s * 1e3);
}

void pareto_csv(const struct search *s, FILE *out)
{
    struct progress progress;
    struct search_result r = {0};
    fputs("family,mapping,gpus,batch,ttl_ms,tok_s_user,tok_s_gpu,proj_ms,attn_ms,exchange_ms,"
          "reduce_ms,ffn_ms,once_ms\n",
          out);
    progress_begin(&progress, "CSV", (int64_t)s->n);
    for (size_t i = 0; i < s->n; i++) {
        search_chunk(s, i, &r, csv_row, out);
        progress_update(&progress, (int64_t)i + 1);
    }
    progress_end(&progress);
    search_result_release(&r);
}
