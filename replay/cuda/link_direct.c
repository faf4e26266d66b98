/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores into the other ranks' memory. Every rank maps every other's arena by CUDA's
 * inter-process handles; one kernel per exchange copies and meets the others' kernels there. On
 * LINK_TRANSFER the copy engine copies, and no kernel waits.
 */
#include "replay/cuda/link_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/all_reduce.h"
#include "kernels/boxes.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum {
    COMPUTE_BLOCKS = 64,         /* H200 pair: as quick as 16 for little, 360 GB/s for much */
    ENGINE_COPIES_MAX = 64,      /* in one exchange */
    ENGINE_COPY_BYTES = 1 << 20, /* and more in each: about 2.5 us go by before one begins */
    ENGINE_ROW_BYTES = 1 << 10,  /* and more in a row */
};

struct direct {
    char *arena[PEERS_MAX];    /* each rank's, as mapped here */
    struct peers_alarm *alarm; /* [LINK_CHANNELS], pinned */
    struct peers peers[LINK_CHANNELS];
};

/* On LINK_TRANSFER the copy engine takes the large boxes and a kernel the rest, if there is any; on
 * the others a kernel takes all. Which it is may differ from rank to rank. */
struct direct_exchange {
    struct boxes_list all, rest;
    struct link_box *large;
    int n_large;
};

/* What a rank tells the others. */
struct address {
    cudaIpcMemHandle_t handle;
    int device;
};

static int map(struct link *l, const struct address *address, struct err *err)
{
    for (int r = 0; r < l->ranks; r++) {
        int can = 1, device = address[l->rank].device;
        if (r == l->rank)
            continue;
        if (address[r].device != device &&
            gpu_try(cudaDeviceCanAccessPeer(&can, device, address[r].device), "peers", err) < 0)
            return -1;
        if (!can)
            return err_run(err,
                           "link: GPU %d cannot access GPU %d (rank %d): use the nccl transport",
                           device, address[r].device, r);
        void *mapped;
        cudaError_t e =
            cudaIpcOpenMemHandle(&mapped, address[r].handle, cudaIpcMemLazyEnablePeerAccess);
        if (e != cudaSuccess)
            return err_run(err, "link: mapping rank %d's memory: %s: use the nccl transport", r,
                           cudaGetErrorString(e));
        l->direct->arena[r] = mapped;
    }
    return 0;
}

static int make_address(struct link *l, struct address *a, struct err *err)
{
    if (l->ranks > PEERS_MAX)
        return err_run(err, "link: direct goes up to %d ranks: use the nccl transport", PEERS_MAX);
    if (gpu_try(cudaGetDevice(&a->device), "the current device", err) < 0)
        return -1;
    if (l->ranks > 1 && gpu_try(cudaIpcGetMemHandle(&a->handle, l->arena),
                                "sharing memory between processes", err) < 0)
        return -1;
    return gpu_try(cudaHostAlloc((void **)&l->direct->alarm,
                                 LINK_CHANNELS * sizeof *l->direct->alarm, cudaHostAllocMapped),
                   "pinned memory", err);
}

static char *there(const struct link *l, int rank, const void *here)
{
    return l->direct->arena[rank] + ((const char *)here - l->arena);
}

static void set_peers(struct link *l)
{
    struct direct *d = l->direct;
    for (int c = 0; c < LINK_CHANNELS; c++) {
        int blocks = c == LINK_COMPUTE ? COMPUTE_BLOCKS : l->config.transfer_sms;
        d->alarm[c] = (struct peers_alarm){PEERS_GO, 0};
        d->peers[c] = (struct peers){
            .rank = l->rank,
            .ranks = l->ranks,
            .blocks = (int)min_i64(blocks, PEERS_BLOCKS_MAX),
            .alarm = &d->alarm[c],
            .timeout_ns = (int64_t)LINK_TIMEOUT_S * 1000000000,
        };
        for (int r = 0; r < l->ranks; r++)
            d->peers[c].flags[r] = (struct peers_flags *)(void *)there(l, r, l->flags) + c;
    }
}

