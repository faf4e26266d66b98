/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: what one rank sends another travels as one piece, from where it lies when it lies in one
 * piece, else packed; likewise at the receiver. A communicator for each channel, so that a transfer
 * may run beside a step. No symmetric windows: 2.28's symmetric kernels may read stale data in
 * graphs.
 */
#include "replay/cuda/link_internal.h"

#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>

#include "kernels/boxes.h"
#include "sim/base/mem.h"

enum { PACK_BLOCKS = 264, PIECE_ALIGN_BYTES = 256, TOKENS = 2 /* a barrier's sum */ };

/* Memory for packed pieces. Graphs may hold its address, so a larger one is added to it. */
struct staging {
    struct staging *smaller;
    size_t bytes;
    char *of[LINK_CHANNELS];
};

struct nccl {
    ncclComm_t comm[LINK_CHANNELS];
    uint16_t *tokens; /* [LINK_CHANNELS][TOKENS] */
    struct staging *staging;
    bool aborted;
};

/* All that goes to, or comes from, one rank. */
struct piece {
    int64_t at, bytes;
    bool is_packed; /* `at` counts from the staging memory, else from the caller's base */
};

struct nccl_exchange {
    struct piece *out, *in; /* [ranks] */
    struct boxes_list pack, unpack;
    const struct staging *staging;
};

static int nccl_try(ncclResult_t r, const char *what, struct err *err)
{
    if (r == ncclSuccess)
        return 0;
    return err_run(err, "NCCL: %s: %s (%s)", what, ncclGetErrorString(r), ncclGetLastError(NULL));
}

static int make_id(struct link *l, ncclUniqueId *id, struct err *err)
{
    /* Multicast can put a host's GPUs out of service. No NCCL_LAUNCH_ORDER_IMPLICIT: driver 580
     * crashes in cudaGraphUpload of what is captured with it; all channels' kernels find room on
     * the SMs at once, in whatever order they start. */
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    return l->rank == 0 ? nccl_try(ncclGetUniqueId(id), "an id", err) : 0;
}

