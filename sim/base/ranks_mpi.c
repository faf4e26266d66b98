/* SPDX-License-Identifier: Apache-2.0
 *
 * Over MPI, which is begun only when a launcher's environment is there: a plain run must not pay
 * for it.
 */
#include <mpi.h>
#include <stdlib.h>

#include "sim/base/ranks.h"

enum { TAG = 1 };

static bool is_launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                            "PMI_SIZE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]) != NULL)
            return true;
    return false;
}

int ranks_begin(struct ranks *r, struct err *err)
{
    int level = MPI_THREAD_SINGLE;
    *r = (struct ranks){.rank = 0, .n = 1};
    if (!is_launched())
        return 0;
    /* Workers are threads, but only the main one calls MPI. */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_FUNNELED)
        return err_run(err, "MPI does not start, or knows no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r->n);
    return 0;
}

void ranks_end(const struct ranks *r)
{
    int begun = 0;
    (void)r;
    MPI_Initialized(&begun);
    if (begun)
        MPI_Finalize();
}

int ranks_first_failed(const struct ranks *r, bool failed)
{
    int mine = failed ? r->rank : r->n, first = mine;
    if (r->n > 1)
        MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return first < r->n ? first : -1;
}

void ranks_send(int to, const void *message, size_t size)
{
    MPI_Send(message, (int)size, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

void ranks_receive(int from, void *message, size_t size)
{
    MPI_Recv(message, (int)size, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

bool ranks_poll(int *from, void *message, size_t size)
{
    int there = 0;
    MPI_Status status;
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status);
    if (!there)
        return false;
    *from = status.MPI_SOURCE;
    ranks_receive(*from, message, size);
    return true;
}
