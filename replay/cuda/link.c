/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/link.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/peers.h"
#include "replay/cuda/link_internal.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { POISON = 0xff, ALIGN_BYTES = 4096 };

const char *const link_transport_names[] = {[LINK_NCCL] = "nccl", [LINK_DIRECT] = "direct", NULL};

int link_gather(struct link *l, void *all, size_t bytes, struct err *err)
{
    struct comm uncounted = *l->comm; /* its counts speak of the caller's data */
    size_t *each = xcalloc((size_t)l->ranks, sizeof *each);
    for (int r = 0; r < l->ranks; r++)
        each[r] = bytes;
    int result = comm_all_gather(&uncounted, all, each, err);
    free(each);
    return result;
}

int link_agree(struct link *l, int mine, struct err *err)
{
    bool *ready = xcalloc((size_t)l->ranks, sizeof *ready);
    ready[l->rank] = mine == 0;
    int result = link_gather(l, ready, sizeof *ready, err);
    for (int r = 0; result == 0 && r < l->ranks; r++)
        if (!ready[r])
            result = err_run(err, "link: rank %d could not go on", r);
    free(ready);
    return result < 0 || mine < 0 ? -1 : 0;
}

/* Sizes that differ would put the same thing at different places. */
static int check_config(struct link *l, struct err *err)
{
    struct link_config *all = xcalloc((size_t)l->ranks, sizeof *all);
    all[l->rank] = l->config;
    int result = link_gather(l, all, sizeof *all, err);
    for (int r = 0; result == 0 && r < l->ranks; r++)
        if (all[r].transport != l->config.transport ||
            all[r].arena_bytes != l->config.arena_bytes ||
            all[r].transfer_sms != l->config.transfer_sms)
            result = err_run(err, "link: ranks %d and %d were configured differently", l->rank, r);
    free(all);
    return result;
}

static int allocate(struct link *l, struct err *err)
{
    size_t arena_bytes = (l->config.arena_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    size_t kernels_bytes = LINK_CHANNELS * sizeof(struct peers_flags);
    size_t flags_bytes = kernels_bytes + PEERS_MAX * sizeof(uint32_t);
    l->total_bytes = arena_bytes + LINK_SCRATCH_BYTES + flags_bytes;
    if (cudaMalloc((void **)&l->arena, l->total_bytes) != cudaSuccess)
        return err_run(err, "link: no %.1f GB of GPU memory left for the arena",
                       1e-9 * (double)l->total_bytes);
    l->scratch = l->arena + arena_bytes;
    l->flags = l->scratch + LINK_SCRATCH_BYTES;
    l->copy_flags = l->flags + kernels_bytes;
    if (gpu_try(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking), "a stream", err) < 0)
        return -1;
    for (int c = 0; c < LINK_CHANNELS; c++) {
        struct link_order *o = &l->order[c];
        if (gpu_try(cudaEventCreateWithFlags(&o->eager, cudaEventDisableTiming), "an event", err) <
                0 ||
            gpu_try(cudaEventCreateWithFlags(&o->captured, cudaEventDisableTiming), "an event",
                    err) < 0)
            return -1;
    }
    if (gpu_try(cudaMemset(l->arena, POISON, arena_bytes + LINK_SCRATCH_BYTES), "poison", err) < 0)
        return -1;
    if (gpu_try(cudaMemset(l->flags, 0, flags_bytes), "flags", err) < 0)
        return -1;
    return gpu_try(cudaDeviceSynchronize(), "filling the arena", err);
}

static void release(struct link *l)
{
    for (int c = 0; c < LINK_CHANNELS; c++) {
        if (l->order[c].eager != NULL)
            cudaEventDestroy(l->order[c].eager);
        if (l->order[c].captured != NULL)
            cudaEventDestroy(l->order[c].captured);
    }
    if (l->stream != NULL)
        cudaStreamDestroy(l->stream);
    cudaFree(l->arena);
    free(l);
}

int link_open(struct link **out, const struct link_config *config, struct comm *comm,
              struct err *err)
{
    assert(config->transfer_sms > 0);
    struct link *l = xcalloc(1, sizeof *l);
    l->ops = config->transport == LINK_NCCL ? &link_nccl_ops : &link_direct_ops;
    l->config = *config;
    l->comm = comm;
    l->rank = comm->rank;
    l->ranks = comm->ranks;
    if (link_agree(l, check_config(l, err), err) < 0 || link_agree(l, allocate(l, err), err) < 0)
        goto fail;
    if (link_agree(l, l->ops->open(l, err), err) < 0)
        goto fail_open;
    if (link_agree(l, link_probe(l, err), err) < 0)
        goto fail_open;
    *out = l;
    return 0;
fail_open:
    link_abort(l);
    l->ops->close(l);
fail:
    release(l);
    return -1;
}

void link_close(struct link *l)
{
    if (l == NULL)
        return;
    struct err ignored = ERR_NONE;
    cudaDeviceSynchronize();
    l->ops->close(l);
    link_agree(l, 0, &ignored); /* nobody frees what another has mapped */
    release(l);
}

void *link_arena(const struct link *l)
{
    return l->arena;
}

const char *link_description(const struct link *l)
{
    return l->description;
}

double link_gb_per_s(const struct link *l)
{
    return l->gb_per_s;
}

