/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of one command, when mpirun or srun started several: rank 0 leads and alone speaks.
 * ranks_mpi.c is compiled where there is mpicc, ranks_alone.c elsewhere.
 */
#ifndef SIM_BASE_RANKS_H
#define SIM_BASE_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/err.h"

struct ranks {
    int rank, n;
};

/* Started by itself: rank 0 of 1, and MPI is not touched. Fails when a launcher started several
 * processes and this program was built without MPI. */
int ranks_begin(struct ranks *r, struct err *err);
void ranks_end(const struct ranks *r);

/* The lowest rank for which something failed, told to all; -1: none. All must call it. */
int ranks_first_failed(const struct ranks *r, bool failed);

/* Whole messages between two ranks. */
void ranks_send(int to, const void *message, size_t size);
void ranks_receive(int from, void *message, size_t size);
/* Takes a message that is there, whoever sent it; false: none is. */
bool ranks_poll(int *from, void *message, size_t size);

#endif
