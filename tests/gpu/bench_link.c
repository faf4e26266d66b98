/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the link between GPUs as Markdown tables: bench_link DATE [RANKS]. All ranks send at
 * once, random data. A number is the median over samples of the slowest rank's time for one
 * exchange, in a graph of many, or in as many eager calls for LINK_TRANSFER, which is not captured.
 * What is small enough to stay in the L2 cache does: the same arrays are sent again and again.
 */
#include "replay/cuda/link.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/values.h"
#include "replay/cuda/gpu.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "tests/gpu/forked.h"

enum {
    SAMPLES = 50,
    WARM_UPS = 3,
    LEAD_NS = 200000, /* of spinning, while the host enqueues what is timed */
    TRANSFER_SMS = 8,
    ROW_BYTES = 64 * 576 * 2, /* queries of 64 heads */
    PAGE_BYTES = 16 * 576 * 2,
};

static const int64_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

struct bench {
    struct forked *f;
    struct link *link[2]; /* by transport */
    ncclComm_t bare;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    char *from;
    struct err err;
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            return -1;                                                                             \
    } while (0)
#define CUDA(call) TRY(gpu_try((call), #call, &b->err))

static int nccl(struct bench *b, ncclResult_t r)
{
    return r == ncclSuccess ? 0 : err_run(&b->err, "NCCL: %s", ncclGetErrorString(r));
}

/* What is timed: one call enqueues one exchange or sum. */
struct work {
    int (*run)(struct bench *b, const struct work *w);
    enum link_transport transport;
    enum link_channel channel;
    struct link_exchange *exchange;
    int64_t bytes; /* to each other rank, or of the sum */
};

static int run_bare(struct bench *b, const struct work *w)
{
    char *to = link_arena(b->link[LINK_NCCL]);
    TRY(nccl(b, ncclGroupStart()));
    for (int r = 0; r < b->f->ranks; r++) {
        if (r == b->f->rank)
            continue;
        TRY(nccl(b, ncclSend(b->from + r * w->bytes, (size_t)w->bytes, ncclInt8, r, b->bare,
                             b->stream)));
        TRY(nccl(b,
                 ncclRecv(to + r * w->bytes, (size_t)w->bytes, ncclInt8, r, b->bare, b->stream)));
    }
    return nccl(b, ncclGroupEnd());
}

static int run_exchange(struct bench *b, const struct work *w)
{
    struct link *l = b->link[w->transport];
    return link_run(l, w->exchange, b->from, link_arena(l), w->channel, b->stream, &b->err);
}

static int run_sum(struct bench *b, const struct work *w)
{
    struct link *l = b->link[w->transport];
    return link_all_reduce(l, link_arena(l), w->bytes / 2, w->channel, b->stream, &b->err);
}

static int capture(struct bench *b, const struct work *w, int n, cudaGraphExec_t *graph)
{
    cudaGraph_t captured;
    CUDA(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n; i++)
        TRY(w->run(b, w));
    CUDA(cudaStreamEndCapture(b->stream, &captured));
    CUDA(cudaGraphInstantiate(graph, captured, 0));
    CUDA(cudaGraphDestroy(captured));
    return 0;
}

