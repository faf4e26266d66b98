/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/link_times.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/rows.h"
#include "kernels/values.h"
#include "replay/collectives.h"
#include "replay/cuda/gpu.h"
#include "replay/cuda/link.h"
#include "replay/cuda/marks.h"
#include "replay/scheme.h"

enum { BF16_BYTES = 2, COLUMNS = 4096, TARGETS = 2, WARM_UPS = 2 };

#define ARRAY_BYTES ((int64_t)1 << COLLECTIVES_LAST_POWER)

/* The arena: what is sent, and where it arrives. */
struct timing {
    struct comm *comm;
    struct link *link;
    cudaStream_t stream;
    char *source, *target[TARGETS];
};

/* One collective of one size. */
struct work {
    enum collective op;
    int64_t piece_bytes, bytes;     /* one rank's share; of all ranks */
    struct link_exchange *exchange; /* NULL of an all-reduce */
    struct marks marks;
    cudaGraphExec_t graph;
};

/* That of a step with one row of this size for each rank. All-to-all is how partial sums go to
 * their owners: a piece for every rank, the own one copied. */
static int make_exchange(const struct timing *t, struct work *w, struct err *err)
{
    struct scheme s = {.layout.ranks = t->comm->ranks, .rank = t->comm->rank};
    struct boxes b = {0};
    s.rows.n = s.layout.ranks;
    for (int r = 0; r <= s.layout.ranks; r++)
        s.rows.first[r] = r;
    if (w->op == COLL_ALL_REDUCE)
        return 0;
    if (w->op == COLL_ALL_GATHER)
        scheme_gather(&b, &s, SHARE_OWNED, w->piece_bytes, 0);
    else
        scheme_scatter(&b, &s, w->piece_bytes, 0, 0);
    w->exchange = link_exchange_new(t->link, b.out, (int)b.n_out, b.in, (int)b.n_in, err);
    boxes_release(&b);
    return w->exchange == NULL ? -1 : 0;
}

/* The ranks' pieces in `parts` to this rank's own in the source, as a step sums up its rows. */
static int sum_up(const struct timing *t, const struct work *w, const char *parts, struct err *err)
{
    char *own = t->source + t->comm->rank * w->piece_bytes;
    return gpu_try(rows_sum((uint16_t *)(void *)own, (const uint16_t *)(const void *)parts,
                            t->comm->ranks, w->piece_bytes / BF16_BYTES, t->stream),
                   "sum", err);
}

/* Targets take turns: between two uses of one lies an exchange that every rank enters. */
static int call(const struct timing *t, const struct work *w, int turn, struct err *err)
{
    char *to = t->target[turn % TARGETS];
    if (w->op == COLL_ALL_REDUCE)
        return link_all_reduce(t->link, (uint16_t *)(void *)t->target[0], w->bytes / BF16_BYTES,
                               LINK_COMPUTE, t->stream, err);
    const char *from = w->op == COLL_ALL_GATHER ? to : t->source;
    if (link_run(t->link, w->exchange, from, to, LINK_COMPUTE, t->stream, err) < 0)
        return -1;
    return w->op == COLL_REDUCE_SCATTER ? sum_up(t, w, to, err) : 0;
}

/* All ranks meet, then comes what is timed. */
static int enqueue(const struct timing *t, struct work *w, struct err *err)
{
    if (link_barrier(t->link, LINK_COMPUTE, t->stream, err) < 0 ||
        marks_add(&w->marks, ON_EXCHANGE, t->stream, err) < 0)
        return -1;
    for (int turn = 0; turn < COLLECTIVES_CALLS; turn++)
        if (call(t, w, turn, err) < 0)
            return -1;
    return marks_add(&w->marks, ON_OTHER, t->stream, err);
}

static int capture(const struct timing *t, struct work *w, struct err *err)
{
    cudaGraph_t graph = NULL;
    if (gpu_try(cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeThreadLocal), "capture",
                err) < 0)
        return -1;
    int rc = enqueue(t, w, err);
    if (gpu_try(cudaStreamEndCapture(t->stream, &graph), "capture", err) < 0)
        return -1;
    if (rc == 0)
        rc = gpu_try(cudaGraphInstantiate(&w->graph, graph, 0), "graph", err);
    cudaGraphDestroy(graph);
    return rc;
}

static int finish(const struct timing *t, struct err *err)
{
    return link_wait(t->link, t->stream, "a collective", err);
}

/* Connections are made by the first call, which a capture must not see. */
static int prepare(const struct timing *t, struct work *w, struct err *err)
{
    if (make_exchange(t, w, err) < 0 || link_barrier(t->link, LINK_COMPUTE, t->stream, err) < 0 ||
        call(t, w, 0, err) < 0 || finish(t, err) < 0)
        return -1;
    return capture(t, w, err);
}

