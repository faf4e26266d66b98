/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include "kernels/vec.cuh"

/* A block per row, which it keeps in registers up to HELD vectors a thread. */
enum { NORM_THREADS = 512, HELD = 2 };

static __device__ float block_sum(float x)
{
    __shared__ float of_warp[NORM_THREADS / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(~0u, x, lanes);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < NORM_THREADS / 32; w++)
        sum += of_warp[w];
    return sum;
}

template <int Vec> static __device__ float squares(const float (&x)[Vec])
{
    float sum = 0;
#pragma unroll
    for (int v = 0; v < Vec; v++)
        sum += x[v] * x[v];
    return sum;
}

template <int Vec>
static __device__ void store_scaled(uint16_t *to, const float (&x)[Vec], float scale)
{
    float y[Vec];
#pragma unroll
    for (int v = 0; v < Vec; v++)
        y[v] = x[v] * scale;
    vec_store(to, y);
}

template <int Vec>
static __global__ void __launch_bounds__(NORM_THREADS) norm(uint16_t *y, const float *x, int width)
{
    const float *from = x + (int64_t)blockIdx.x * width;
    uint16_t *to = y + (int64_t)blockIdx.x * width;
    const int vecs = width / Vec;
    float held[HELD][Vec] = {}, rest[Vec], sum = 0;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const int i = k * NORM_THREADS + threadIdx.x;
        if (i < vecs)
            vec_load(held[k], from + i * Vec);
    }
#pragma unroll
    for (int k = 0; k < HELD; k++)
        sum += squares(held[k]);
    for (int i = HELD * NORM_THREADS + threadIdx.x; i < vecs; i += NORM_THREADS) {
        vec_load(rest, from + i * Vec);
        sum += squares(rest);
    }
    const float scale = rsqrtf(block_sum(sum) / (float)width + 1e-6f);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const int i = k * NORM_THREADS + threadIdx.x;
        if (i < vecs)
            store_scaled(to + i * Vec, held[k], scale);
    }
    for (int i = HELD * NORM_THREADS + threadIdx.x; i < vecs; i += NORM_THREADS) {
        vec_load(rest, from + i * Vec);
        store_scaled(to + i * Vec, rest, scale);
    }
}

cudaError_t rows_norm(uint16_t *y, const float *x, int64_t rows, int width, cudaStream_t stream)
{
    if (rows < 0 || rows > INT32_MAX || width < 1)
        return cudaErrorInvalidValue;
    if (rows == 0)
        return cudaSuccess;
    if (vec_is_wide((uintptr_t)y | (uintptr_t)x, width))
        norm<8><<<(unsigned)rows, NORM_THREADS, 0, stream>>>(y, x, width);
    else
        norm<1><<<(unsigned)rows, NORM_THREADS, 0, stream>>>(y, x, width);
    return cudaGetLastError();
}

enum { ROTATE_THREADS_MAX = 512 };

/* A block per row: its angles once, for all heads. */
template <int Vec>
static __global__ void __launch_bounds__(ROTATE_THREADS_MAX)
    rotate(const __grid_constant__ struct rows_rotate p)
{
    __shared__ float2 turn[ROWS_ROTATE_WIDTH_MAX / 2]; /* cosine, sine */
    const int64_t row = blockIdx.x;
    for (int i = threadIdx.x; i < p.width / 2; i += blockDim.x) {
        double sine, cosine;
        sincos((double)p.position[row] * pow(10000.0, -2.0 * i / p.width), &sine, &cosine);
        turn[i] = make_float2((float)cosine, (float)sine);
    }
    __syncthreads();
    const int vecs = p.width / Vec;
    for (int i = threadIdx.x; i < p.heads * vecs; i += blockDim.x) {
        const int head = i / vecs, column = (i - head * vecs) * Vec;
        float x[Vec], y[Vec];
        vec_load(x, p.from + row * p.from_row + head * p.from_head + column);
#pragma unroll
        for (int v = 0; v < Vec; v += 2) {
            const float2 t = turn[(column + v) / 2];
            y[v] = x[v] * t.x - x[v + 1] * t.y;
            y[v + 1] = x[v] * t.y + x[v + 1] * t.x;
        }
        vec_store(p.to + row * p.to_row + head * p.to_head + column, y);
    }
}

