/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/step.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv_pages.h"
#include "kernels/values.h"
#include "replay/cuda/sample.h"
#include "replay/values.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

/* How far the CPU is ahead when a step's clock starts, as an engine is that plans the next step
 * while one runs: else the first layer, or its transfer, would wait for launches. */
static const int64_t head_start_ns = 100000;

enum { REPEATS_MIN = 5 }; /* of a step, however long they take */

static int64_t tokens_max(const struct gpu_rank *r, int64_t req)
{
    const struct plan *p = &r->job->plan;
    int64_t most = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->step[i].n_rows; k++)
            if (p->step[i].row[k].req == req)
                most = max_i64(most, p->step[i].row[k].ctx_tokens);
    return most;
}

/* Requests that are new have their earlier context made up, under the layout in force. Rows that
 * ran before are no context of theirs: a switch does not bring them, and its check leaves them out,
 * since another layout rounds them otherwise. */
static int admit(struct gpu_rank *r, const struct plan_step *s, struct err *err)
{
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *row = &s->row[i];
        int64_t before = row->ctx_tokens - row->q;
        int at = cache_find(&r->cache, row->req);
        if (at < 0)
            at = cache_add(&r->cache, row->req, row->owner, before, tokens_max(r, row->req), err);
        if (at < 0)
            return -1;
        r->cache.request[at].tokens = before;
    }
    return 0;
}

/* The step's rows by owner, in the order of the plan among one owner's. */
static struct scheme_rows sort_rows(struct gpu_rank *r, const struct plan_step *s)
{
    struct inputs *in = &r->scratch.host;
    struct scheme_rows rows = {0};
    for (int owner = 0; owner < r->comm->ranks; owner++) {
        rows.first[owner] = rows.n;
        for (int i = 0; i < s->n_rows; i++) {
            const struct plan_row *row = &s->row[i];
            int at = cache_find(&r->cache, row->req);
            for (int64_t k = row->q; row->owner == owner && k > 0; k--, rows.n++) {
                in->req[rows.n] = row->req;
                in->request[rows.n] = at;
                in->position[rows.n] = row->ctx_tokens - k;
            }
        }
    }
    rows.first[r->comm->ranks] = rows.n;
    return rows;
}

/* What every row sees here, and how the parts of attention are dealt out. */
static void plan_attention(struct gpu_rank *r, const struct pass *p)
{
    struct inputs *in = &r->scratch.host;
    for (int kind = 0; kind < p->n_kinds; kind++) {
        const struct scheme *s = &p->scheme[kind];
        struct kv_shard k = kv_shard_of(r->slice, &s->layout, s->rank, s->rank);
        for (int64_t i = 0; i < p->rows.n; i++)
            in->slots[kind][i] = kv_pages_shard_tokens(in->position[i] + 1, k.shard, k.shards);
        for (int part = 0; part < p->parts; part++) {
            struct scheme_range rows = pass_part(p, kind, part);
            attention_plan_make(in->plan[kind][part], &p->bounds[kind], (int)rows.rows,
                                in->request + rows.first_row, in->slots[kind] + rows.first_row);
        }
    }
}

static int poison_scratch(struct gpu_rank *r, struct err *err)
{
    if (r->job->options.unchecked)
        return 0;
    return gpu_try(cudaMemsetAsync(r->arena.base + r->scratch_at, 0xff,
                                   r->arena.used_bytes - r->scratch_at, r->stream),
                   "poison", err);
}

/* Inputs and hidden rows, a head start; then all ranks meet. */
static int prepare(struct gpu_rank *r, const struct pass *p, struct err *err)
{
    struct scheme_range home = scheme_home(&p->scheme[0], r->comm->rank);
    struct values_key key = {r->slice->seed, VALUE_HIDDEN, 1};
    const struct inputs *in = &r->scratch.device;
    if (poison_scratch(r, err) < 0 || scratch_upload(&r->scratch, r->stream, err) < 0 ||
        gpu_try(values_fill_rows(r->scratch.x + home.first_row * r->slice->model.hidden, &key,
                                 in->req + home.first_row, in->position + home.first_row, home.rows,
                                 r->slice->model.hidden, r->stream),
                "hidden rows", err) < 0 ||
        gpu_try(values_delay(head_start_ns, r->stream), "head start", err) < 0)
        return -1;
    return link_barrier(r->link, LINK_COMPUTE, r->stream, err);
}