static int sample(const struct timing *t, const struct work *w, double *us, struct err *err)
{
    int64_t ns[ON_COUNT], first_ns;
    /* Sums of sums would soon be infinite, and all alike. */
    if (w->op == COLL_ALL_REDUCE &&
        gpu_try(cudaMemcpyAsync(t->target[0], t->source, (size_t)w->bytes, cudaMemcpyDeviceToDevice,
                                t->stream),
                "a copy", err) < 0)
        return -1;
    if (gpu_try(cudaGraphLaunch(w->graph, t->stream), "graph", err) < 0 || finish(t, err) < 0 ||
        marks_read(&w->marks, ns, &first_ns, err) < 0)
        return -1;
    *us = 1e-3 * (double)ns[ON_EXCHANGE] / COLLECTIVES_CALLS;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int sample_all(const struct timing *t, const struct work *w, double *median_us,
                      struct err *err)
{
    double us[COLLECTIVES_REPEATS];
    for (int i = -WARM_UPS; i < COLLECTIVES_REPEATS; i++)
        if (sample(t, w, &us[i < 0 ? 0 : i], err) < 0)
            return -1;
    qsort(us, COLLECTIVES_REPEATS, sizeof *us, by_size);
    *median_us = us[COLLECTIVES_REPEATS / 2];
    return 0;
}

static int measure(const struct timing *t, enum collective op, int64_t piece_bytes,
                   struct backend_collective *one, struct err *err)
{
    struct work w = {.op = op, .piece_bytes = piece_bytes, .bytes = piece_bytes * t->comm->ranks};
    *one = (struct backend_collective){.op = op, .bytes = w.bytes};
    if (prepare(t, &w, err) < 0 || sample_all(t, &w, &one->us, err) < 0)
        return -1;
    cudaGraphExecDestroy(w.graph);
    marks_release(&w.marks);
    link_exchange_free(w.exchange);
    return 0;
}

static int64_t piece_of(const struct timing *t, int power)
{
    return ((int64_t)1 << power) / t->comm->ranks / 16 * 16;
}

static int measure_all(const struct timing *t, backend_collective_fn *deliver, void *context,
                       struct err *err)
{
    struct backend_collective one;
    int index = 0;
    /* Clocks rise under load: the first to be measured does not count. */
    if (measure(t, COLL_ALL_REDUCE, piece_of(t, COLLECTIVES_LAST_POWER), &one, err) < 0)
        return -1;
    for (int op = 0; op < COLL_COUNT; op++)
        for (int power = COLLECTIVES_FIRST_POWER; power <= COLLECTIVES_LAST_POWER; power++) {
            int64_t piece_bytes = piece_of(t, power);
            if (piece_bytes == 0)
                continue;
            if (measure(t, (enum collective)op, piece_bytes, &one, err) < 0)
                return -1;
            deliver(context, index++, &one);
        }
    return 0;
}

static int fill(const struct timing *t, struct err *err)
{
    struct values_matrix random = {
        .key = {.seed = (uint64_t)t->comm->rank + 1, .divisor = 1},
        .to = (uint16_t *)(void *)t->source,
        .rows = (1 + TARGETS) * ARRAY_BYTES / BF16_BYTES / COLUMNS,
        .columns = COLUMNS,
        .to_row = COLUMNS,
        .to_column = 1,
    };
    if (gpu_try(values_fill_matrix(&random, t->stream), "random numbers", err) < 0 ||
        finish(t, err) < 0)
        return -1;
    return comm_barrier(t->comm, err);
}

static int open_link(struct timing *t, const struct backend_options *o, struct err *err)
{
    struct link_config config = {
        .transport = (enum link_transport)o->transport,
        .arena_bytes = (1 + TARGETS) * (size_t)ARRAY_BYTES,
        .transfer_sms = (int)o->transfer_sms,
    };
    if (gpu_try(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking), "a stream", err) <
            0 ||
        link_open(&t->link, &config, t->comm, err) < 0)
        return -1;
    t->source = link_arena(t->link);
    for (int i = 0; i < TARGETS; i++)
        t->target[i] = t->source + (1 + i) * ARRAY_BYTES;
    return fill(t, err);
}

int link_times_measure(const struct backend_options *o, struct comm *comm,
                       backend_collective_fn *deliver, void *context, struct err *err)
{
    struct timing t = {.comm = comm};
    if (open_link(&t, o, err) < 0 || measure_all(&t, deliver, context, err) < 0)
        return -1;
    if (comm->rank == 0)
        fprintf(stderr, "%s, %.0f GB/s one way\n", link_description(t.link), link_gb_per_s(t.link));
    link_close(t.link);
    cudaStreamDestroy(t.stream);
    return 0;
}