static int direct_open(struct link *l, struct err *err)
{
    l->direct = xcalloc(1, sizeof *l->direct);
    struct address *address = xcalloc((size_t)l->ranks, sizeof *address);
    int result = link_agree(l, make_address(l, &address[l->rank], err), err);
    if (result == 0)
        result = link_gather(l, address, sizeof *address, err);
    if (result == 0) {
        l->direct->arena[l->rank] = l->arena;
        result = map(l, address, err);
    }
    if (result == 0) {
        set_peers(l);
        result = link_meet_open(l, err);
    }
    if (result == 0) {
        snprintf(l->description, sizeof l->description, "direct over CUDA IPC");
    }
    free(address);
    return result;
}

static void direct_close(struct link *l)
{
    for (int r = 0; r < l->ranks && r < PEERS_MAX; r++)
        if (r != l->rank && l->direct->arena[r] != NULL)
            cudaIpcCloseMemHandle(l->direct->arena[r]);
    link_meet_close(l);
    cudaFreeHost(l->direct->alarm);
    free(l->direct);
}

/* Rows that follow each other without a gap at both ends become one, so do blocks. */
static struct link_box folded(struct link_box b)
{
    if (b.rows == 1 || (b.from_row == b.bytes && b.to_row == b.bytes)) {
        b.bytes *= b.rows;
        b.rows = b.blocks;
        b.from_row = b.from_block;
        b.to_row = b.to_block;
        b.blocks = 1;
        if (b.rows > 1 && b.from_row == b.bytes && b.to_row == b.bytes) {
            b.bytes *= b.rows;
            b.rows = 1;
        }
    }
    return b;
}

/* The engine's copies are of rows with distances that are at least their length. */
static bool suits_engine(const struct link_box *b, int64_t copies)
{
    bool regular = b->rows == 1 || (b->from_row >= b->bytes && b->from_row <= INT32_MAX &&
                                    b->to_row >= b->bytes && b->to_row <= INT32_MAX);
    return regular && b->bytes >= ENGINE_ROW_BYTES && b->rows * b->bytes >= ENGINE_COPY_BYTES &&
           copies + b->blocks <= ENGINE_COPIES_MAX;
}

static struct boxes_box placed(const struct link_box *b)
{
    return (struct boxes_box){.target = b->peer,
                              .blocks = b->blocks,
                              .rows = b->rows,
                              .bytes = b->bytes,
                              .from = b->from,
                              .from_block = b->from_block,
                              .from_row = b->from_row,
                              .to = b->to,
                              .to_block = b->to_block,
                              .to_row = b->to_row};
}

static int direct_prepare(struct link_exchange *e, const struct link_box *out, int n_out,
                          const struct link_box *in, int n_in, struct err *err)
{
    (void)in, (void)n_in;
    struct direct_exchange *x = e->direct = xcalloc(1, sizeof *x);
    struct boxes_box *all = xcalloc((size_t)n_out + 1, sizeof *all);
    struct boxes_box *rest = xcalloc((size_t)n_out + 1, sizeof *rest);
    x->large = xcalloc((size_t)n_out + 1, sizeof *x->large);
    int n_all = 0, n_rest = 0;
    int64_t copies = 0;
    for (int i = 0; i < n_out; i++) {
        struct link_box b = folded(out[i]);
        if (link_box_bytes(&b) == 0)
            continue;
        all[n_all++] = placed(&b);
        if (suits_engine(&b, copies)) {
            x->large[x->n_large++] = b;
            copies += b.blocks;
        } else {
            rest[n_rest++] = placed(&b);
        }
    }
    int result = gpu_try(boxes_list_make(&x->all, all, n_all, e->link->stream), "a list", err);
    if (result == 0)
        result = gpu_try(boxes_list_make(&x->rest, rest, n_rest, e->link->stream), "a list", err);
    free(rest);
    free(all);
    return result;
}

static void direct_forget(struct link_exchange *e)
{
    if (e->direct == NULL)
        return;
    boxes_list_free(&e->direct->all);
    boxes_list_free(&e->direct->rest);
    free(e->direct->large);
    free(e->direct);
}