int64_t link_box_bytes(const struct link_box *b)
{
    return b->blocks * b->rows * b->bytes;
}

static void count(struct link_exchange *e, const struct link_box *box, int n, int64_t *bytes)
{
    for (int i = 0; i < n; i++) {
        const struct link_box *b = &box[i];
        assert(b->peer >= 0 && b->peer < e->link->ranks);
        if (link_box_bytes(b) == 0)
            continue;
        assert(b->blocks > 0 && b->rows > 0 && b->bytes > 0 && b->to >= 0);
        if (b->peer != e->link->rank)
            *bytes += link_box_bytes(b);
        int64_t end = b->to + (b->blocks - 1) * b->to_block + (b->rows - 1) * b->to_row + b->bytes;
        e->end = max_i64(e->end, end);
    }
}

struct link_exchange *link_exchange_new(struct link *l, const struct link_box *out, int n_out,
                                        const struct link_box *in, int n_in, struct err *err)
{
    struct link_exchange *e = xcalloc(1, sizeof *e);
    e->link = l;
    count(e, out, n_out, &e->sent_bytes);
    count(e, in, n_in, &e->received_bytes);
    if (l->ops->prepare(e, out, n_out, in, n_in, err) == 0)
        return e;
    link_exchange_free(e);
    return NULL;
}

void link_exchange_free(struct link_exchange *e)
{
    if (e == NULL)
        return;
    e->link->ops->forget(e);
    free(e);
}

int64_t link_exchange_sent_bytes(const struct link_exchange *e)
{
    return e->sent_bytes;
}

int64_t link_exchange_received_bytes(const struct link_exchange *e)
{
    return e->received_bytes;
}

/* Which capture the stream is in; 0: none. */
static int capture_of(cudaStream_t stream, unsigned long long *capture, struct err *err)
{
    enum cudaStreamCaptureStatus status;
    *capture = 0;
    return gpu_try(cudaStreamGetCaptureInfo(stream, &status, capture, NULL, NULL, NULL, NULL),
                   "asking for a capture", err);
}

/* After the channel's last call. An event of a capture means nothing outside it, so what a graph
 * holds is in order within it, and the caller launches graphs in order. */
static int enter(struct link *l, struct link_lane lane, unsigned long long *capture,
                 struct err *err)
{
    struct link_order *o = &l->order[lane.channel];
    if (capture_of(lane.stream, capture, err) < 0)
        return -1;
    if (*capture != 0 && *capture != o->capture)
        return 0;
    cudaEvent_t last = *capture != 0 ? o->captured : o->eager;
    return gpu_try(cudaStreamWaitEvent(lane.stream, last, 0), "ordering a channel", err);
}

static int leave(struct link *l, struct link_lane lane, unsigned long long capture, struct err *err)
{
    struct link_order *o = &l->order[lane.channel];
    if (capture != 0)
        o->capture = capture;
    return gpu_try(cudaEventRecord(capture != 0 ? o->captured : o->eager, lane.stream),
                   "ordering a channel", err);
}

int link_run(struct link *l, const struct link_exchange *e, const void *from_base, void *to_base,
             enum link_channel channel, cudaStream_t stream, struct err *err)
{
    struct link_lane lane = {channel, stream};
    unsigned long long capture;
    char *to = to_base;
    assert((uintptr_t)from_base % 16 == 0 && (uintptr_t)to_base % 16 == 0);
    assert(to >= l->arena && to + e->end <= l->arena + l->total_bytes);
    if (enter(l, lane, &capture, err) < 0 || l->ops->run(e, from_base, to, lane, err) < 0)
        return -1;
    return leave(l, lane, capture, err);
}

int link_all_reduce(struct link *l, uint16_t *x, int64_t n, enum link_channel channel,
                    cudaStream_t stream, struct err *err)
{
    struct link_lane lane = {channel, stream};
    unsigned long long capture;
    assert(n >= 0 && n % 2 == 0 && (uintptr_t)x % 4 == 0);
    assert((char *)x >= l->arena && (char *)(x + n) <= l->arena + l->total_bytes);
    if (enter(l, lane, &capture, err) < 0 || l->ops->all_reduce(l, x, n, lane, err) < 0)
        return -1;
    return leave(l, lane, capture, err);
}

int link_barrier(struct link *l, enum link_channel channel, cudaStream_t stream, struct err *err)
{
    struct link_lane lane = {channel, stream};
    unsigned long long capture;
    if (enter(l, lane, &capture, err) < 0 || l->ops->barrier(l, lane, err) < 0)
        return -1;
    return leave(l, lane, capture, err);
}

int link_check(struct link *l, struct err *err)
{
    return l->ops->check(l, err);
}

int link_wait(struct link *l, cudaStream_t stream, const char *what, struct err *err)
{
    const struct timespec pause = {.tv_nsec = 20000};
    for (;;) {
        cudaError_t e = cudaStreamQuery(stream);
        if (e != cudaErrorNotReady)
            return gpu_try(e, what, err) < 0 ? -1 : link_check(l, err);
        if (link_check(l, err) < 0)
            return -1;
        nanosleep(&pause, NULL);
    }
}

void link_abort(struct link *l)
{
    l->ops->abort(l);
}