static int capture_layer(struct gpu_rank *r, struct pass *p, int layer, struct err *err)
{
    struct layer_graph *g = &p->graph[layer];
    cudaGraph_t graph = NULL;
    if (gpu_try(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal), "capture",
                err) < 0)
        return -1;
    int rc = layer_enqueue(r, p, layer, &g->marks, err);
    if (gpu_try(cudaStreamEndCapture(r->stream, &graph), "capture", err) < 0)
        return -1;
    if (rc == 0)
        rc = gpu_try(cudaGraphInstantiate(&g->exec, graph, 0), "graph", err);
    cudaGraphDestroy(graph);
    return rc < 0 ? -1 : gpu_try(cudaGraphUpload(g->exec, r->stream), "graph", err);
}

/* Runs nothing, but has chosen and loaded what a first launch would: so that even an eager step
 * with a switch, which cannot be tried before, need not under the clock. */
static int capture(struct gpu_rank *r, struct pass *p, struct err *err)
{
    if (p->graph != NULL)
        return 0;
    p->n_graphs = r->slice->layers;
    p->graph = xcalloc((size_t)p->n_graphs, sizeof *p->graph);
    for (int layer = 0; layer < p->n_graphs; layer++)
        if (capture_layer(r, p, layer, err) < 0)
            return -1;
    return 0;
}

static int mark(struct gpu_rank *r, enum stage stage, struct err *err)
{
    return marks_add(&r->marks, stage, r->stream, err);
}

static int run_layer(struct gpu_rank *r, struct pass *p, int layer, struct err *err)
{
    if (r->job->options.eager || p->graph == NULL)
        return layer_enqueue(r, p, layer, &r->marks, err);
    marks_append(&r->marks, &p->graph[layer].marks);
    return gpu_try(cudaGraphLaunch(p->graph[layer].exec, r->stream), "graph", err);
}

/* All of the switch, if there is one, before the first layer. */
static int run_in_turn(struct gpu_rank *r, struct pass *p, const struct relocation *m,
                       struct err *err)
{
    for (int layer = 0; m != NULL && layer < r->slice->layers; layer++)
        if (mark(r, ON_SWITCH, err) < 0 ||
            relocation_layer(r, m, layer, LINK_TRANSFER, r->stream, err) < 0)
            return -1;
    if (mark(r, ON_OTHER, err) < 0)
        return -1;
    for (int layer = 0; layer < r->slice->layers; layer++)
        if (run_layer(r, p, layer, err) < 0)
            return -1;
    return 0;
}

/* The side stream brings a layer once what was enqueued before branch() is done. */
static int branch(struct gpu_rank *r, struct err *err)
{
    return gpu_try(cudaEventRecord(r->forked, r->stream), "fork", err);
}

static int bring(struct gpu_rank *r, const struct relocation *m, int layer, struct err *err)
{
    if (layer == r->slice->layers)
        return 0;
    if (gpu_try(cudaStreamWaitEvent(r->side, r->forked, 0), "fork", err) < 0 ||
        relocation_layer(r, m, layer, LINK_TRANSFER, r->side, err) < 0)
        return -1;
    return gpu_try(cudaEventRecord(r->joined[layer % 2], r->side), "join", err);
}

/* Each layer moves while the one before it is computed. That is launched first, since enqueueing
 * many copies takes longer than some layers do; not so with NCCL, which starts its kernels in the
 * order of calls, a layer's exchanges and the next one's transfer alike. */
static int run_overlapped(struct gpu_rank *r, struct pass *p, const struct relocation *m,
                          struct err *err)
{
    const bool in_order = r->job->options.transport == LINK_NCCL;
    if (mark(r, ON_SWITCH, err) < 0 || branch(r, err) < 0 || bring(r, m, 0, err) < 0)
        return -1;
    for (int layer = 0; layer < r->slice->layers; layer++)
        if (gpu_try(cudaStreamWaitEvent(r->stream, r->joined[layer % 2], 0), "join", err) < 0 ||
            mark(r, ON_OTHER, err) < 0 || branch(r, err) < 0 ||
            (in_order && bring(r, m, layer + 1, err) < 0) || run_layer(r, p, layer, err) < 0 ||
            (layer + 1 < r->slice->layers && mark(r, ON_SWITCH, err) < 0) ||
            (!in_order && bring(r, m, layer + 1, err) < 0))
            return -1;
    return 0;
}

static struct plan_times times_of(const int64_t ns[ON_COUNT])
{
    struct plan_times t = {
        .proj_ns = ns[ON_PROJ],
        .attn_ns = ns[ON_ATTN],
        .exchange_ns = ns[ON_EXCHANGE],
        .ffn_ns = ns[ON_FFN],
        .switch_exposed_ns = ns[ON_SWITCH],
    };
    for (int i = 0; i < ON_COUNT; i++)
        t.step_ns += ns[i];
    return t;
}

