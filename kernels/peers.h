/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of one host, each of which has mapped the others' memory, and the flags by which their
 * kernels meet: block b of a kernel raises its flag at, and waits for, block b of the others. Hence
 * all kernels that use one set of flags follow each other, in the same order on every rank, and
 * have the same number of blocks.
 */
#ifndef KERNELS_PEERS_H
#define KERNELS_PEERS_H

#include <stdint.h>

enum { PEERS_MAX = 16, PEERS_BLOCKS_MAX = 128 };

/* In every rank's own memory; zero at first. */
struct peers_flags {
    uint64_t raised_by[PEERS_MAX][PEERS_BLOCKS_MAX]; /* how often that rank's block has come */
    uint64_t met[PEERS_BLOCKS_MAX];                  /* how often this rank's block has */
};

/* In pinned host memory; zero at first. Once `stop` is set, by the host or by a block that has
 * waited too long, no kernel waits any more, and what it leaves is worth nothing. */
enum peers_stop { PEERS_GO, PEERS_ABORTED, PEERS_LATE };
struct peers_alarm {
    int stop;
    int late_rank; /* with PEERS_LATE: who did not come */
};

struct peers {
    int rank, ranks, blocks;
    struct peers_flags *flags[PEERS_MAX]; /* each rank's, as mapped here */
    struct peers_alarm *alarm;
    int64_t timeout_ns;
};

#endif
