/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two transports of a link share and what each gives. Behind the caller's arena lies a
 * reserve, symmetric as well: scratch memory for reductions (and the self-test) and flags, of
 * kernels and behind them of copies.
 */
#ifndef REPLAY_CUDA_LINK_INTERNAL_H
#define REPLAY_CUDA_LINK_INTERNAL_H

#include <stdbool.h>

#include "replay/cuda/gpu.h"
#include "replay/cuda/link.h"

/* Each channel has two halves of scratch memory, used in turns. */
#define LINK_HALF_BYTES    ((size_t)32 << 20)
#define LINK_SCRATCH_BYTES ((size_t)2 * LINK_CHANNELS * LINK_HALF_BYTES)

enum { LINK_TIMEOUT_S = 10, LINK_PROBE_S = 5 };

/* Where an exchange of one channel runs. */
struct link_lane {
    enum link_channel channel;
    cudaStream_t stream;
};

/* What a transport does; as the functions of the same name in link.h unless it says otherwise. */
struct link_ops {
    int (*open)(struct link *l, struct err *err); /* collective; the arena is there */
    void (*close)(struct link *l);                /* also after a failed or partial open */
    int (*prepare)(struct link_exchange *e, const struct link_box *out, int n_out,
                   const struct link_box *in, int n_in, struct err *err);
    void (*forget)(struct link_exchange *e); /* also after a failed prepare */
    int (*run)(const struct link_exchange *e, const char *from, char *to, struct link_lane lane,
               struct err *err);
    int (*all_reduce)(struct link *l, uint16_t *x, int64_t n, struct link_lane lane,
                      struct err *err);
    int (*barrier)(struct link *l, struct link_lane lane, struct err *err);
    int (*check)(struct link *l, struct err *err);
    void (*abort)(struct link *l);
};
extern const struct link_ops link_nccl_ops, link_direct_ops;

/* The last call of a channel, eager or within a capture. */
struct link_order {
    cudaEvent_t eager, captured;
    unsigned long long capture; /* which one `captured` belongs to; 0: none */
};

struct link {
    const struct link_ops *ops;
    struct link_config config;
    struct comm *comm;
    int rank, ranks;
    /* One allocation. flags: LINK_CHANNELS struct peers_flags; copy_flags: uint32_t [PEERS_MAX], by
     * whom they are raised. */
    char *arena, *scratch, *flags, *copy_flags;
    size_t total_bytes;
    cudaStream_t stream; /* for preparations */
    struct link_order order[LINK_CHANNELS];
    char description[64];
    double gb_per_s;
    struct nccl *nccl; /* the transport's own: one of the two */
    struct direct *direct;
    struct link_meet *meet;
};

struct link_exchange {
    struct link *link;
    int64_t sent_bytes, received_bytes;
    int64_t end; /* of what is written, from to_base, on any rank */
    struct nccl_exchange *nccl;
    struct direct_exchange *direct;
};

int64_t link_box_bytes(const struct link_box *b);

/* Every rank says whether it got here (`mine` is 0) and fails when another did not. Collective. */
int link_agree(struct link *l, int mine, struct err *err);

/* Everyone's `bytes` bytes, in rank order, at `all`, where the own are already. Collective. */
int link_gather(struct link *l, void *all, size_t bytes, struct err *err);

/* Ranks meet in the order of their streams without a kernel, which would hold SMs that a layer
 * under way wants, and on another rank's waits for: behind copies that the copy engine makes, flags
 * are copied likewise, and the stream waits for the others' ones. `flags` [ranks]: each rank's
 * copy_flags, as mapped here. Not capturable. */
int link_meet_open(struct link *l, struct err *err);
void link_meet_close(struct link *l);
int link_meet_run(struct link *l, char *const *flags, cudaStream_t stream, struct err *err);
/* From any thread: nobody is waited for any longer. */
void link_meet_abort(struct link *l);

/* The self-test, over the reserve; sets gb_per_s. Collective. */
int link_probe(struct link *l, struct err *err);

#endif
