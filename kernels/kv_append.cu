/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grid.cuh"
#include "kernels/kv_append.h"
#include "kernels/kv_pages.h"

enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS_PER_SM = 6, LOADS = 4 /* a lane, in flight */ };

/* NULL: not this rank's. */
static __device__ uint16_t *place(const struct kv_append &p, int64_t row)
{
    const int64_t position = p.position[row];
    if (position < 0 || kv_pages_shard(position, p.shards) != p.shard)
        return nullptr;
    const int32_t *table = p.table + p.request[row] * p.table_pages;
    return p.pages + kv_pages_row(table, kv_pages_slot(position, p.shards)) * p.width;
}

/* By one warp. */
template <typename Word> static __device__ void copy(Word *to, const Word *from, int words)
{
    for (int first = threadIdx.x % 32; first < words; first += 32 * LOADS) {
        Word held[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            if (first + 32 * k < words)
                held[k] = from[first + 32 * k];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            if (first + 32 * k < words)
                to[first + 32 * k] = held[k];
    }
}

template <typename Word>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    append(const __grid_constant__ struct kv_append p)
{
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    for (int64_t row = warp; row < p.rows; row += warps) {
        uint16_t *to = place(p, row);
        if (to)
            copy(reinterpret_cast<Word *>(to),
                 reinterpret_cast<const Word *>(p.from + row * p.width),
                 p.width * 2 / (int)sizeof(Word));
    }
}

cudaError_t kv_append(const struct kv_append *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->table_pages < 0 || p->width < 0 || p->shard < 0 || p->shard >= p->shards)
        return cudaErrorInvalidValue;
    if (p->rows == 0)
        return cudaSuccess;
    unsigned grid;
    cudaError_t e = grid_fill((p->rows + WARPS - 1) / WARPS, BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    if (((uintptr_t)p->from | (uintptr_t)p->pages) % 16 == 0 && p->width % 8 == 0)
        append<uint4><<<grid, THREADS, 0, stream>>>(*p);
    else
        append<uint16_t><<<grid, THREADS, 0, stream>>>(*p);
    return cudaGetLastError();
}
