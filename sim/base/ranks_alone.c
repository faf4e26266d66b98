/* SPDX-License-Identifier: Apache-2.0
 *
 * Without MPI there is one process.
 */
#include <assert.h>
#include <stdlib.h>

#include "sim/base/ranks.h"

int ranks_begin(struct ranks *r, struct err *err)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    size = size != NULL ? size : getenv("PMI_SIZE");
    if (size != NULL && atoi(size) > 1)
        return err_set(err,
                       "started as %s processes, but built without MPI: install mpicc "
                       "(libopenmpi-dev) and make it anew",
                       size);
    *r = (struct ranks){.rank = 0, .n = 1};
    return 0;
}

void ranks_end(const struct ranks *r)
{
    (void)r;
}

int ranks_first_failed(const struct ranks *r, bool failed)
{
    (void)r;
    return failed ? 0 : -1;
}

void ranks_send(int to, const void *message, size_t size)
{
    (void)to, (void)message, (void)size;
    assert(false);
}

void ranks_receive(int from, void *message, size_t size)
{
    (void)from, (void)message, (void)size;
    assert(false);
}

bool ranks_poll(int *from, void *message, size_t size)
{
    (void)from, (void)message, (void)size;
    return false;
}
