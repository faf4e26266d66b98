/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/link_test.h"

#include <string.h>

#include "kernels/values.h"
#include "sim/base/mem.h"

enum {
    GUARD_BYTES = 4096,
    ROOM_BYTES = 24 << 20, /* of each array that exchanges read or write */
    GROW = 3000,           /* boxes of megabytes, for the copy engine */
    REPLAYS = 20
};

static const char *const channel_names[] = {"compute", "beside", "transfer"};

int random_delay(struct test *t, cudaStream_t stream)
{
    if (rng_range(&t->own, 0, 2) > 0)
        return 0;
    CUDA(values_delay(rng_range(&t->own, 1000, 300000), stream));
    return 0;
}

static int track_open(struct test *t, enum link_channel channel, unsigned char *arena)
{
    struct track *k = &t->track[channel];
    k->channel = channel;
    for (int i = 0; i < 2; i++) {
        k->to[i] = arena + (2 * channel + i) * (int64_t)ROOM_BYTES + GUARD_BYTES;
        CUDA(cudaStreamCreateWithFlags(&k->stream[i], cudaStreamNonBlocking));
        CUDA(cudaHostAlloc((void **)&k->got[i], ROOM_BYTES, cudaHostAllocDefault));
    }
    CUDA(cudaMalloc((void **)&k->from, ROOM_BYTES));
    CUDA(cudaHostAlloc((void **)&k->source, ROOM_BYTES, cudaHostAllocDefault));
    k->want = xmalloc(ROOM_BYTES);
    k->scrap = xmalloc(ROOM_BYTES);
    return 0;
}

int test_open(struct test *t)
{
    size_t sum_bytes = (SUM_ROOM + SUM_MARGIN) * sizeof *t->x;
    size_t arrays_bytes = (size_t)2 * LINK_CHANNELS * ROOM_BYTES;
    struct link_config config = {t->o->transport, arrays_bytes + sum_bytes, 8};
    if (link_open(&t->link, &config, &t->f->comm, &t->err) < 0)
        return -1;
    unsigned char *arena = link_arena(t->link);
    for (int c = 0; c < LINK_CHANNELS; c++)
        if (track_open(t, (enum link_channel)c, arena) < 0)
            return -1;
    t->x = (uint16_t *)(void *)(arena + arrays_bytes);
    CUDA(cudaHostAlloc((void **)&t->x_host, sum_bytes, cudaHostAllocDefault));
    rng_init(&t->common, 20260901);
    rng_init(&t->own, 20260902 + (uint64_t)t->f->rank);
    return 0;
}

int sync_streams(struct test *t)
{
    for (int c = 0; c < LINK_CHANNELS; c++)
        for (int i = 0; i < 2; i++)
            CUDA(cudaStreamSynchronize(t->track[c].stream[i]));
    return link_check(t->link, &t->err);
}

/* New traffic for the track, the same on every rank. */
static int track_plan(struct test *t, struct track *k, int64_t grow)
{
    struct link_box out[TRAFFIC_MAX], in[TRAFFIC_MAX];
    int n_out, n_in;
    traffic_make(&k->traffic, &t->common, t->f->ranks, grow);
    while (k->traffic.to_bytes > ROOM_BYTES - 2 * GUARD_BYTES ||
           k->traffic.from_bytes > ROOM_BYTES - 8)
        traffic_make(&k->traffic, &t->common, t->f->ranks, grow);
    traffic_boxes(&k->traffic, t->f->rank, out, &n_out, in, &n_in);
    k->exchange = link_exchange_new(t->link, out, n_out, in, n_in, &t->err);
    if (k->exchange == NULL)
        return -1;
    if (link_exchange_sent_bytes(k->exchange) != traffic_sent_bytes(&k->traffic, t->f->rank) ||
        link_exchange_received_bytes(k->exchange) !=
            traffic_received_bytes(&k->traffic, t->f->rank))
        return err_run(&t->err, "bytes are counted wrong");
    return 0;
}

static size_t read_bytes(const struct track *k)
{
    return (size_t)k->traffic.to_bytes + 2 * GUARD_BYTES;
}

static int poison(struct test *t, struct track *k, int array, size_t bytes, cudaStream_t stream)
{
    CUDA(cudaMemsetAsync(k->to[array] - GUARD_BYTES, POISON, bytes, stream));
    return 0;
}

static int upload(struct test *t, struct track *k, uint64_t seed, cudaStream_t stream)
{
    int64_t bytes = (k->traffic.from_bytes + 7) / 8 * 8;
    traffic_source(k->source, bytes, seed, t->f->rank);
    CUDA(cudaMemcpyAsync(k->from, k->source, (size_t)bytes, cudaMemcpyHostToDevice, stream));
    return 0;
}

static int download(struct test *t, struct track *k, int array, cudaStream_t stream)
{
    CUDA(cudaMemcpyAsync(k->got[array], k->to[array] - GUARD_BYTES, read_bytes(k),
                         cudaMemcpyDeviceToHost, stream));
    return 0;
}

static int compare(struct test *t, struct track *k, int array, uint64_t seed)
{
    size_t n = read_bytes(k);
    memset(k->want, POISON, n);
    traffic_deliver(&k->traffic, seed, t->f->rank, k->want + GUARD_BYTES, k->scrap);
    if (memcmp(k->want, k->got[array], n) == 0)
        return 0;
    size_t i = 0, bad = 0, first = n;
    for (; i < n; i++)
        if (k->want[i] != k->got[array][i]) {
            bad++;
            first = i < first ? i : first;
        }
    return err_run(&t->err,
                   "%s, array %d, seed %llu: %zu of %zu bytes are wrong, the first at %lld: %02x "
                   "instead of %02x",
                   channel_names[k->channel], array, (unsigned long long)seed, bad, n,
                   (long long)first - GUARD_BYTES, k->got[array][first], k->want[first]);
}

