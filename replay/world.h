/* SPDX-License-Identifier: Apache-2.0
 *
 * Who this process is among the ranks of a run, and where they meet. A launcher (torchrun, mpirun,
 * srun or whoever sets what they set) says it in the environment; without one, this process forks
 * the ranks itself.
 */
#ifndef REPLAY_WORLD_H
#define REPLAY_WORLD_H

#include <stdbool.h>

#include "sim/base/err.h"

struct world {
    bool launched;    /* as one of many; else the ranks are yet to be forked */
    int rank, ranks;  /* rank 0's process also coordinates; so does who forks */
    int local_rank;   /* among the ranks of this host; -1: not told */
    const char *host; /* of the coordinator; borrowed from the environment */
    int port;         /* of the coordinator; 0: any free one, when not launched */
};

/* Read the environment for a run of so many ranks; `port` is what the user asked for, 0 for
 * nothing. Fails, naming the variable, when it is set to nonsense, for other than `ranks` ranks, by
 * two launchers that disagree, or leaves open where to meet. */
int world_read(struct world *w, int ranks, int port, struct err *err);

#endif
