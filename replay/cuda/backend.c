/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv_pages.h"
#include "replay/cuda/link_times.h"
#include "replay/cuda/sample.h"
#include "replay/cuda/step.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

static int check(const struct driver_job *job, const char *path, struct err *err)
{
    for (int i = 0; i < job->plan.n; i++) {
        const struct plan_step *s = &job->plan.step[i];
        struct layout to = driver_layout(job, s->layout);
        if (!scheme_can_run(&to))
            return err_at(err, path, 0,
                          "step %lld: %s: the cuda backend does not run KV stored by layer; "
                          "use cp, or --backend host",
                          (long long)s->step, s->layout);
    }
    return 0;
}

static int take_device(int local_rank, struct err *err)
{
    int n = 0;
    /* Before CUDA starts: kernels that load late wait behind those that spin for other ranks. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver)
        n = 0;
    else if (gpu_try(e, "looking for devices", err) < 0)
        return -1;
    if (local_rank >= n)
        return err_run(err,
                       "no GPU for local rank %d: this host has %d; run a plan for at most as "
                       "many ranks, or --backend host",
                       local_rank, n);
    return gpu_try(cudaSetDevice(local_rank), "taking the device", err);
}

/* The most that attention needs under any layout of the plan. */
static int widen_bounds(const struct driver_job *job, const char *name, int rank,
                        struct scratch_bounds *b, struct err *err)
{
    const struct model *m = &job->slice.model;
    struct layout l = driver_layout(job, name);
    struct share attends = share_of(&job->slice, &l, SHARE_ATTEND, rank);
    struct kv_shard kv = kv_shard_of(&job->slice, &l, rank, rank);
    int heads = attends.end_head - attends.first_head;
    struct attention_bounds bounds;
    cudaError_t e = m->attention == ATTN_MLA
                        ? mla_attention_bounds(heads, 0, (int)b->rows_max, &bounds)
                        : gqa_attention_bounds(heads, kv.heads, 0, (int)b->rows_max, &bounds);
    if (gpu_try(e, "planning attention", err) < 0)
        return -1;
    size_t plan = attention_plan_bytes(&bounds);
    size_t work = attention_workspace_bytes(&bounds, heads, head_dims_of(m).value);
    b->plan_bytes = plan > b->plan_bytes ? plan : b->plan_bytes;
    b->workspace_bytes = work > b->workspace_bytes ? work : b->workspace_bytes;
    return 0;
}

static int find_bounds(const struct driver_job *job, int ranks, struct scratch_bounds *b,
                       struct err *err)
{
    *b = (struct scratch_bounds){.ranks = ranks};
    for (int i = 0; i < job->plan.n; i++)
        b->rows_max = max_i64(b->rows_max, driver_count_rows(&job->plan.step[i]));
    for (int i = 0; i < job->plan.n; i++) /* the places are the same on every rank */
        for (int rank = 0; rank < ranks; rank++)
            if (widen_bounds(job, job->plan.step[i].layout, rank, b, err) < 0)
                return -1;
    return 0;
}

static void place(struct gpu_rank *r, const struct scratch_bounds *b)
{
    char *base = r->arena.base;
    r->arena = (struct gpu_arena){.base = base};
    weights_place(&r->weights, &r->arena);
    cache_place(&r->cache, &r->arena);
    r->scratch_at = r->arena.used_bytes;
    scratch_place(&r->scratch, &r->arena, r->slice, b);
}

static int check_room(size_t bytes, struct err *err)
{
    size_t free_bytes, all_bytes;
    if (gpu_try(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for memory", err) < 0)
        return -1;
    if (bytes < free_bytes)
        return 0;
    return err_run(err,
                   "out of GPU memory: the plan needs %.1f GiB a rank and %.1f GiB are free; try "
                   "fewer --layers, requests or shorter contexts",
                   (double)bytes / (1 << 30), (double)free_bytes / (1 << 30));
}

static int open_link(struct gpu_rank *r, const struct scratch_bounds *b, struct err *err)
{
    place(r, b); /* counts */
    struct link_config config = {
        .transport = (enum link_transport)r->job->options.transport,
        .arena_bytes = r->arena.used_bytes,
        .transfer_sms = (int)r->job->options.transfer_sms,
    };
    if (check_room(config.arena_bytes, err) < 0 || link_open(&r->link, &config, r->comm, err) < 0)
        return -1;
    r->arena.base = link_arena(r->link);
    place(r, b);
    return scratch_open(&r->scratch, b, err);
}

static int open_streams(struct gpu_rank *r, struct err *err)
{
    int least, greatest;
    if (gpu_try(cudaDeviceGetStreamPriorityRange(&least, &greatest), "streams", err) < 0 ||
        gpu_try(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "streams", err) < 0 ||
        gpu_try(cudaStreamCreateWithPriority(&r->side, cudaStreamNonBlocking, greatest), "streams",
                err) < 0 ||
        gpu_try(cudaEventCreateWithFlags(&r->forked, cudaEventDisableTiming), "events", err) < 0)
        return -1;
    for (int i = 0; i < SUB_BATCHES_MAX; i++)
        if (gpu_try(cudaEventCreateWithFlags(&r->joined[i], cudaEventDisableTiming), "events",
                    err) < 0)
            return -1;
    return 0;
}

static int open_parts(struct gpu_rank *r, const struct layout *l, struct err *err)
{
    struct scratch_bounds bounds;
    if (find_bounds(r->job, l->ranks, &bounds, err) < 0)
        return -1;
    weights_init(&r->weights, r->slice, r->comm->rank, l->ranks);
    if (cache_init(&r->cache, r->job, l, r->comm->rank, err) < 0 ||
        open_link(r, &bounds, err) < 0 || open_streams(r, err) < 0 ||
        weights_fill(&r->weights, l, err) < 0)
        return -1;
    r->gemm = gemm_new(err);
    if (r->gemm == NULL)
        return -1;
    if (!r->job->options.unchecked) {
        r->sample = sample_new(r, err);
        if (r->sample == NULL)
            return -1;
    }
    return comm_barrier(r->comm, err);
}

static int open_rank(void **self, const struct driver_job *job, const struct layout *l,
                     struct comm *comm, int local_rank, struct err *err)
{
    struct gpu_rank *r = xcalloc(1, sizeof *r);
    r->job = job;
    r->slice = &job->slice;
    r->comm = comm;
    r->layout = *l;
    rng_init(&r->delays, job->slice.seed + (uint64_t)comm->rank);
    *self = r;
    if (take_device(local_rank, err) < 0 || open_parts(r, l, err) < 0) {
        r->failed = true;
        return -1;
    }
    return 0;
}

static void print_found(const struct gpu_rank *r)
{
    if (r->comm->rank != 0)
        return;
    fprintf(stderr, "%s, %.0f GB/s one way; rank 0 sent %lld bytes in switches\n",
            link_description(r->link), link_gb_per_s(r->link), (long long)r->switch_bytes_sent);
    if (r->sample == NULL)
        return;
    const struct sample_errors *e = sample_errors(r->sample);
    fprintf(
        stderr,
        "largest errors: relative L2 %.2e (attention), %.2e (FFN), %.2e (hidden rows); LSE %.2e; "
        "KV was the same after %d switches\n",
        e->attention, e->ffn, e->hidden, e->lse, r->n_switches_checked);
}

/* After a failure collectives may still be in flight, here or in graphs, and freeing or aborting
 * them would wait: the process is about to end, and takes them with it. */
static void close_rank(void *self)
{
    struct gpu_rank *r = self;
    if (r->failed)
        return;
    print_found(r);
    for (size_t i = 0; i < r->n_passes; i++)
        pass_free(r->pass[i]);
    free(r->pass);
    marks_release(&r->marks);
    sample_free(r->sample);
    gemm_free(r->gemm);
    scratch_close(&r->scratch);
    cache_release(&r->cache);
    weights_release(&r->weights);
    link_close(r->link);
    cudaStreamDestroy(r->stream);
    cudaStreamDestroy(r->side);
    free(r);
}

static bool continues(void *self, const struct plan_row *row)
{
    const struct cache *c = &((struct gpu_rank *)self)->cache;
    int at = cache_find(c, row->req);
    if (at < 0)
        return true;
    const struct cache_request *q = &c->request[at];
    return q->owner == row->owner &&
           (q->tokens == row->ctx_tokens - row->q || q->tokens == row->ctx_tokens);
}

static void forget(void *self, int64_t req)
{
    struct gpu_rank *r = self;
    int at = cache_find(&r->cache, req);
    if (at >= 0)
        cache_remove(&r->cache, at);
    if (r->sample != NULL)
        sample_forget(r->sample, req);
}

static int fails(struct gpu_rank *r, int rc)
{
    r->failed = r->failed || rc < 0;
    return rc;
}

static int enter(void *self, const struct layout *to, struct err *err)
{
    struct gpu_rank *r = self;
    return fails(r, strcmp(to->name, r->layout.name) == 0 ? 0 : step_switch(r, to, err));
}

static int step(void *self, const struct plan_step *s, const struct layout *to,
                struct backend_times *times, struct err *err)
{
    struct gpu_rank *r = self;
    return fails(r, step_run(r, s, to, times, err));
}

static int compare(void *self, double *error, struct err *err)
{
    struct gpu_rank *r = self;
    if (sample_compare(r->sample, r, r->last, error, err) < 0 ||
        gpu_check_guards(&r->arena, err) < 0)
        return fails(r, -1);
    return 0;
}

static int collectives(const struct backend_options *o, struct comm *comm, int local_rank,
                       backend_collective_fn *deliver, void *context, struct err *err)
{
    if (take_device(local_rank, err) < 0)
        return -1;
    return link_times_measure(o, comm, deliver, context, err);
}

const struct backend backend_cuda = {
    .name = "cuda",
    .check = check,
    .open = open_rank,
    .close = close_rank,
    .continues = continues,
    .forget = forget,
    .enter = enter,
    .step = step,
    .compare = compare,
    .collectives = collectives,
};