static uint64_t seed_of(const struct track *k)
{
    return 2 * (uint64_t)k->round + k->channel;
}

static int track_enqueue(struct test *t, struct track *k)
{
    cudaStream_t stream = k->stream[rng_range(&t->own, 0, 1)];
    int array = k->round % 2;
    if (poison(t, k, 1 - array, ROOM_BYTES, stream) < 0 || upload(t, k, seed_of(k), stream) < 0 ||
        random_delay(t, stream) < 0 ||
        link_run(t->link, k->exchange, k->from, k->to[array], k->channel, stream, &t->err) < 0)
        return -1;
    return download(t, k, array, stream);
}

static int track_finish(struct test *t, struct track *k)
{
    if (compare(t, k, k->round % 2, seed_of(k)) < 0)
        return -1;
    link_exchange_free(k->exchange);
    k->exchange = NULL;
    k->round++;
    return 0;
}

/* Now and then a channel has nothing to do. */
static int run_exchanges(struct test *t, int iterations, int64_t grow)
{
    for (int i = 0; i < iterations; i++) {
        for (int c = 0; c < LINK_CHANNELS; c++) {
            struct track *k = &t->track[c];
            if (rng_range(&t->common, 0, 3) > 0 &&
                (track_plan(t, k, grow) < 0 || track_enqueue(t, k) < 0))
                return -1;
        }
        if (sync_streams(t) < 0)
            return -1;
        for (int c = 0; c < LINK_CHANNELS; c++)
            if (t->track[c].exchange != NULL && track_finish(t, &t->track[c]) < 0)
                return -1;
    }
    return 0;
}

int test_small_exchanges(struct test *t)
{
    return run_exchanges(t, t->o->iterations, 1);
}

int test_large_exchanges(struct test *t)
{
    return run_exchanges(t, t->o->iterations / 25 + 1, GROW);
}

/* Two exchanges, the second on a stream of its own, and a sum: the link must keep them in order. */
static int capture(struct test *t, struct track *k, int64_t n, cudaGraphExec_t *graph)
{
    cudaStream_t stream = k->stream[0], other = k->stream[1];
    cudaEvent_t fork, join;
    cudaGraph_t captured;
    CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (link_barrier(t->link, k->channel, stream, &t->err) < 0)
        return -1;
    CUDA(cudaEventRecord(fork, stream));
    CUDA(cudaStreamWaitEvent(other, fork, 0));
    if (link_run(t->link, k->exchange, k->from, k->to[0], k->channel, stream, &t->err) < 0 ||
        random_delay(t, other) < 0 ||
        link_run(t->link, k->exchange, k->from, k->to[1], k->channel, other, &t->err) < 0 ||
        random_delay(t, stream) < 0 ||
        link_all_reduce(t->link, t->x, n, k->channel, stream, &t->err) < 0)
        return -1;
    CUDA(cudaEventRecord(join, other));
    CUDA(cudaStreamWaitEvent(stream, join, 0));
    CUDA(cudaStreamEndCapture(stream, &captured));
    CUDA(cudaGraphInstantiate(graph, captured, 0));
    CUDA(cudaGraphDestroy(captured));
    CUDA(cudaEventDestroy(fork));
    CUDA(cudaEventDestroy(join));
    return 0;
}

static int replay(struct test *t, struct track *k, int64_t n, cudaGraphExec_t graph, uint64_t seed)
{
    cudaStream_t stream = k->stream[0];
    if (sum_upload(t, n, 0, seed, stream) < 0 || poison(t, k, 0, read_bytes(k), stream) < 0 ||
        poison(t, k, 1, read_bytes(k), stream) < 0 || upload(t, k, seed, stream) < 0 ||
        random_delay(t, stream) < 0)
        return -1;
    CUDA(cudaGraphLaunch(graph, stream));
    if (download(t, k, 0, stream) < 0 || download(t, k, 1, stream) < 0)
        return -1;
    return sum_download(t, n, stream);
}

static int replays(struct test *t, int graph_number)
{
    struct track *k = &t->track[LINK_COMPUTE], *beside = &t->track[LINK_TRANSFER];
    int64_t n = 2 * rng_range(&t->common, 1, 20000);
    cudaGraphExec_t graph;
    if (track_plan(t, k, 1) < 0 || capture(t, k, n, &graph) < 0)
        return -1;
    for (int i = 0; i < REPLAYS; i++) {
        uint64_t seed = 100000 + REPLAYS * (uint64_t)graph_number + (uint64_t)i;
        if (replay(t, k, n, graph, seed) < 0 || track_plan(t, beside, 1) < 0 ||
            track_enqueue(t, beside) < 0 || sync_streams(t) < 0 || compare(t, k, 0, seed) < 0 ||
            compare(t, k, 1, seed) < 0 || sum_compare(t, n, 0, seed) < 0 ||
            track_finish(t, beside) < 0)
            return -1;
    }
    CUDA(cudaGraphExecDestroy(graph));
    link_exchange_free(k->exchange);
    k->exchange = NULL;
    return 0;
}

int test_graphs(struct test *t)
{
    struct track *k = &t->track[LINK_COMPUTE];
    for (int g = 0; g < t->o->iterations / 50 + 1; g++)
        if (replays(t, g) < 0)
            return -1;
    if (poison(t, k, k->round % 2, ROOM_BYTES, k->stream[0]) < 0)
        return -1;
    return link_barrier(t->link, k->channel, k->stream[0], &t->err);
}