static int copy_by_engine(const struct link_box *b, const char *from, char *to, cudaStream_t stream,
                          struct err *err)
{
    for (int64_t block = 0; block < b->blocks; block++) {
        const char *source = from + b->from + block * b->from_block;
        char *at = to + b->to + block * b->to_block;
        cudaError_t e =
            b->rows == 1
                ? cudaMemcpyAsync(at, source, (size_t)b->bytes, cudaMemcpyDefault, stream)
                : cudaMemcpy2DAsync(at, (size_t)b->to_row, source, (size_t)b->from_row,
                                    (size_t)b->bytes, (size_t)b->rows, cudaMemcpyDefault, stream);
        if (gpu_try(e, "copying to a peer", err) < 0)
            return -1;
    }
    return 0;
}

/* A kernel for what is left ends when it has stored its own: it may run late, beside a layer that
 * has the SMs, but holds none up. */
static int transfer(const struct link_exchange *e, const struct boxes_copy *copy,
                    cudaStream_t stream, struct err *err)
{
    struct link *l = e->link;
    const struct direct_exchange *x = e->direct;
    const char *from = copy->from;
    char *flags[PEERS_MAX];
    for (int i = 0; i < x->n_large; i++)
        if (copy_by_engine(&x->large[i], from, copy->to[x->large[i].peer], stream, err) < 0)
            return -1;
    if (gpu_try(boxes_copy(copy, l->config.transfer_sms, stream), "a transfer", err) < 0)
        return -1;
    for (int r = 0; r < l->ranks; r++)
        flags[r] = there(l, r, l->copy_flags);
    return link_meet_run(l, flags, stream, err);
}

static int direct_run(const struct link_exchange *e, const char *from, char *to,
                      struct link_lane lane, struct err *err)
{
    const struct link *l = e->link;
    const bool transfers = lane.channel == LINK_TRANSFER;
    struct boxes_copy copy = {.list = transfers ? e->direct->rest : e->direct->all, .from = from};
    for (int r = 0; r < l->ranks; r++)
        copy.to[r] = there(l, r, to);
    if (transfers)
        return transfer(e, &copy, lane.stream, err);
    return gpu_try(boxes_push(&copy, &l->direct->peers[lane.channel], lane.stream), "an exchange",
                   err);
}

static int direct_all_reduce(struct link *l, uint16_t *x, int64_t n, struct link_lane lane,
                             struct err *err)
{
    struct all_reduce p = {
        .peers = l->direct->peers[lane.channel], .half_bytes = LINK_HALF_BYTES, .n = n};
    char *scratch = l->scratch + (size_t)2 * lane.channel * LINK_HALF_BYTES;
    for (int r = 0; r < l->ranks; r++) {
        p.x[r] = (uint16_t *)(void *)there(l, r, x);
        p.scratch[r] = there(l, r, scratch);
    }
    return gpu_try(all_reduce(&p, lane.stream), "an all-reduce", err);
}

static int direct_barrier(struct link *l, struct link_lane lane, struct err *err)
{
    struct boxes_copy nothing = {.from = NULL};
    return gpu_try(boxes_push(&nothing, &l->direct->peers[lane.channel], lane.stream), "a barrier",
                   err);
}

static int direct_check(struct link *l, struct err *err)
{
    for (int c = 0; c < LINK_CHANNELS; c++) {
        const struct peers_alarm *alarm = &l->direct->alarm[c];
        int stop = __atomic_load_n(&alarm->stop, __ATOMIC_ACQUIRE);
        if (stop == PEERS_LATE)
            return err_run(err, "link: rank %d waited %d s in vain for rank %d", l->rank,
                           LINK_TIMEOUT_S, alarm->late_rank);
        if (stop == PEERS_ABORTED)
            return err_run(err, "link: aborted");
    }
    return 0;
}

/* What spins sees it and returns. */
static void direct_abort(struct link *l)
{
    for (int c = 0; c < LINK_CHANNELS && l->direct->alarm != NULL; c++) {
        int go = PEERS_GO;
        __atomic_compare_exchange_n(&l->direct->alarm[c].stop, &go, PEERS_ABORTED, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    link_meet_abort(l);
}

const struct link_ops link_direct_ops = {
    .open = direct_open,
    .close = direct_close,
    .prepare = direct_prepare,
    .forget = direct_forget,
    .run = direct_run,
    .all_reduce = direct_all_reduce,
    .barrier = direct_barrier,
    .check = direct_check,
    .abort = direct_abort,
};
