/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids for kernels whose blocks stride over the work: no more blocks than are resident at once, so
 * that all of them end together.
 */
#ifndef KERNELS_GRID_CUH
#define KERNELS_GRID_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* The smaller of `blocks` and `per_sm` for every SM of the current device. */
static inline cudaError_t grid_fill(int64_t blocks, int per_sm, unsigned *grid)
{
    int device, sms;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        *grid = (unsigned)(blocks < (int64_t)sms * per_sm ? blocks : (int64_t)sms * per_sm);
    return e;
}

#endif
