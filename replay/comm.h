/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving bytes between the ranks of a group: the seam under the host backend. All calls are
 * collective, in the same order on every rank, and block until this rank's part is done.
 */
#ifndef REPLAY_COMM_H
#define REPLAY_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/stopwatch.h"
#include "replay/tcp.h"
#include "sim/base/err.h"

struct comm {
    int rank, ranks;
    int64_t sent_bytes, received_bytes; /* to and from other ranks, since comm_reset_counts() */
    struct stopwatch *watch;            /* or NULL: the calls below are ON_EXCHANGE */
    void (*on_wait)(void *arg,
                    bool waits); /* or NULL: told before and after they wait for others */
    void *wait_arg;
    int *peer_fd; /* one connected stream socket per rank, -1 for itself */
};

/* Exchange pieces: piece r of `send` (send_bytes[r] bytes at send[r]) arrives in recv[r], which has
 * room for recv_bytes[r]; counts must match on both sides; zero is allowed. The own piece is
 * copied. Fails when a peer is gone. */
int comm_all_to_all(struct comm *c, const void *const *send, const size_t *send_bytes,
                    void *const *recv, const size_t *recv_bytes, struct err *err);

/* Element-wise sum of n doubles over all ranks, in rank order, the same bits on every rank. */
int comm_all_reduce(struct comm *c, double *x, size_t n, struct err *err);

/* Every rank contributes bytes[rank] bytes at x + offset of its piece (pieces lie in rank order);
 * afterwards x holds all of them on every rank. */
int comm_all_gather(struct comm *c, void *x, const size_t *bytes, struct err *err);

/* Wait for every rank. Leaves the counts as they are. */
int comm_barrier(struct comm *c, struct err *err);

void comm_reset_counts(struct comm *c);

/* Fully connected socket pairs for `ranks` processes forked from one parent: fd[a * ranks + b] is
 * a's socket to b. Call before fork; comm_adopt() keeps one rank's and closes the rest, and who is
 * no rank closes them all with comm_close_pairs(). */
int comm_make_pairs(int ranks, int *fd, struct err *err);
void comm_close_pairs(int ranks, int *fd);
void comm_adopt(struct comm *c, int rank, int ranks, int *fd);

/* Ranks that something else started connect to each other: each dials those before it, which listen
 * at at[rank], and awaits those after it at its own socket, which is closed. Strangers are turned
 * away. The caller has set rank and ranks, and on_wait when it is to be told. */
int comm_meet(struct comm *c, int listen_fd, const struct tcp_address *at, struct err *err);
void comm_release(struct comm *c);

#endif
