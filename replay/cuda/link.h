/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving data between the GPUs of a group. Two transports behind one seam, never mixed in one run:
 * `nccl` packs, sends and receives in groups, and unpacks; `direct` stores into the other ranks'
 * memory, by our kernel or by the copy engine, and raises flags there. Calls are collective, in the
 * same order on every rank, unless they say otherwise; those that take a stream only enqueue.
 */
#ifndef REPLAY_CUDA_LINK_H
#define REPLAY_CUDA_LINK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "replay/box.h"
#include "replay/comm.h"

enum link_transport { LINK_NCCL, LINK_DIRECT };
extern const char *const link_transport_names[]; /* NULL-terminated */

/* Each has its own communicator or flags, so that the two may be busy at once. On one of them
 * calls follow each other, whatever streams they are on (events order them); those captured in a
 * graph do so within it, and whoever launches graphs keeps them apart from the channel's others. */
enum link_channel {
    LINK_COMPUTE,
    LINK_BESIDE,   /* HOP-B's exchanges beside attention */
    LINK_TRANSFER, /* a switch's, beside a step */
    LINK_CHANNELS
};

struct link;

struct link_config {
    enum link_transport transport;
    size_t arena_bytes; /* of symmetric memory, the same on every rank */
    int transfer_sms;   /* that the kernels of the others than LINK_COMPUTE may take */
};

/* The current device is this rank's. Host-side agreement (ids, handles) goes over `comm`, borrowed.
 * The arena is filled with 0xFF. Fails when memory does not suffice or when the self-test does:
 * peer access, a pattern written to each peer and verified by its owner, flags in both directions
 * with a timeout, both within 5 s. */
int link_open(struct link **out, const struct link_config *config, struct comm *comm,
              struct err *err);
void link_close(struct link *l);

void *link_arena(const struct link *l);

/* What carries the data, for result files: "nccl 2.28.9", "direct over CUDA IPC", and what the
 * self-test measured, GB/s one way to the next rank (0 for a rank alone). */
const char *link_description(const struct link *l);
double link_gb_per_s(const struct link *l);

/* An exchange made ready: what this rank sends and receives. Boxes may be empty; a box that one
 * rank sends to another is in both ranks' lists, equal but for `peer`, and the boxes of one pair
 * have the same order on both sides. Not collective. Lives until freed, graphs that hold it too. */
struct link_exchange;

struct link_exchange *link_exchange_new(struct link *l, const struct link_box *out, int n_out,
                                        const struct link_box *in, int n_in, struct err *err);
void link_exchange_free(struct link_exchange *e);
int64_t link_exchange_sent_bytes(const struct link_exchange *e);     /* to others */
int64_t link_exchange_received_bytes(const struct link_exchange *e); /* from others */

/* from_base: device memory of this rank; to_base: in the arena, at the same offset on every rank;
 * both multiples of 16. A box of `out` whose peer is this rank is a local copy; `in` need not have
 * it. What was received is there for what follows on the stream. A receiver must have done with
 * what a box overwrites before it enters any earlier exchange of this channel. (Between two uses of
 * one array there always is one that every rank enters.) `direct` uses the copy engine on
 * LINK_TRANSFER when there are few, large boxes. Graph-capturable but on LINK_TRANSFER. */
int link_run(struct link *l, const struct link_exchange *e, const void *from_base, void *to_base,
             enum link_channel channel, cudaStream_t stream, struct err *err);

/* x [n] BF16 in the arena becomes the sum over all ranks, the same bits everywhere; n even, x a
 * multiple of 4. */
int link_all_reduce(struct link *l, uint16_t *x, int64_t n, enum link_channel channel,
                    cudaStream_t stream, struct err *err);

/* All ranks' streams meet here. */
int link_barrier(struct link *l, enum link_channel channel, cudaStream_t stream, struct err *err);

/* What went wrong since, if anything did, without waiting: NCCL's asynchronous errors; with
 * `direct` that another rank let this one wait for 10 s, after which nothing waits any more. */
int link_check(struct link *l, struct err *err);

/* Until the stream has done all (`what`, for messages), with an eye on what goes wrong meanwhile: a
 * dead peer's data never comes. */
int link_wait(struct link *l, cudaStream_t stream, const char *what, struct err *err);

/* From any thread, to let a stuck rank die: abort what is in flight. The process then exits. */
void link_abort(struct link *l);

#endif
