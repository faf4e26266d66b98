/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-test of a link, through its own calls: hosts exist where peer access is reported but
 * stores land nowhere, or where copies work and flags do not.
 */
#include "replay/cuda/link_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/mem.h"
#include "sim/base/progress.h"

enum {
    PIECE_BYTES = 64 << 10,
    ROUNDS = 2, /* with other data, since stale data of the first would pass the second */
    SUM_NUMBERS = 1024,
    BF16_ONE = 0x3f80,
    TIMED_BYTES = 16 << 20,
    TIMED = 8
};

/* Until all is done on the stream, but no longer than the self-test may take. */
static int finish(struct link *l, const char *what, struct err *err)
{
    const struct timespec nap = {0, 20000};
    uint64_t end_ns = wall_ns() + (uint64_t)LINK_PROBE_S * 1000000000;
    cudaError_t e;
    while ((e = cudaStreamQuery(l->stream)) == cudaErrorNotReady) {
        if (wall_ns() > end_ns) {
            link_abort(l);
            return err_run(err, "link: self-test: %s did not end within %d s", what, LINK_PROBE_S);
        }
        nanosleep(&nap, NULL);
    }
    if (gpu_try(e, what, err) < 0)
        return -1;
    return link_check(l, err);
}

static int copy(struct link *l, void *to, const void *from, size_t bytes, struct err *err)
{
    if (gpu_try(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, l->stream), "a copy", err) < 0)
        return -1;
    return finish(l, "a copy", err);
}

/* What travels between two ranks, so that neither another pair's nor another round's would do. */
static void fill(uint32_t *word, int round, int channel, int sender, int receiver)
{
    uint32_t h = (uint32_t)(((round * LINK_CHANNELS + channel) * 128 + sender) * 128 + receiver);
    for (size_t i = 0; i < PIECE_BYTES / sizeof *word; i++) {
        h = h * 1664525 + 1013904223;
        word[i] = h;
    }
}

/* A piece from every rank to every other: rank r's lies r pieces behind the base at both ends. */
static struct link_exchange *all_to_all(struct link *l, struct err *err)
{
    struct link_box *out = xcalloc((size_t)l->ranks, sizeof *out);
    struct link_box *in = xcalloc((size_t)l->ranks, sizeof *in);
    int n = 0;
    for (int r = 0; r < l->ranks; r++) {
        if (r == l->rank)
            continue;
        struct link_box b = {.peer = r, .blocks = 1, .rows = 1, .bytes = PIECE_BYTES};
        out[n] = in[n] = b;
        out[n].from = in[n].to = (int64_t)r * PIECE_BYTES;
        out[n].to = in[n].from = (int64_t)l->rank * PIECE_BYTES;
        n++;
    }
    struct link_exchange *e = link_exchange_new(l, out, n, in, n, err);
    free(in);
    free(out);
    return e;
}

static int probe_pattern(struct link *l, const struct link_exchange *e, int round,
                         enum link_channel channel, struct err *err)
{
    int result = -1;
    char *from = l->scratch, *to = l->scratch + LINK_HALF_BYTES;
    size_t bytes = (size_t)l->ranks * PIECE_BYTES;
    char *sent = xmalloc(bytes), *got = xmalloc(bytes), *want = xmalloc(PIECE_BYTES);
    for (int r = 0; r < l->ranks; r++)
        fill((uint32_t *)(void *)(sent + (size_t)r * PIECE_BYTES), round, channel, l->rank, r);
    if (copy(l, from, sent, bytes, err) < 0 || link_barrier(l, channel, l->stream, err) < 0 ||
        link_run(l, e, from, to, channel, l->stream, err) < 0 ||
        finish(l, "an exchange", err) < 0 || copy(l, got, to, bytes, err) < 0)
        goto out;
    result = 0;
    for (int r = 0; r < l->ranks; r++) {
        fill((uint32_t *)(void *)want, round, channel, r, l->rank);
        if (r != l->rank && memcmp(got + (size_t)r * PIECE_BYTES, want, PIECE_BYTES) != 0)
            result = err_run(err, "link: self-test: what rank %d sent did not arrive at rank %d", r,
                             l->rank);
    }
out:
    free(want);
    free(got);
    free(sent);
    return result;
}

