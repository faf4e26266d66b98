/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grid.cuh"
#include "kernels/lse_combine.h"

#include <cuda_bf16.h>

enum { THREADS = 256, BLOCKS_PER_SM = 4, LOADS = 4 /* in flight per thread */ };

/* `Vec` numbers, 8 (16-byte accesses) or 1. */
static __device__ void load(float (&x)[8], const float *from)
{
    const float4 a = reinterpret_cast<const float4 *>(from)[0];
    const float4 b = reinterpret_cast<const float4 *>(from)[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}

static __device__ void load(float (&x)[8], const __nv_bfloat16 *from)
{
    const uint4 v = *reinterpret_cast<const uint4 *>(from);
    const unsigned pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x[2 * k] = __uint_as_float(pairs[k] << 16);
        x[2 * k + 1] = __uint_as_float(pairs[k] & 0xffff0000u);
    }
}

template <typename In> static __device__ void load(float (&x)[1], const In *from)
{
    x[0] = static_cast<float>(*from);
}

static __device__ void store(__nv_bfloat16 *to, const float (&x)[8])
{
    __nv_bfloat162 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        v[k] = __floats2bfloat162_rn(x[2 * k], x[2 * k + 1]);
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(v);
}

static __device__ void store(__nv_bfloat16 *to, const float (&x)[1])
{
    *to = __float2bfloat16_rn(x[0]);
}

/* Without a finite maximum, 0 serves: exp(-infinity) = 0 and ln 0 = -infinity. */
static __device__ float largest(const float *lse, int64_t stride, int partials)
{
    float max = -INFINITY;
    for (int i = 0; i < partials; i++)
        max = fmaxf(max, lse[i * stride]);
    return max == -INFINITY ? 0 : max;
}

/* sum += exp(L_i - max) O_i; returns sum exp(L_i - max). What has no weight is not read: it may be
 * NaN. */
template <typename In, int Vec>
static __device__ float weighted_sum(float (&sum)[Vec], const In *from, int64_t stride,
                                     const float *lse, int64_t lse_stride, float max, int partials)
{
    float total = 0;
    for (int first = 0; first < partials; first += LOADS) {
        float x[LOADS][Vec] = {}, weight[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            const int i = first + k;
            weight[k] = i < partials ? expf(lse[i * lse_stride] - max) : 0;
            if (weight[k] != 0)
                load(x[k], from + i * stride);
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            total += weight[k];
#pragma unroll
            for (int v = 0; v < Vec; v++)
                sum[v] += weight[k] * x[k][v];
        }
    }
    return total;
}

/* A thread per Vec numbers of a (row, head): it works the weights out anew, since the sums of
 * exponentials are few and cached, and a warp per head would idle when heads are narrow. */
template <typename In, int Vec>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    combine(const __grid_constant__ struct lse_combine p)
{
    const In *partial = static_cast<const In *>(p.partial);
    __nv_bfloat16 *out = reinterpret_cast<__nv_bfloat16 *>(p.out);
    const int64_t pairs = p.rows * p.heads, vecs = p.dim / Vec;
    const int64_t threads = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < pairs * vecs; i += threads) {
        const int64_t pair = i / vecs;
        const float *lse = p.partial_lse_base_e + pair;
        const float max = largest(lse, pairs, p.partials);
        float sum[Vec] = {};
        const float total = weighted_sum<In, Vec>(sum, partial + i * Vec, pairs * p.dim, lse, pairs,
                                                  max, p.partials);
        for (int v = 0; v < Vec; v++)
            sum[v] = total != 0 ? sum[v] / total : 0;
        store(out + i * Vec, sum);
        if (i == pair * vecs && p.out_lse_base_e)
            p.out_lse_base_e[pair] = max + logf(total);
    }
}

template <typename In, int Vec>
static cudaError_t launch(const struct lse_combine *p, cudaStream_t stream)
{
    unsigned grid;
    const int64_t threads = p->rows * p->heads * (p->dim / Vec);
    cudaError_t e = grid_fill((threads + THREADS - 1) / THREADS, BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    combine<In, Vec><<<grid, THREADS, 0, stream>>>(*p);
    return cudaGetLastError();
}

template <typename In>
static cudaError_t launch_widest(const struct lse_combine *p, cudaStream_t stream)
{
    const uintptr_t bits = (uintptr_t)p->partial | (uintptr_t)p->out;
    return bits % 16 == 0 && p->dim % 8 == 0 ? launch<In, 8>(p, stream) : launch<In, 1>(p, stream);
}

cudaError_t lse_combine(const struct lse_combine *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->partials < 1 || p->partials > LSE_PARTIALS_MAX || p->heads < 1 ||
        p->dim < 1)
        return cudaErrorInvalidValue;
    if (p->rows == 0)
        return cudaSuccess;
    return p->partial_is_bf16 ? launch_widest<__nv_bfloat16>(p, stream)
                              : launch_widest<float>(p, stream);
}
