/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as kernels work on them: Vec at a time, held in FP32, from and to memory in FP32 or BF16.
 * Vec is 8, in accesses of 16 bytes, or less where sizes or addresses do not allow that: then one
 * by one.
 */
#ifndef KERNELS_VEC_CUH
#define KERNELS_VEC_CUH

#include "kernels/grid.cuh"

#include <cuda_bf16.h>

enum { VEC_THREADS = 256, VEC_BLOCKS_PER_SM = 5 };

template <int Vec> static __device__ void vec_load(float (&x)[Vec], const float *from)
{
#pragma unroll
    for (int v = 0; v < Vec; v++)
        x[v] = from[v];
}

template <int Vec> static __device__ void vec_load(float (&x)[Vec], const uint16_t *from)
{
#pragma unroll
    for (int v = 0; v < Vec; v++)
        x[v] = __uint_as_float((uint32_t)from[v] << 16);
}

template <int Vec> static __device__ void vec_store(float *to, const float (&x)[Vec])
{
#pragma unroll
    for (int v = 0; v < Vec; v++)
        to[v] = x[v];
}

template <int Vec> static __device__ void vec_store(uint16_t *to, const float (&x)[Vec])
{
#pragma unroll
    for (int v = 0; v < Vec; v++)
        to[v] = __bfloat16_as_ushort(__float2bfloat16_rn(x[v]));
}

static inline __device__ void vec_load(float (&x)[8], const float *from)
{
    const float4 a = reinterpret_cast<const float4 *>(from)[0];
    const float4 b = reinterpret_cast<const float4 *>(from)[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}

static inline __device__ void vec_load(float (&x)[8], const uint16_t *from)
{
    const uint4 v = *reinterpret_cast<const uint4 *>(from);
    const uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x[2 * k] = __uint_as_float(pairs[k] << 16);
        x[2 * k + 1] = __uint_as_float(pairs[k] & 0xffff0000u);
    }
}

static inline __device__ void vec_store(float *to, const float (&x)[8])
{
    reinterpret_cast<float4 *>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

static inline __device__ void vec_store(uint16_t *to, const float (&x)[8])
{
    __nv_bfloat162 pairs[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        pairs[k] = __floats2bfloat162_rn(x[2 * k], x[2 * k + 1]);
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(pairs);
}

/* Whether 8 at a time will do. `bits` is the or of every address, in bytes; `numbers` that of every
 * count and distance. */
static inline bool vec_is_wide(uintptr_t bits, int64_t numbers)
{
    return bits % 16 == 0 && numbers % 8 == 0;
}

/* A kernel in which every vector is by itself is a struct `Each` of
 *     template <int Vec> __device__ void at(int64_t i) const;   numbers [i * Vec, (i + 1) * Vec)
 */
template <int Vec, typename Each>
static __global__ void __launch_bounds__(VEC_THREADS, VEC_BLOCKS_PER_SM)
    vec_each(const __grid_constant__ Each each, int64_t vecs)
{
    const int64_t threads = (int64_t)gridDim.x * VEC_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * VEC_THREADS + threadIdx.x; i < vecs; i += threads)
        each.template at<Vec>(i);
}

template <typename Each>
static cudaError_t vec_launch(const Each &each, int64_t numbers, bool is_wide, cudaStream_t stream)
{
    if (numbers == 0)
        return cudaSuccess;
    const int64_t vecs = is_wide ? numbers / 8 : numbers;
    unsigned grid;
    cudaError_t e = grid_fill((vecs + VEC_THREADS - 1) / VEC_THREADS, VEC_BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    if (is_wide)
        vec_each<8><<<grid, VEC_THREADS, 0, stream>>>(each, vecs);
    else
        vec_each<1><<<grid, VEC_THREADS, 0, stream>>>(each, vecs);
    return cudaGetLastError();
}

#endif