template <int Vec>
static cudaError_t rotate_launch(const struct rows_rotate *p, cudaStream_t stream)
{
    const int threads = max(p->heads * (p->width / Vec), p->width / 2);
    rotate<Vec>
        <<<(unsigned)p->rows, min((threads + 31) / 32 * 32, (int)ROTATE_THREADS_MAX), 0, stream>>>(
            *p);
    return cudaGetLastError();
}

cudaError_t rows_rotate(const struct rows_rotate *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->rows > INT32_MAX || p->heads < 0 || p->width < 2 || p->width % 2 ||
        p->width > ROWS_ROTATE_WIDTH_MAX || (int64_t)p->heads * p->width > INT32_MAX / 2)
        return cudaErrorInvalidValue;
    if (p->rows == 0 || p->heads == 0)
        return cudaSuccess;
    const bool is_wide =
        vec_is_wide((uintptr_t)p->from | (uintptr_t)p->to,
                    p->from_row | p->from_head | p->to_row | p->to_head | p->width);
    return is_wide ? rotate_launch<8>(p, stream) : rotate_launch<2>(p, stream);
}

template <int Vec>
static __device__ void add_parts(float (&sum)[Vec], const uint16_t *parts, int n_parts, int64_t n)
{
#pragma unroll 4
    for (int p = 0; p < n_parts; p++) {
        float part[Vec];
        vec_load(part, parts + p * n);
#pragma unroll
        for (int v = 0; v < Vec; v++)
            sum[v] += part[v];
    }
}

struct add {
    float *x;
    const uint16_t *parts;
    int64_t n;
    int n_parts;

    template <int Vec> __device__ void at(int64_t i) const
    {
        float y[Vec], sum[Vec] = {};
        vec_load(y, x + i * Vec);
        add_parts(sum, parts + i * Vec, n_parts, n);
#pragma unroll
        for (int v = 0; v < Vec; v++)
            y[v] += sum[v];
        vec_store(x + i * Vec, y);
    }
};

cudaError_t rows_add(float *x, const uint16_t *parts, int n_parts, int64_t n, cudaStream_t stream)
{
    if (n_parts < 0 || n < 0)
        return cudaErrorInvalidValue;
    const struct add add = {x, parts, n, n_parts};
    return vec_launch(add, n, vec_is_wide((uintptr_t)x | (uintptr_t)parts, n), stream);
}

struct sum {
    uint16_t *y;
    const uint16_t *parts;
    int64_t n;
    int n_parts;

    template <int Vec> __device__ void at(int64_t i) const
    {
        float sum[Vec] = {};
        add_parts(sum, parts + i * Vec, n_parts, n);
        vec_store(y + i * Vec, sum);
    }
};

cudaError_t rows_sum(uint16_t *y, const uint16_t *parts, int n_parts, int64_t n,
                     cudaStream_t stream)
{
    if (n_parts < 0 || n < 0)
        return cudaErrorInvalidValue;
    const struct sum sum = {y, parts, n, n_parts};
    return vec_launch(sum, n, vec_is_wide((uintptr_t)y | (uintptr_t)parts, n), stream);
}

struct swiglu {
    uint16_t *act;
    const uint16_t *gate_up;
    int inter;

    template <int Vec> __device__ void at(int64_t i) const
    {
        const int64_t row = i / (inter / Vec);
        const uint16_t *from = gate_up + i * Vec + row * inter;
        float gate[Vec], up[Vec];
        vec_load(gate, from);
        vec_load(up, from + inter);
#pragma unroll
        for (int v = 0; v < Vec; v++)
            gate[v] = __fdividef(gate[v], 1 + __expf(-gate[v])) * up[v];
        vec_store(act + i * Vec, gate);
    }
};

cudaError_t rows_swiglu(uint16_t *act, const uint16_t *gate_up, int64_t rows, int inter,
                        cudaStream_t stream)
{
    if (rows < 0 || inter < 0)
        return cudaErrorInvalidValue;
    const struct swiglu swiglu = {act, gate_up, inter};
    return vec_launch(swiglu, rows * inter, vec_is_wide((uintptr_t)act | (uintptr_t)gate_up, inter),
                      stream);
}
