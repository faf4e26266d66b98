/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/search.h"

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "sim/base/ints.h"
#include "sim/base/mem.h"

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

int64_t search_share(const struct search *s, const struct ranks *ranks)
{
    return ((int64_t)s->n - ranks->rank + ranks->n - 1) / ranks->n;
}

static int count_threads(const struct searchers *by)
{
#ifdef _OPENMP
    return by->threads > 0 ? by->threads : by->ranks.n > 1 ? 1 : omp_get_num_procs();
#else
    (void)by;
    return 1;
#endif
}

static void search_own(const struct search *s, const struct searchers *by,
                       struct progress *progress, struct search_result *r)
{
    int n_threads = count_threads(by);
    int64_t n = search_share(s, &by->ranks);
    (void)n_threads;
#pragma omp parallel num_threads(n_threads)
    {
        struct search_result part = {0};
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < n; i++) {
            search_chunk(s, (size_t)(by->ranks.rank + i * by->ranks.n), &part, NULL, NULL);
#pragma omp critical
            if (progress != NULL)
                progress_step(progress);
        }
#pragma omp critical
        {
            search_result_merge(r, &part);
            search_result_release(&part);
        }
    }
}

/* What goes ahead of a result's points. */
struct result_head {
    int64_t configs, skipped;
    size_t n[SEARCH_SETS];
};

static void send_result(const struct search_result *r)
{
    struct result_head head = {.configs = r->configs, .skipped = r->skipped};
    for (int i = 0; i < SEARCH_SETS; i++)
        head.n[i] = r->set[i].n;
    ranks_send(0, &head, sizeof head);
    for (int i = 0; i < SEARCH_SETS; i++)
        ranks_send(0, r->set[i].point, r->set[i].n * sizeof *r->set[i].point);
}

static void receive_result(int from, struct search_result *r)
{
    struct result_head head;
    ranks_receive(from, &head, sizeof head);
    *r = (struct search_result){.configs = head.configs, .skipped = head.skipped};
    for (int i = 0; i < SEARCH_SETS; i++) {
        struct frontier *f = &r->set[i];
        f->n = f->cap = head.n[i];
        f->point = xcalloc(f->n, sizeof *f->point);
        ranks_receive(from, f->point, f->n * sizeof *f->point);
    }
}

void search_run(const struct search *s, const struct searchers *by, struct progress *progress,
                struct search_result *r)
{
    *r = (struct search_result){0};
    search_own(s, by, progress, r);
    if (by->ranks.rank > 0)
        send_result(r);
    for (int from = 1; by->ranks.rank == 0 && from < by->ranks.n; from++) {
        struct search_result part;
        receive_result(from, &part);
        search_result_merge(r, &part);
        search_result_release(&part);
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
