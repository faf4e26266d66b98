/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/search.h"

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "sim/base/ints.h"

enum { EVERY_BATCH = 256, NUMBERS_PER_CHUNK_LOG2 = 40 };

void search_init(struct search *s, const struct decode_machine *machine, unsigned families,
                 const int *gpus, int n_gpus)
{
    size_t cap = 0;
    *s = (struct search){.machine = *machine, .min_batch = 1, .max_batch = INT64_MAX, .hopb = true};
    for (int i = 0; i < n_gpus; i++)
        mapping_enumerate(machine->model, families, gpus[i], &s->mapping, &s->n, &cap);
}

void search_release(struct search *s)
{
    free(s->mapping);
    s->mapping = NULL;
    s->n = 0;
}

int64_t search_next_batch(int64_t batch)
{
    int64_t step = 1;
    while (batch / step >= EVERY_BATCH)
        step *= 2;
    return batch + step;
}

void search_result_release(struct search_result *r)
{
    for (int i = 0; i < SEARCH_SETS; i++)
        frontier_release(&r->set[i]);
    *r = (struct search_result){0};
}

void search_result_merge(struct search_result *into, const struct search_result *from)
{
    for (int i = 0; i < SEARCH_SETS; i++)
        frontier_merge(&into->set[i], &from->set[i]);
    into->configs += from->configs;
    into->skipped += from->skipped;
}

/* One chunk being searched. */
struct chunk {
    const struct search *search;
    struct decode_plan plan;
    int gpus;
    uint64_t number;             /* of the next configuration */
    struct search_result result; /* of this chunk alone */
    search_visit_fn *visit;
    void *arg;
};

static double throughput(const struct chunk *c, int64_t batch, double ttl_s)
{
    return (double)batch / ttl_s / c->gpus;
}

static void evaluate(struct chunk *c, int64_t batch, int hopb, struct decode_step *t)
{
    decode_step(&c->plan, batch, hopb, t);
    struct pareto_point p = {
        .mapping = c->plan.mapping,
        .batch = batch,
        .number = c->number++,
        .tok_s_user = 1 / t->ttl_s,
        .tok_s_gpu = throughput(c, batch, t->ttl_s),
    };
    p.mapping.hopb = hopb;
    int set = hopb > 1 ? (int)SEARCH_HOPB : (int)p.mapping.family;
    frontier_add(&c->result.set[set], &p);
    c->result.configs++;
    if (c->visit != NULL)
        c->visit(c->arg, &p, t);
}

/* Sub-batches change only how much of the exchange is seen: where not even seeing nothing of it
 * would bring a point onto the frontier of what this chunk has already, none is tried. */
static bool cannot_help(const struct chunk *c, int64_t batch, const struct decode_step *lockstep)
{
    double floor_s = decode_ttl_floor_s(lockstep);
    return !c->search->all &&
           frontier_covers(&c->result.set[SEARCH_HOPB], 1 / floor_s, throughput(c, batch, floor_s));
}

static int most_parts(const struct chunk *c, int64_t batch)
{
    const struct mapping *m = &c->plan.mapping;
    if (!c->search->hopb || m->kvp == 1 || !mapping_overlaps(m))
        return 1;
    int64_t rows = ceil_div_i64(ceil_div_i64(batch, m->pp), m->dp);
    return (int)min_i64(rows, SUB_BATCHES_MAX);
}

static void evaluate_batch(struct chunk *c, int64_t batch)
{
    struct decode_step lockstep, t;
    int most = most_parts(c, batch);
    evaluate(c, batch, 1, &lockstep);
    if (most > 1 && cannot_help(c, batch, &lockstep)) {
        c->result.skipped += most - 1;
        c->number += (uint64_t)(most - 1);
        return;
    }
    for (int hopb = 2; hopb <= most; hopb++)
        evaluate(c, batch, hopb, &t);
}

void search_chunk(const struct search *s, size_t chunk, struct search_result *r,
                  search_visit_fn *visit, void *arg)
{
    struct chunk c = {
        .search = s,
        .gpus = mapping_gpus(&s->mapping[chunk]),
        .number = (uint64_t)chunk << NUMBERS_PER_CHUNK_LOG2,
        .visit = visit,
        .arg = arg,
    };
    decode_plan_init(&c.plan, &s->machine, &s->mapping[chunk], s->context_tokens);
    int64_t last = min_i64(s->max_batch, c.plan.max_batch);
    for (int64_t b = s->min_batch; b <= last; b = search_next_batch(b))
        evaluate_batch(&c, b);
    search_result_merge(r, &c.result);
    search_result_release(&c.result);
}

static int all_threads(int threads)
{
#ifdef _OPENMP
    return threads > 0 ? threads : omp_get_num_procs();
#else
    (void)threads;
    return 1;
#endif
}

void search_run(const struct search *s, int threads, struct progress *progress,
                struct search_result *r)
{
    int n_threads = all_threads(threads);
    int64_t done = 0, n = (int64_t)s->n;
    (void)n_threads;
    *r = (struct search_result){0};
#pragma omp parallel num_threads(n_threads)
    {
        struct search_result part = {0};
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < n; i++) {
            search_chunk(s, (size_t)i, &part, NULL, NULL);
#pragma omp critical
            if (progress != NULL)
                progress_update(progress, ++done);
        }
#pragma omp critical
        {
            search_result_merge(r, &part);
            search_result_release(&part);
        }
    }
}

void search_union(const struct search_result *r, unsigned families, struct frontier *out)
{
    *out = (struct frontier){0};
    for (int f = 0; f < FAMILY_COUNT; f++)
        if (families >> f & 1)
            frontier_merge(out, &r->set[f]);
    if (families >> FAMILY_HELIX & 1)
        frontier_merge(out, &r->set[SEARCH_HOPB]);
}
