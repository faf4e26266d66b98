/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of many short runs of BF16: the loop behind every kernel that only moves rows. Such a
 * kernel is a struct `Runs` of
 *     int64_t n;            runs
 *     int64_t bytes;        in each
 *     int64_t split_bytes;  so many of them come from span.from, the others from span.rest
 *     __device__ struct span at(int64_t run) const;
 * Warps stride over chunks of runs, so neither a few long runs nor many short ones leave SMs idle.
 */
#ifndef KERNELS_RUNS_CUH
#define KERNELS_RUNS_CUH

#include "kernels/grid.cuh"

struct span {
    void *to; /* NULL: leave this run out */
    const void *from, *rest;
};

enum {
    RUNS_THREADS = 256,
    RUNS_BLOCKS_PER_SM = 6,
    RUNS_WARPS = RUNS_THREADS / 32,
    RUNS_LOADS = 4, /* in flight per lane */
    RUNS_CHUNK = 32 * RUNS_LOADS
};

static inline __host__ __device__ int64_t runs_chunks(int64_t words)
{
    return (words + RUNS_CHUNK - 1) / RUNS_CHUNK;
}

/* The lane's words of one chunk: `word`, then every 32nd. */
template <typename Word>
static __device__ void runs_copy_chunk(struct span s, int64_t word, int64_t split, int64_t words)
{
    const Word *from = static_cast<const Word *>(s.from);
    const Word *rest = static_cast<const Word *>(s.rest);
    Word *to = static_cast<Word *>(s.to);
    Word held[RUNS_LOADS];
#pragma unroll
    for (int k = 0; k < RUNS_LOADS; k++) {
        const int64_t w = word + 32 * k;
        if (w < words)
            held[k] = *(w < split ? from + w : rest + (w - split));
    }
#pragma unroll
    for (int k = 0; k < RUNS_LOADS; k++) {
        const int64_t w = word + 32 * k;
        if (w < words)
            to[w] = held[k];
    }
}

template <typename Word, typename Runs>
static __global__ void __launch_bounds__(RUNS_THREADS, RUNS_BLOCKS_PER_SM)
    runs_copy(const __grid_constant__ Runs runs)
{
    const int64_t words = runs.bytes / (int64_t)sizeof(Word);
    const int64_t split = runs.split_bytes / (int64_t)sizeof(Word);
    const int64_t chunks = runs_chunks(words);
    const int64_t warps = (int64_t)gridDim.x * RUNS_WARPS;
    const int64_t warp = (int64_t)blockIdx.x * RUNS_WARPS + threadIdx.x / 32;
    for (int64_t i = warp; i < runs.n * chunks; i += warps) {
        const int64_t run = i / chunks;
        const struct span s = runs.at(run);
        if (s.to)
            runs_copy_chunk<Word>(s, (i - run * chunks) * RUNS_CHUNK + threadIdx.x % 32, split,
                                  words);
    }
}

/* Launch. `bits` is the or of every address and distance that at() builds on, and of split_bytes:
 * in words of 16 bytes when all are multiples of 16, else of 2. */
template <typename Runs>
static cudaError_t runs_launch(const Runs &runs, uint64_t bits, cudaStream_t stream)
{
    if (runs.n == 0 || runs.bytes == 0)
        return cudaSuccess;
    const bool wide = (bits | (uint64_t)runs.bytes) % 16 == 0;
    const int64_t chunks = runs.n * runs_chunks(runs.bytes / (wide ? 16 : 2));
    unsigned grid;
    cudaError_t e = grid_fill((chunks + RUNS_WARPS - 1) / RUNS_WARPS, RUNS_BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    if (wide)
        runs_copy<uint4><<<grid, RUNS_THREADS, 0, stream>>>(runs);
    else
        runs_copy<uint16_t><<<grid, RUNS_THREADS, 0, stream>>>(runs);
    return cudaGetLastError();
}

/* Which of the n half-open intervals with these bounds [n + 1] holds x >= bounds[0]; n when x is
 * beyond the last. Empty intervals hold nothing. */
static inline __device__ int runs_interval(const int64_t *bounds, int n, int64_t x)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (bounds[middle + 1] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