static int join(struct link *l, enum link_channel channel, struct err *err)
{
    ncclUniqueId *id = xcalloc((size_t)l->ranks, sizeof *id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int result = link_agree(l, make_id(l, &id[l->rank], err), err);
    if (result == 0)
        result = link_gather(l, id, sizeof *id, err);
    if (channel != LINK_COMPUTE) {
        config.maxCTAs = l->config.transfer_sms;
        config.cgaClusterSize = 0; /* clusters wait for SMs of one GPC */
    }
    if (result == 0)
        result = nccl_try(
            ncclCommInitRankConfig(&l->nccl->comm[channel], l->ranks, id[0], l->rank, &config),
            "joining the ranks", err);
    free(id);
    return result;
}

static int nccl_open(struct link *l, struct err *err)
{
    int version = 0;
    l->nccl = xcalloc(1, sizeof *l->nccl);
    for (int c = 0; c < LINK_CHANNELS; c++)
        if (link_agree(l, join(l, (enum link_channel)c, err), err) < 0)
            return -1;
    size_t bytes = (size_t)LINK_CHANNELS * TOKENS * sizeof *l->nccl->tokens;
    if (gpu_try(cudaMalloc((void **)&l->nccl->tokens, bytes), "memory", err) < 0 ||
        gpu_try(cudaMemset(l->nccl->tokens, 0, bytes), "memory", err) < 0 ||
        nccl_try(ncclGetVersion(&version), "its version", err) < 0)
        return -1;
    snprintf(l->description, sizeof l->description, "nccl %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    return 0;
}

static void nccl_close(struct link *l)
{
    for (int c = 0; c < LINK_CHANNELS; c++)
        if (l->nccl->comm[c] != NULL && !l->nccl->aborted)
            ncclCommDestroy(l->nccl->comm[c]);
    cudaFree(l->nccl->tokens);
    for (struct staging *s = l->nccl->staging, *smaller; s != NULL; s = smaller) {
        smaller = s->smaller;
        cudaFree(s->of[0]);
        free(s);
    }
    free(l->nccl);
}

/* The largest there is, made to hold `bytes`. */
static int reserve(struct link *l, size_t bytes, struct err *err)
{
    struct staging *largest = l->nccl->staging;
    if (bytes == 0 || (largest != NULL && largest->bytes >= bytes))
        return 0;
    struct staging *s = xcalloc(1, sizeof *s);
    s->bytes = largest != NULL && 2 * largest->bytes > bytes ? 2 * largest->bytes : bytes;
    if (cudaMalloc((void **)&s->of[0], LINK_CHANNELS * s->bytes) != cudaSuccess) {
        err_run(err, "link: no %.1f GB of GPU memory left to pack what is sent",
                1e-9 * LINK_CHANNELS * (double)s->bytes);
        free(s);
        return -1;
    }
    for (int c = 1; c < LINK_CHANNELS; c++)
        s->of[c] = s->of[0] + (size_t)c * s->bytes;
    s->smaller = largest;
    l->nccl->staging = s;
    return 0;
}

/* One end of a box. */
struct end {
    int64_t at, block, row;
};

static struct end end_of(const struct link_box *b, bool sender)
{
    return sender ? (struct end){b->from, b->from_block, b->from_row}
                  : (struct end){b->to, b->to_block, b->to_row};
}

static bool is_contiguous(const struct link_box *b, struct end e)
{
    return (b->rows == 1 || e.row == b->bytes) && (b->blocks == 1 || e.block == b->rows * b->bytes);
}

static struct piece piece_of(const struct link_box *box, int n, int peer, bool sender)
{
    struct piece p = {0};
    for (int i = 0; i < n; i++) {
        const struct link_box *b = &box[i];
        struct end e = end_of(b, sender);
        if (b->peer != peer || link_box_bytes(b) == 0)
            continue;
        p.is_packed |= !is_contiguous(b, e) || (p.bytes > 0 && e.at != p.at + p.bytes);
        if (p.bytes == 0)
            p.at = e.at;
        p.bytes += link_box_bytes(b);
    }
    return p;
}

enum { TO_STAGING, TO_ARENA };

/* The box between its place and `at` of the staging memory. */
static struct boxes_box packed_box(const struct link_box *b, bool sender, int64_t at)
{
    struct end e = end_of(b, sender);
    int64_t block = b->rows * b->bytes, row = b->bytes;
    struct boxes_box p = {.blocks = b->blocks, .rows = b->rows, .bytes = b->bytes};
    p.target = sender ? TO_STAGING : TO_ARENA;
    p.from = sender ? e.at : at;
    p.from_block = sender ? e.block : block;
    p.from_row = sender ? e.row : row;
    p.to = sender ? at : e.at;
    p.to_block = sender ? block : e.block;
    p.to_row = sender ? row : e.row;
    return p;
}

static struct boxes_box local_box(const struct link_box *b)
{
    return (struct boxes_box){.target = TO_ARENA,
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

/* Give the packed pieces their places, from *end on, and enter their boxes. */
static int place_pieces(struct link *l, struct piece *piece, const struct link_box *box, int n,
                        bool sender, int64_t *end, struct boxes_box *list)
{
    int n_list = 0;
    for (int r = 0; r < l->ranks; r++) {
        struct piece *p = &piece[r];
        if (r != l->rank)
            *p = piece_of(box, n, r, sender);
        if (!p->is_packed)
            continue;
        p->at = *end;
        *end += (p->bytes + PIECE_ALIGN_BYTES - 1) / PIECE_ALIGN_BYTES * PIECE_ALIGN_BYTES;
        int64_t at = p->at;
        for (int i = 0; i < n; i++)
            if (box[i].peer == r) {
                list[n_list++] = packed_box(&box[i], sender, at);
                at += link_box_bytes(&box[i]);
            }
    }
    return n_list;
}

static int nccl_prepare(struct link_exchange *e, const struct link_box *out, int n_out,
                        const struct link_box *in, int n_in, struct err *err)
{
    struct link *l = e->link;
    struct nccl_exchange *x = e->nccl = xcalloc(1, sizeof *x);
    x->out = xcalloc((size_t)l->ranks, sizeof *x->out);
    x->in = xcalloc((size_t)l->ranks, sizeof *x->in);
    struct boxes_box *pack = xcalloc((size_t)n_out + 1, sizeof *pack);
    struct boxes_box *unpack = xcalloc((size_t)n_in + 1, sizeof *unpack);
    int64_t end = 0;
    int n_pack = place_pieces(l, x->out, out, n_out, true, &end, pack);
    int n_unpack = place_pieces(l, x->in, in, n_in, false, &end, unpack);
    for (int i = 0; i < n_out; i++)
        if (out[i].peer == l->rank)
            pack[n_pack++] = local_box(&out[i]);
    int result = reserve(l, (size_t)end, err);
    x->staging = l->nccl->staging;
    if (result == 0)
        result = gpu_try(boxes_list_make(&x->pack, pack, n_pack, l->stream), "a list", err);
    if (result == 0)
        result = gpu_try(boxes_list_make(&x->unpack, unpack, n_unpack, l->stream), "a list", err);
    free(unpack);
    free(pack);
    return result;
}

static void nccl_forget(struct link_exchange *e)
{
    if (e->nccl == NULL)
        return;
    boxes_list_free(&e->nccl->pack);
    boxes_list_free(&e->nccl->unpack);
    free(e->nccl->out);
    free(e->nccl->in);
    free(e->nccl);
}

/* Both ends leave out a pair that has nothing to say, since both know. */
static int swap(const struct link_exchange *e, const char *from, char *to, char *staging,
                struct link_lane lane, struct err *err)
{
    const struct nccl_exchange *x = e->nccl;
    ncclComm_t comm = e->link->nccl->comm[lane.channel];
    ncclResult_t r = ncclGroupStart();
    for (int i = 0; r == ncclSuccess && i < e->link->ranks; i++) {
        const struct piece *out = &x->out[i], *in = &x->in[i];
        if (out->bytes > 0)
            r = ncclSend((out->is_packed ? staging : from) + out->at, (size_t)out->bytes, ncclInt8,
                         i, comm, lane.stream);
        if (r == ncclSuccess && in->bytes > 0)
            r = ncclRecv((in->is_packed ? staging : to) + in->at, (size_t)in->bytes, ncclInt8, i,
                         comm, lane.stream);
    }
    ncclResult_t ended = ncclGroupEnd();
    return nccl_try(r != ncclSuccess ? r : ended, "an exchange", err);
}

static int nccl_run(const struct link_exchange *e, const char *from, char *to,
                    struct link_lane lane, struct err *err)
{
    const struct nccl_exchange *x = e->nccl;
    char *staging = x->staging != NULL ? x->staging->of[lane.channel] : NULL;
    int blocks = lane.channel == LINK_COMPUTE ? PACK_BLOCKS : e->link->config.transfer_sms;
    struct boxes_copy pack = {.list = x->pack, .from = from, .to = {staging, to}};
    struct boxes_copy unpack = {.list = x->unpack, .from = staging, .to = {staging, to}};
    if (gpu_try(boxes_copy(&pack, blocks, lane.stream), "packing", err) < 0 ||
        swap(e, from, to, staging, lane, err) < 0)
        return -1;
    return gpu_try(boxes_copy(&unpack, blocks, lane.stream), "unpacking", err);
}

static int nccl_all_reduce(struct link *l, uint16_t *x, int64_t n, struct link_lane lane,
                           struct err *err)
{
    return nccl_try(ncclAllReduce(x, x, (size_t)n, ncclBfloat16, ncclSum,
                                  l->nccl->comm[lane.channel], lane.stream),
                    "an all-reduce", err);
}

static int nccl_barrier(struct link *l, struct link_lane lane, struct err *err)
{
    return nccl_all_reduce(l, l->nccl->tokens + (size_t)TOKENS * lane.channel, TOKENS, lane, err);
}

static int nccl_check(struct link *l, struct err *err)
{
    if (__atomic_load_n(&l->nccl->aborted, __ATOMIC_ACQUIRE))
        return err_run(err, "link: aborted");
    for (int c = 0; c < LINK_CHANNELS; c++) {
        ncclResult_t now = ncclSuccess;
        if (nccl_try(ncclCommGetAsyncError(l->nccl->comm[c], &now), "asking for errors", err) < 0)
            return -1;
        if (now != ncclInProgress && nccl_try(now, "behind the scenes", err) < 0)
            return -1;
    }
    return 0;
}

static void nccl_abort(struct link *l)
{
    if (__atomic_exchange_n(&l->nccl->aborted, true, __ATOMIC_ACQ_REL))
        return;
    for (int c = 0; c < LINK_CHANNELS; c++)
        if (l->nccl->comm[c] != NULL)
            ncclCommAbort(l->nccl->comm[c]);
}

const struct link_ops link_nccl_ops = {
    .open = nccl_open,
    .close = nccl_close,
    .prepare = nccl_prepare,
    .forget = nccl_forget,
    .run = nccl_run,
    .all_reduce = nccl_all_reduce,
    .barrier = nccl_barrier,
    .check = nccl_check,
    .abort = nccl_abort,
};