/* A step under the clock, with the switch `m` in it unless that is NULL. */
static int run(struct gpu_rank *r, struct pass *p, const struct relocation *m, bool overlaps,
               struct plan_times *t, struct err *err)
{
    int64_t ns[ON_COUNT], first_ns;
    marks_reset(&r->marks);
    if (prepare(r, p, err) < 0 ||
        (overlaps ? run_overlapped(r, p, m, err) : run_in_turn(r, p, m, err)) < 0 ||
        mark(r, ON_OTHER, err) < 0 || rank_tap_hidden(r, r->slice->layers, err) < 0 ||
        link_wait(r->link, r->stream, "a step", err) < 0 ||
        marks_read(&r->marks, ns, &first_ns, err) < 0)
        return -1;
    *t = times_of(ns);
    t->switch_first_ns = m != NULL ? first_ns : 0;
    p->is_warm = p->is_warm || p->graph != NULL;
    return 0;
}

/* The first time a shape comes, it runs once untimed, so that nothing is loaded, connected or
 * chosen for the first time in a graph or under the clock. Running a step twice changes nothing. */
static int warm_up(struct gpu_rank *r, struct pass *p, struct err *err)
{
    struct plan_times ignored;
    if (p->is_warm)
        return 0;
    if (run(r, p, NULL, false, &ignored, err) < 0)
        return -1;
    p->is_warm = true;
    return r->job->options.eager ? 0 : capture(r, p, err);
}

static void extend(struct gpu_rank *r, const struct plan_step *s)
{
    for (int i = 0; i < s->n_rows; i++)
        r->cache.request[cache_find(&r->cache, s->row[i].req)].tokens = s->row[i].ctx_tokens;
}

/* A word of every rank, the own one already in its place. */
static int gather_words(struct gpu_rank *r, uint64_t *all, struct err *err)
{
    size_t bytes[RANKS_MAX];
    for (int i = 0; i < r->comm->ranks; i++)
        bytes[i] = sizeof *all;
    return comm_all_gather(r->comm, all, bytes, err);
}

/* The sum of all ranks, and how many copies of everything it counts. */
static int sum_up(struct gpu_rank *r, uint64_t *sum, struct err *err)
{
    uint64_t all[RANKS_MAX] = {0};
    if (cache_checksum(&r->cache, &all[r->comm->rank], err) < 0 || gather_words(r, all, err) < 0)
        return -1;
    *sum = 0;
    for (int i = 0; i < r->comm->ranks; i++)
        *sum += all[i];
    return 0;
}

struct kv_check {
    char from[sizeof((struct layout *)0)->name];
    uint64_t sum;
    int copies;
};

static int check_before(struct gpu_rank *r, struct kv_check *c, struct err *err)
{
    memcpy(c->from, r->layout.name, sizeof c->from);
    c->copies = cache_copies(&r->cache);
    return r->job->options.unchecked ? 0 : sum_up(r, &c->sum, err);
}

static int check_after(struct gpu_rank *r, const struct kv_check *c, struct err *err)
{
    uint64_t sum;
    if (r->job->options.unchecked)
        return 0;
    if (sum_up(r, &sum, err) < 0)
        return -1;
    r->n_switches_checked++;
    if (sum * (uint64_t)c->copies == c->sum * (uint64_t)cache_copies(&r->cache))
        return 0;
    return err_run(err, "KV is not what it was before the switch from %s to %s", c->from,
                   r->layout.name);
}

/* The step's rows sorted, their pass made, and what it reads written. HOP-B cuts decode batches
 * alone, and needs the side stream for itself: results would wait there for the next layer. */
static struct pass *ready(struct gpu_rank *r, const struct plan_step *s, bool side_is_free,
                          struct err *err)
{
    struct scheme_rows rows = sort_rows(r, s);
    bool decodes = rows.n == s->n_rows;
    struct pass *p = r->last = pass_find(r, &rows, decodes && side_is_free, err);
    if (p == NULL)
        return NULL;
    plan_attention(r, p);
    if (r->sample != NULL)
        sample_choose(r->sample, p, &r->scratch.host);
    return p;
}

int step_switch(struct gpu_rank *r, const struct layout *to, struct err *err)
{
    struct kv_check c;
    if (check_before(r, &c, err) < 0)
        return -1;
    struct relocation *m = relocation_begin(r, to, err);
    for (int layer = 0; m != NULL && layer < r->slice->layers; layer++)
        if (relocation_layer(r, m, layer, LINK_TRANSFER, r->stream, err) < 0)
            return -1;
    if (m == NULL || link_wait(r->link, r->stream, "a step", err) < 0 ||
        relocation_end(r, m, err) < 0)
        return -1;
    return check_after(r, &c, err);
}