static int probe_sum(struct link *l, enum link_channel channel, struct err *err)
{
    uint16_t x[SUM_NUMBERS];
    for (int i = 0; i < SUM_NUMBERS; i++)
        x[i] = BF16_ONE;
    uint16_t *sum = (uint16_t *)(void *)(l->scratch + LINK_SCRATCH_BYTES - sizeof x);
    if (copy(l, sum, x, sizeof x, err) < 0 ||
        link_all_reduce(l, sum, SUM_NUMBERS, channel, l->stream, err) < 0 ||
        finish(l, "an all-reduce", err) < 0 || copy(l, x, sum, sizeof x, err) < 0)
        return -1;
    float ranks = (float)l->ranks; /* a small integer, hence exact */
    uint32_t bits;
    memcpy(&bits, &ranks, sizeof bits);
    for (int i = 0; i < SUM_NUMBERS; i++)
        if (x[i] != bits >> 16)
            return err_run(err, "link: self-test: rank %d got a wrong sum", l->rank);
    return 0;
}

static int time_exchanges(struct link *l, const struct link_exchange *e, cudaEvent_t start,
                          cudaEvent_t stop, struct err *err)
{
    float ms;
    for (int i = 0; i < 1 + TIMED; i++) {
        if (i == 1 && gpu_try(cudaEventRecord(start, l->stream), "timing", err) < 0)
            return -1;
        if (link_run(l, e, l->scratch, l->scratch + LINK_HALF_BYTES, LINK_COMPUTE, l->stream, err) <
            0)
            return -1;
    }
    if (gpu_try(cudaEventRecord(stop, l->stream), "timing", err) < 0 ||
        finish(l, "a timed exchange", err) < 0 ||
        gpu_try(cudaEventElapsedTime(&ms, start, stop), "timing", err) < 0)
        return -1;
    l->gb_per_s = 1e-6 * TIMED * TIMED_BYTES / (double)ms;
    return 0;
}

static int probe_speed(struct link *l, struct err *err)
{
    int result = -1;
    cudaEvent_t start = NULL, stop = NULL;
    struct link_box b = {.blocks = 1, .rows = 1, .bytes = TIMED_BYTES}, out = b, in = b;
    out.peer = (l->rank + 1) % l->ranks;
    in.peer = (l->rank + l->ranks - 1) % l->ranks;
    struct link_exchange *e = link_exchange_new(l, &out, 1, &in, 1, err);
    if (e != NULL && gpu_try(cudaEventCreate(&start), "an event", err) == 0 &&
        gpu_try(cudaEventCreate(&stop), "an event", err) == 0)
        result = time_exchanges(l, e, start, stop, err);
    if (start != NULL)
        cudaEventDestroy(start);
    if (stop != NULL)
        cudaEventDestroy(stop);
    link_exchange_free(e);
    return result;
}

int link_probe(struct link *l, struct err *err)
{
    int result = 0;
    if (l->ranks == 1)
        return 0;
    struct link_exchange *e = all_to_all(l, err);
    if (link_agree(l, e == NULL ? -1 : 0, err) < 0)
        result = -1;
    for (int i = 0; result == 0 && i < ROUNDS * LINK_CHANNELS; i++)
        result =
            probe_pattern(l, e, i / LINK_CHANNELS, (enum link_channel)(i % LINK_CHANNELS), err);
    for (int c = 0; result == 0 && c < LINK_CHANNELS; c++)
        result = probe_sum(l, (enum link_channel)c, err);
    if (result == 0)
        result = probe_speed(l, err);
    link_exchange_free(e);
    return result;
}
