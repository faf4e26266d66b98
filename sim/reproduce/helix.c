/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/helix.h"

#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { NODE_GPUS = 64, BATCH_MAX = 1 << 16 };

const char *const helix_model_ids[HELIX_MODELS] = {[HELIX_R1] = "r1", [HELIX_405B] = "405b"};

const char *const helix_figure_ids[HELIX_MODELS][HELIX_FIGURES] = {
    [HELIX_R1] = {"r1.concurrency", "r1.interactivity", "hopb.r1"},
    [HELIX_405B] = {"405b.throughput", "405b.interactivity", "hopb.405b"},
};

const struct helix_setting helix_setting = {
    .collective_us = 2,
    .layer_us = 55,
    .exchange_row_us = 1,
    .link_gb_per_s = 900,
    .flop_frac = 1,
    .hbm_frac = 1,
    .memory_frac = 0.9,
    .exchanged_bytes = 2,
    .context_tokens = 1e6,
};

int helix_load(struct helix_data *d, struct err *err)
{
    static const char *const names[HELIX_MODELS] = {
        [HELIX_R1] = "deepseek-r1", [HELIX_405B] = "llama-3.1-405b"};
    for (int i = 0; i < HELIX_MODELS; i++) {
        if (model_load(&d->model[i], names[i], err) < 0)
            return -1;
        decode_set_format(&d->model[i], FMT_FP4);
    }
    return cluster_load(&d->cluster, "gb200-nvl72", err);
}

/* A format of so many bytes a value, for rows that are exchanged. */
static enum number_format format_of(double bytes)
{
    return bytes > 1 ? FMT_BF16 : bytes > 0.5 ? FMT_FP8 : FMT_FP4;
}

static void set_machine(struct helix_case *c, const struct helix_data *d, int model,
                        const struct helix_setting *s)
{
    *c = (struct helix_case){.model = d->model[model], .cluster = d->cluster};
    c->context_tokens = (int64_t)s->context_tokens;
    c->model.activations = format_of(s->exchanged_bytes);
    c->cluster.memory_frac = s->memory_frac;
    c->cluster.device.hbm_gb_per_s *= s->hbm_frac;
    for (int f = 0; f < FMT_COUNT; f++)
        c->cluster.device.tflops[f] *= s->flop_frac;
    c->machine = (struct decode_machine){
        .model = &c->model,
        .cluster = &c->cluster,
        .arithmetic = FMT_FP4,
        .link_gb_per_s = s->link_gb_per_s,
        .collective_us = s->collective_us,
        .exchange_row_us = s->exchange_row_us,
        .layer_us = s->layer_us,
        .even_experts = s->even_experts > 0,
    };
}

/* Powers of two one by one: a search has all batches between its least and its most. */
static void search_batches(struct search *s, bool every, struct search_result *r)
{
    const struct searchers alone = {.ranks = {.n = 1}, .threads = 1};
    *r = (struct search_result){0};
    for (int64_t batch = 1; batch <= (every ? 1 : BATCH_MAX); batch *= 2) {
        struct search_result part;
        s->min_batch = batch;
        s->max_batch = every ? INT64_MAX : batch;
        search_run(s, &alone, NULL, &part);
        search_result_merge(r, &part);
        search_result_release(&part);
    }
}

void helix_search(struct helix_case *c, const struct helix_data *d, int model,
                  const struct helix_setting *setting)
{
    enum { TIED = 1 << FAMILY_TP | 1 << FAMILY_PP, EP = 1 << FAMILY_EP, MEDHA = 1 << FAMILY_KVP };
    static const unsigned baselines[HELIX_BASELINES] = {
        [FROM_TP_PP_EP] = TIED | EP,
        [FROM_TP_PP] = TIED,
        [WITH_MEDHA] = TIED | EP | MEDHA,
        [WITH_DPA] = TIED | EP | 1 << FAMILY_DPA,
    };
    unsigned baseline = baselines[(int)setting->baseline];
    unsigned families = baseline | 1u << FAMILY_HELIX | (model == HELIX_R1 ? 0u : MEDHA);
    int gpus[NODE_GPUS], n_gpus = 0;
    for (int n = 1; n <= NODE_GPUS; n = setting->every_gpus > 0 ? n + 1 : n * 2)
        gpus[n_gpus++] = n;
    set_machine(c, d, model, setting);
    struct search s;
    struct search_result r;
    search_init(&s, &c->machine, families, gpus, n_gpus);
    s.context_tokens = c->context_tokens;
    search_batches(&s, setting->every_batch > 0, &r);
    search_union(&r, baseline, &c->baseline);
    search_union(&r, families & MEDHA, &c->medha);
    search_union(&r, 1u << FAMILY_HELIX, &c->helix);
    frontier_merge(&c->helix_lockstep, &r.set[FAMILY_HELIX]);
    c->configs = r.configs;
    search_result_release(&r);
    search_release(&s);
}

void helix_case_release(struct helix_case *c)
{
    frontier_release(&c->baseline);
    frontier_release(&c->medha);
    frontier_release(&c->helix);
    frontier_release(&c->helix_lockstep);
}

void helix_union(const struct helix_case *c, struct frontier *f)
{
    *f = (struct frontier){0};
    frontier_merge(f, &c->baseline);
    frontier_merge(f, &c->helix);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double lost_in_lockstep(const struct helix_case *c, const struct pareto_point *p)
{
    struct decode_plan plan;
    struct decode_step lockstep;
    decode_plan_init(&plan, &c->machine, &p->mapping, c->context_tokens);
    decode_step(&plan, p->batch, 1, &lockstep);
    return 1 - 1 / lockstep.ttl_s / p->tok_s_user;
}

void helix_gains(const struct helix_case *c, int model, struct helix_gains *g)
{
    struct frontier both;
    size_t n = c->helix.n;
    double *lost = xcalloc(n + 1, sizeof *lost);
    for (size_t i = 0; i < n; i++)
        lost[i] = lost_in_lockstep(c, &c->helix.point[i]);
    qsort(lost, n, sizeof *lost, compare);
    helix_union(c, &both);
    g->gain = gain_of(&both, &c->baseline);
    g->figure[HELIX_CONCURRENCY] = g->gain.concurrency.ratio;
    g->figure[HELIX_INTERACTIVITY] =
        model == HELIX_405B ? g->gain.fastest_ratio : g->gain.interactivity.ratio;
    g->figure[HELIX_HOPB] = n > 0 ? lost[n - 1] : 0;
    g->hopb_median_frac = lost[n / 2];
    frontier_release(&both);
    free(lost);
}