static int run_with_switch(struct gpu_rank *r, const struct plan_step *s, const struct layout *to,
                           struct plan_times *t, struct err *err)
{
    struct kv_check c;
    bool overlaps = strcmp(s->mechanism, "overlapped") == 0;
    if (check_before(r, &c, err) < 0)
        return -1;
    struct relocation *m = relocation_begin(r, to, err);
    bool moves = m != NULL && relocation_moves(r, m);
    overlaps &= moves;
    struct pass *p = m == NULL ? NULL : ready(r, s, !overlaps, err);
    if (p == NULL || capture(r, p, err) < 0 || run(r, p, moves ? m : NULL, overlaps, t, err) < 0 ||
        relocation_end(r, m, err) < 0)
        return -1;
    return check_after(r, &c, err);
}

/* Target-ready: what the steps with a switch are compared with, so run once as they are. */
static int run_ready(struct gpu_rank *r, const struct plan_step *s, const struct layout *to,
                     struct plan_times *t, struct err *err)
{
    if (step_switch(r, to, err) < 0)
        return -1;
    struct pass *p = ready(r, s, true, err);
    return p == NULL || capture(r, p, err) < 0 ? -1 : run(r, p, NULL, false, t, err);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of each key on its own: the nearest rank. */
static struct plan_times percentile(const struct plan_times *t, int n, double frac)
{
    enum { KEYS = sizeof *t / sizeof(int64_t) };
    struct plan_times out;
    int64_t *sorted = xcalloc((size_t)n, sizeof *sorted);
    int at = (int)(frac * n + 0.5) - 1;
    for (int key = 0; key < KEYS; key++) {
        for (int i = 0; i < n; i++)
            memcpy(&sorted[i], (const char *)&t[i] + (size_t)key * sizeof(int64_t), sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, by_size);
        memcpy((char *)&out + (size_t)key * sizeof(int64_t), &sorted[at < 0 ? 0 : at],
               sizeof *sorted);
    }
    free(sorted);
    return out;
}

/* After the first one, the same on every rank: so many that they take enough, by the slowest. */
static int count_repeats(struct gpu_rank *r, int64_t first_ns, int *n, struct err *err)
{
    const struct backend_options *o = &r->job->options;
    uint64_t all_ns[RANKS_MAX] = {0};
    int64_t slowest_ns = 1;
    if (o->enough_ms == 0 || *n <= REPEATS_MIN)
        return 0;
    all_ns[r->comm->rank] = (uint64_t)first_ns;
    if (gather_words(r, all_ns, err) < 0)
        return -1;
    for (int i = 0; i < r->comm->ranks; i++)
        slowest_ns = max_i64(slowest_ns, (int64_t)all_ns[i]);
    *n = (int)min_i64(*n, max_i64(REPEATS_MIN, o->enough_ms * 1000000 / slowest_ns));
    return 0;
}

static int run_repeats(struct gpu_rank *r, const struct plan_step *s, struct backend_times *times,
                       struct err *err)
{
    int n = (int)max_i64(1, r->job->options.repeats), rc = 0;
    struct plan_times *each = xcalloc((size_t)n, sizeof *each);
    struct pass *p = ready(r, s, true, err);
    bool was_warm = p != NULL && p->is_warm;
    if (p == NULL || warm_up(r, p, err) < 0)
        rc = -1;
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = run(r, p, NULL, false, &each[i], err);
        if (rc == 0 && i == 0)
            rc = count_repeats(r, each[0].step_ns, &n, err);
    }
    if (rc == 0)
        *times = (struct backend_times){percentile(each, n, 0.5), percentile(each, n, 0.95),
                                        n > 1 && was_warm ? each[0].step_ns : 0};
    free(each);
    return rc;
}

int step_run(struct gpu_rank *r, const struct plan_step *s, const struct layout *to,
             struct backend_times *times, struct err *err)
{
    struct plan_times once;
    bool switches = strcmp(to->name, r->layout.name) != 0;
    bool is_free = strcmp(s->mechanism, "free") == 0;
    if (admit(r, s, err) < 0)
        return -1;
    if (!switches) {
        if (run_repeats(r, s, times, err) < 0)
            return -1;
    } else {
        if ((is_free ? run_ready(r, s, to, &once, err) : run_with_switch(r, s, to, &once, err)) < 0)
            return -1;
        *times = (struct backend_times){once, once, 0};
    }
    extend(r, s);
    return 0;
}
