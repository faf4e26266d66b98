/* SPDX-License-Identifier: Apache-2.0 */
#include <cudaTypedefs.h>
#include <stdlib.h>

#include "kernels/peers.h"
#include "replay/cuda/link_internal.h"
#include "sim/base/mem.h"

struct link_meet {
    PFN_cuStreamWriteValue32_v11070 write;
    PFN_cuStreamWaitValue32_v11070 wait;
    uint32_t *said; /* on the device: what the others get */
    uint32_t meetings;
    int device;
};

static int find(const char *name, void **function, struct err *err)
{
    enum { CUDA_11_7 = 11070 };
    enum cudaDriverEntryPointQueryResult found;
    if (gpu_try(
            cudaGetDriverEntryPointByVersion(name, function, CUDA_11_7, cudaEnableDefault, &found),
            name, err) < 0)
        return -1;
    return found == cudaDriverEntryPointSuccess
               ? 0
               : err_run(err, "link: the driver has no %s: use the nccl transport", name);
}

int link_meet_open(struct link *l, struct err *err)
{
    struct link_meet *m = l->meet = xcalloc(1, sizeof *m);
    if (gpu_try(cudaGetDevice(&m->device), "the current device", err) < 0 ||
        find("cuStreamWriteValue32", (void **)&m->write, err) < 0 ||
        find("cuStreamWaitValue32", (void **)&m->wait, err) < 0 ||
        gpu_try(cudaMalloc((void **)&m->said, sizeof *m->said), "a flag", err) < 0)
        return -1;
    return 0;
}

void link_meet_close(struct link *l)
{
    if (l->meet != NULL)
        cudaFree(l->meet->said);
    free(l->meet);
}

static int try_driver(CUresult r, const char *what, struct err *err)
{
    return r == CUDA_SUCCESS ? 0 : err_run(err, "link: %s: CUDA driver error %d", what, (int)r);
}

/* The value is written here and copied from here like any data, so that it comes behind them. */
int link_meet_run(struct link *l, char *const *flags, cudaStream_t stream, struct err *err)
{
    struct link_meet *m = l->meet;
    uint32_t now = ++m->meetings;
    if (try_driver(m->write(stream, (CUdeviceptr)m->said, now, 0), "saying so", err) < 0)
        return -1;
    for (int r = 0; r < l->ranks; r++) {
        uint32_t *theirs = (uint32_t *)(void *)flags[r] + l->rank;
        if (r != l->rank &&
            gpu_try(cudaMemcpyAsync(theirs, m->said, sizeof now, cudaMemcpyDefault, stream),
                    "raising a flag", err) < 0)
            return -1;
    }
    for (int r = 0; r < l->ranks; r++) {
        uint32_t *mine = (uint32_t *)(void *)flags[l->rank] + r;
        if (r != l->rank &&
            try_driver(m->wait(stream, (CUdeviceptr)mine, now, CU_STREAM_WAIT_VALUE_GEQ),
                       "waiting for a flag", err) < 0)
            return -1;
    }
    return 0;
}

/* As if everybody had come: what waits goes on, and what it leaves is worth nothing. */
void link_meet_abort(struct link *l)
{
    struct link_meet *m = l->meet;
    if (m == NULL || m->write == NULL || cudaSetDevice(m->device) != cudaSuccess)
        return;
    for (int r = 0; r < l->ranks; r++) {
        uint32_t *mine = (uint32_t *)(void *)l->copy_flags + r;
        m->write(l->stream, (CUdeviceptr)mine, m->meetings, 0);
    }
}