/* One sample: n in a row. The host's part is over before the ranks meet and the clock starts. */
static int sample(struct bench *b, const struct work *w, int n, cudaGraphExec_t graph, double *us)
{
    float ms;
    if (w->run == run_sum) /* or it would grow beyond all bounds */
        CUDA(cudaMemcpyAsync(link_arena(b->link[w->transport]), b->from, (size_t)w->bytes,
                             cudaMemcpyDefault, b->stream));
    TRY(comm_barrier(&b->f->comm, &b->err));
    CUDA(values_delay(graph != NULL ? LEAD_NS : LEAD_NS + n * 15000, b->stream));
    TRY(link_barrier(b->link[LINK_DIRECT], LINK_COMPUTE, b->stream, &b->err));
    CUDA(cudaEventRecord(b->start, b->stream));
    if (graph != NULL)
        CUDA(cudaGraphLaunch(graph, b->stream));
    for (int i = 0; graph == NULL && i < n; i++)
        TRY(w->run(b, w));
    CUDA(cudaEventRecord(b->stop, b->stream));
    CUDA(cudaStreamSynchronize(b->stream));
    CUDA(cudaEventElapsedTime(&ms, b->start, b->stop));
    TRY(link_check(b->link[w->transport], &b->err));
    *us = 1e3 * (double)ms / n;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int median_of_slowest(struct bench *b, const double *mine, double *median)
{
    double all[FORKED_MAX * SAMPLES], slowest[SAMPLES] = {0};
    size_t each[FORKED_MAX];
    for (int r = 0; r < b->f->ranks; r++)
        each[r] = SAMPLES * sizeof *mine;
    memcpy(all + b->f->rank * SAMPLES, mine, SAMPLES * sizeof *mine);
    TRY(comm_all_gather(&b->f->comm, all, each, &b->err));
    for (int i = 0; i < b->f->ranks * SAMPLES; i++)
        if (all[i] > slowest[i % SAMPLES])
            slowest[i % SAMPLES] = all[i];
    qsort(slowest, SAMPLES, sizeof *slowest, by_size);
    *median = (slowest[SAMPLES / 2 - 1] + slowest[SAMPLES / 2]) / 2;
    return 0;
}

/* Prints the table's next cell. */
static int report(struct bench *b, const struct work *w)
{
    double us[SAMPLES], median, scrap;
    int n = w->bytes > 32 * MIB ? 10 : 20;
    cudaGraphExec_t graph = NULL;
    TRY(w->run(b, w)); /* connections are made in the first call */
    CUDA(cudaStreamSynchronize(b->stream));
    if (w->channel == LINK_COMPUTE)
        TRY(capture(b, w, n, &graph));
    for (int i = 0; i < WARM_UPS; i++)
        TRY(sample(b, w, n, graph, &scrap));
    for (int i = 0; i < SAMPLES; i++)
        TRY(sample(b, w, n, graph, &us[i]));
    TRY(median_of_slowest(b, us, &median));
    if (graph != NULL)
        CUDA(cudaGraphExecDestroy(graph));
    if (b->f->rank == 0)
        printf(" %.1f (%.0f) |", median, 1e-3 * (double)w->bytes / median);
    fflush(stdout);
    return 0;
}

/* `bytes` to every other rank. Contiguous, or rows as of queries with a gap of a row after each,
 * or pages in random order. */
enum shape { CONTIGUOUS, ROWS, PAGES };

static struct link_box piece_of(enum shape shape, int64_t bytes)
{
    struct link_box x = {.blocks = 1, .rows = 1, .bytes = bytes};
    if (shape == ROWS) {
        x.bytes = bytes >= 4 * ROW_BYTES ? ROW_BYTES : bytes / 4;
        x.rows = bytes / x.bytes;
        x.from_row = x.to_row = 2 * x.bytes;
    }
    return x;
}

static int64_t *shuffled(int64_t n)
{
    struct rng rng;
    int64_t *at = xcalloc((size_t)n, sizeof *at);
    rng_init(&rng, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = rng_range(&rng, 0, i);
        at[i] = at[k];
        at[k] = i;
    }
    return at;
}

/* Rank r's piece lies r pieces behind the base, at both ends. */
static struct link_exchange *make(struct bench *b, enum link_transport transport, enum shape shape,
                                  int64_t bytes)
{
    int64_t n = shape == PAGES ? bytes / PAGE_BYTES : 1, used = 0;
    int64_t stride = shape == CONTIGUOUS ? bytes : 2 * bytes, *at = shuffled(n);
    size_t most = (size_t)(n * (b->f->ranks - 1));
    struct link_box *out = xcalloc(most, sizeof *out), *in = xcalloc(most, sizeof *in);
    for (int r = 0; r < b->f->ranks; r++)
        for (int64_t i = 0; r != b->f->rank && i < n; i++) {
            struct link_box x = piece_of(shape, shape == PAGES ? PAGE_BYTES : bytes);
            x.peer = r;
            out[used] = in[used] = x;
            out[used].from = in[used].to = r * stride + at[i] * 2 * PAGE_BYTES;
            out[used].to = in[used].from = b->f->rank * stride + at[i] * 2 * PAGE_BYTES;
            used++;
        }
    struct link_exchange *e =
        link_exchange_new(b->link[transport], out, (int)used, in, (int)used, &b->err);
    free(in);
    free(out);
    free(at);
    return e;
}

static int report_exchange(struct bench *b, enum link_transport transport, enum shape shape,
                           enum link_channel channel, int64_t bytes)
{
    struct work w = {run_exchange, transport, channel, make(b, transport, shape, bytes), bytes};
    if (w.exchange == NULL)
        return -1;
    w.bytes = link_exchange_sent_bytes(w.exchange) / (b->f->ranks - 1);
    int result = report(b, &w);
    link_exchange_free(w.exchange);
    return result;
}

static void title(struct bench *b, const char *text)
{
    if (b->f->rank == 0)
        printf("%s", text);
}

static void row(struct bench *b, int64_t bytes)
{
    if (b->f->rank == 0)
        printf(bytes < MIB ? "| %lld KiB |" : "| %lld MiB |",
               (long long)(bytes / (bytes < MIB ? KIB : MIB)));
}

static int bench_exchanges(struct bench *b)
{
    static const int64_t kib[] = {1,    4,    16,    64,    128,    256,
                                  1024, 4096, 16384, 65536, 262144, 1048576};
    title(b,
          "Microseconds (GB/s) an exchange of so many bytes to every other rank. Strided: rows of "
          "up to 72 KiB with gaps of as much, at both ends. Transfer: eager, by the copy engine "
          "from 4 MiB on.\n\n"
          "| bytes | bare NCCL send/recv | nccl, contiguous | nccl, strided | direct, contiguous "
          "| direct, strided | direct transfer, contiguous | direct transfer, strided |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof kib / sizeof kib[0]; i++) {
        int64_t bytes = kib[i] * KIB;
        struct work bare = {run_bare, LINK_NCCL, LINK_COMPUTE, NULL, bytes};
        row(b, bytes);
        TRY(report(b, &bare));
        TRY(report_exchange(b, LINK_NCCL, CONTIGUOUS, LINK_COMPUTE, bytes));
        TRY(report_exchange(b, LINK_NCCL, ROWS, LINK_COMPUTE, bytes));
        TRY(report_exchange(b, LINK_DIRECT, CONTIGUOUS, LINK_COMPUTE, bytes));
        TRY(report_exchange(b, LINK_DIRECT, ROWS, LINK_COMPUTE, bytes));
        TRY(report_exchange(b, LINK_DIRECT, CONTIGUOUS, LINK_TRANSFER, bytes));
        TRY(report_exchange(b, LINK_DIRECT, ROWS, LINK_TRANSFER, bytes));
        title(b, "\n");
    }
    return 0;
}

static int bench_pages(struct bench *b)
{
    static const int64_t mib[] = {1, 16, 64, 256};
    title(b, "\nThe same in pages of 18 KiB in random places at both ends; transfer: eager, on 8 "
             "SMs.\n\n"
             "| bytes | nccl | nccl transfer | direct | direct transfer |\n"
             "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof mib / sizeof mib[0]; i++) {
        int64_t bytes = mib[i] * MIB / PAGE_BYTES * PAGE_BYTES;
        row(b, mib[i] * MIB);
        for (int transport = 0; transport < 2; transport++)
            for (int channel = 0; channel < LINK_CHANNELS; channel++)
                TRY(report_exchange(b, (enum link_transport)transport, PAGES,
                                    (enum link_channel)channel, bytes));
        title(b, "\n");
    }
    return 0;
}

static int bench_sums(struct bench *b)
{
    static const int64_t kib[] = {1, 16, 128, 896, 4096, 16384, 65536, 262144};
    title(b, "\nMicroseconds (GB/s of the sum's size) an all-reduce of so many bytes of BF16.\n\n"
             "| bytes | nccl | direct |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof kib / sizeof kib[0]; i++) {
        row(b, kib[i] * KIB);
        for (int transport = 0; transport < 2; transport++) {
            struct work w = {run_sum, (enum link_transport)transport, LINK_COMPUTE, NULL,
                             kib[i] * KIB};
            TRY(report(b, &w));
        }
        title(b, "\n");
    }
    return 0;
}

static int join_bare(struct bench *b)
{
    ncclUniqueId id[FORKED_MAX];
    size_t each[FORKED_MAX];
    for (int r = 0; r < b->f->ranks; r++)
        each[r] = sizeof *id;
    TRY(nccl(b, ncclGetUniqueId(&id[b->f->rank])));
    TRY(comm_all_gather(&b->f->comm, id, each, &b->err));
    return nccl(b, ncclCommInitRank(&b->bare, b->f->ranks, id[0], b->f->rank));
}

static int open_all(struct bench *b)
{
    size_t bytes = (size_t)(2 * GIB * b->f->ranks);
    CUDA(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&b->start));
    CUDA(cudaEventCreate(&b->stop));
    CUDA(cudaMalloc((void **)&b->from, bytes));
    struct values_matrix random = {.key = {.seed = (uint64_t)b->f->rank + 1, .divisor = 1},
                                   .to = (uint16_t *)(void *)b->from,
                                   .rows = (int64_t)bytes / 8192,
                                   .columns = 4096,
                                   .to_row = 4096,
                                   .to_column = 1};
    CUDA(values_fill_matrix(&random, b->stream));
    for (int t = 0; t < 2; t++) {
        struct link_config config = {(enum link_transport)t, bytes, TRANSFER_SMS};
        TRY(link_open(&b->link[t], &config, &b->f->comm, &b->err));
        CUDA(cudaMemcpyAsync(link_arena(b->link[t]), b->from, bytes, cudaMemcpyDefault, b->stream));
    }
    CUDA(cudaStreamSynchronize(b->stream));
    return join_bare(b);
}

