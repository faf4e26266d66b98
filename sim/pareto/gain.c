/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/gain.h"

const char *const gain_step_names[GAIN_STEPS] = {
    [GAIN_KVP] = "kvp alone",
    [GAIN_FFN] = "ffn alone",
    [GAIN_BOTH] = "both",
    [GAIN_HOPB] = "both, HOP-B",
};

static double over(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double fastest(const struct frontier *f)
{
    return f->n > 0 ? f->point[0].tok_s_user : 0;
}

static double densest(const struct frontier *f)
{
    return f->n > 0 ? f->point[f->n - 1].tok_s_gpu : 0;
}

struct gain gain_of(const struct frontier *f, const struct frontier *base)
{
    struct ratio_curve user, gpu;
    ratio_interactivity(&user, f, base);
    ratio_concurrency(&gpu, f, base);
    struct gain g = {
        .interactivity = ratio_max(&user),
        .concurrency = ratio_max(&gpu),
        .interactivity_median = ratio_median(&user),
        .concurrency_median = ratio_median(&gpu),
        .fastest_ratio = over(fastest(f), fastest(base)),
        .densest_ratio = over(densest(f), densest(base)),
    };
    ratio_release(&user);
    ratio_release(&gpu);
    return g;
}

enum { TIED = 1 << FAMILY_TP | 1 << FAMILY_PP };

static struct gain gain_of_sets(const struct search_result *r, unsigned families, bool hopb)
{
    struct frontier base, f;
    search_union(r, TIED, &base);
    search_union(r, TIED | (families & ~(1u << FAMILY_HELIX)), &f);
    if (families >> FAMILY_HELIX & 1)
        frontier_merge(&f, &r->set[FAMILY_HELIX]);
    if (hopb)
        frontier_merge(&f, &r->set[SEARCH_HOPB]);
    struct gain g = gain_of(&f, &base);
    frontier_release(&f);
    frontier_release(&base);
    return g;
}

void gain_decompose(const struct search_result *r, struct gain step[GAIN_STEPS])
{
    step[GAIN_KVP] = gain_of_sets(r, 1u << FAMILY_KVP, false);
    step[GAIN_FFN] = gain_of_sets(r, 1u << FAMILY_EP | 1u << FAMILY_DPA, false);
    step[GAIN_BOTH] = gain_of_sets(r, 1u << FAMILY_HELIX, false);
    step[GAIN_HOPB] = gain_of_sets(r, 1u << FAMILY_HELIX, true);
}

static void search_varied(struct search *s, const struct sensitivity_base *b)
{
    int gpus[32], n = 0;
    for (int g = 1; g <= b->max_gpus; g *= 2)
        gpus[n++] = g;
    search_init(s, &b->machine, b->baseline | 1u << FAMILY_HELIX, gpus, n);
    s->context_tokens = b->context_tokens;
    s->hopb = b->hopb;
}

static struct gain gain_at(const struct search *s, const struct sensitivity_base *b,
                           struct progress *progress)
{
    struct search_result r;
    struct frontier base, f;
    search_run(s, b->by, progress, &r);
    search_union(&r, b->baseline, &base);
    search_union(&r, b->baseline | 1u << FAMILY_HELIX, &f);
    struct gain g = gain_of(&f, &base);
    frontier_release(&f);
    frontier_release(&base);
    search_result_release(&r);
    return g;
}

/* What is varied, and its searches. */
static void vary(const struct sensitivity_base *b, struct sensitivity out[SENSITIVITIES],
                 struct search search[SENSITIVITIES])
{
    struct sensitivity_base link = *b, gpus = *b, context = *b;
    for (int i = 0; i < SENSITIVITY_STEPS; i++) {
        int at_gpus = SENSITIVITY_STEPS + i, at_context = 2 * SENSITIVITY_STEPS + i;
        out[i] = (struct sensitivity){.of = "link_gb_per_s", .value = link.machine.link_gb_per_s};
        out[at_gpus] = (struct sensitivity){.of = "gpus", .value = gpus.max_gpus};
        out[at_context] =
            (struct sensitivity){.of = "context_tokens", .value = (double)context.context_tokens};
        search_varied(&search[i], &link);
        search_varied(&search[at_gpus], &gpus);
        search_varied(&search[at_context], &context);
        link.machine.link_gb_per_s /= 4;
        gpus.max_gpus = gpus.max_gpus > 1 ? gpus.max_gpus / 2 : 1;
        context.context_tokens = context.context_tokens > 4 ? context.context_tokens / 4 : 1;
    }
}

void sensitivity_sweep(const struct sensitivity_base *b, struct sensitivity out[SENSITIVITIES])
{
    struct search search[SENSITIVITIES];
    struct progress progress;
    int64_t chunks = 0;
    vary(b, out, search);
    for (int i = 0; i < SENSITIVITIES; i++)
        chunks += search_share(&search[i], &b->by->ranks);
    progress_begin(&progress, "sensitivity", b->by->ranks.rank == 0 ? chunks : 0);
    for (int i = 0; i < SENSITIVITIES; i++) {
        out[i].gain = gain_at(&search[i], b, &progress);
        search_release(&search[i]);
    }
    progress_end(&progress);
}
