/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pick.h"

enum { THREADS = 256 };

static __global__ void pick(uint32_t *to, const uint32_t *from, const int32_t *index, int64_t words)
{
    const int64_t i = blockIdx.x, row = index[i];
    for (int64_t w = threadIdx.x; row >= 0 && w < words; w += THREADS)
        to[i * words + w] = from[row * words + w];
}

cudaError_t pick_rows(void *to, const void *from, const int32_t *index, int n, int64_t bytes,
                      cudaStream_t stream)
{
    if (n < 0 || bytes < 0 || bytes % 4 != 0)
        return cudaErrorInvalidValue;
    if (n == 0 || bytes == 0)
        return cudaSuccess;
    pick<<<(unsigned)n, THREADS, 0, stream>>>(
        static_cast<uint32_t *>(to), static_cast<const uint32_t *>(from), index, bytes / 4);
    return cudaGetLastError();
}