static int bench_all(struct bench *b)
{
    struct cudaDeviceProp device;
    TRY(open_all(b));
    CUDA(cudaGetDeviceProperties(&device, 0));
    if (b->f->rank == 0)
        printf("%d ranks on %s, %s\n\nself-test: %s %.0f GB/s, %s %.0f GB/s to the next rank\n\n",
               b->f->ranks, device.name, (const char *)b->f->arg,
               link_description(b->link[LINK_NCCL]), link_gb_per_s(b->link[LINK_NCCL]),
               link_description(b->link[LINK_DIRECT]), link_gb_per_s(b->link[LINK_DIRECT]));
    TRY(bench_exchanges(b));
    TRY(bench_pages(b));
    return bench_sums(b);
}

static int be_rank(struct forked *f)
{
    struct bench b = {.f = f, .err = ERR_NONE};
    if (bench_all(&b) == 0)
        return 0;
    fprintf(stderr, "rank %d: %s\n", f->rank, b.err.text);
    return 1;
}

int main(int argc, char **argv)
{
    static char none[] = "no date given";
    struct forked_end end[FORKED_MAX];
    int ranks = argc > 2 ? atoi(argv[2]) : 2;
    if (ranks < 2 || ranks > FORKED_MAX)
        return 2;
    forked_run(ranks, false, 240, be_rank, argc > 1 ? argv[1] : none, end);
    int bad = forked_verdict(ranks, end);
    if (bad == FORKED_NO_GPU)
        printf("no GPU: skipped\n");
    return bad == FORKED_NO_GPU ? 0 : bad;
}
