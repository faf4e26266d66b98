/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kv_pages.h"
#include "kernels/values.h"
#include "kernels/vec.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS_PER_SM = 4 };

/* A step of SplitMix64, as in replay/values.c. */
static inline __host__ __device__ uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint64_t hash_of(const struct values_key *key)
{
    return mix(key->seed, (uint64_t)key->tag);
}

/* The nearest BF16 number, ties to even; by way of FP32 it would be rounded twice. */
static __device__ double to_bf16(double x)
{
    enum { DROPPED = 52 - 7 };
    const uint64_t ulp = (uint64_t)1 << DROPPED;
    uint64_t bits = (uint64_t)__double_as_longlong(x);
    bits += ulp / 2 - 1 + (bits >> DROPPED & 1);
    return __longlong_as_double((long long)(bits & ~(ulp - 1)));
}

/* `hash` is that of everything before d. */
static __device__ float value(uint64_t hash, int64_t d, double divisor)
{
    double x = to_bf16((double)(mix(hash, (uint64_t)d) >> 11) * 0x1p-52 - 1);
    if (divisor != 1)
        x = to_bf16(x / divisor);
    return (float)x;
}

/* Rows of numbers: where one is, and the hash that its numbers share. What tells the kernels below
 * so is a struct `Rows` with
 *     __device__ struct row<Number> at(int64_t i) const;
 */
template <typename Number> struct row {
    Number *numbers;
    uint64_t hash;
};

struct shape {
    int64_t rows, columns, first_d;
    int64_t step; /* from one column to the next */
};

static __device__ int64_t warp_index(void)
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
}

/* A warp per row, so that the hash of the row is worked out once for many numbers. */
template <int Vec, typename Rows>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    fill(const __grid_constant__ Rows rows, const __grid_constant__ struct shape s, double divisor)
{
    for (int64_t i = warp_index(); i < s.rows; i += (int64_t)gridDim.x * WARPS) {
        const auto row = rows.at(i);
        for (int64_t j = threadIdx.x % 32 * Vec; j < s.columns; j += 32 * Vec) {
            float x[Vec];
#pragma unroll
            for (int v = 0; v < Vec; v++)
                x[v] = value(row.hash, s.first_d + j + v, divisor);
            vec_store(row.numbers + j * s.step, x);
        }
    }
}

static cudaError_t grid_of(const struct shape *s, unsigned *grid)
{
    return grid_fill((s->rows + WARPS - 1) / WARPS, BLOCKS_PER_SM, grid);
}

template <typename Rows>
static cudaError_t fill_launch(const Rows &rows, const struct shape *s, bool is_wide,
                               double divisor, cudaStream_t stream)
{
    if (s->rows < 0 || s->columns < 0)
        return cudaErrorInvalidValue;
    if (s->rows == 0 || s->columns == 0)
        return cudaSuccess;
    unsigned grid;
    cudaError_t e = grid_of(s, &grid);
    if (e != cudaSuccess)
        return e;
    if (is_wide && s->step == 1)
        fill<8><<<grid, THREADS, 0, stream>>>(rows, *s, divisor);
    else
        fill<1><<<grid, THREADS, 0, stream>>>(rows, *s, divisor);
    return cudaGetLastError();
}

struct matrix_rows {
    uint16_t *to;
    uint64_t hash;
    int64_t first_b, c, distance;

    __device__ struct row<uint16_t> at(int64_t i) const {
        return {to + i * distance, mix(mix(hash, (uint64_t)(first_b + i)), (uint64_t)c)};
    }
};

cudaError_t values_fill_matrix(const struct values_matrix *p, cudaStream_t stream)
{
    const struct matrix_rows rows = {p->to, mix(hash_of(&p->key), (uint64_t)p->a), p->first_b, p->c,
                                     p->to_row};
    const struct shape s = {p->rows, p->columns, p->first_d, p->to_column};
    return fill_launch(rows, &s, vec_is_wide((uintptr_t)p->to, p->to_row | p->columns),
                       p->key.divisor, stream);
}

struct hidden_rows {
    float *to;
    const int64_t *a, *b;
    uint64_t hash;
    int columns;

    __device__ struct row<float> at(int64_t i) const {
        return {to + i * columns, mix(mix(mix(hash, (uint64_t)a[i]), (uint64_t)b[i]), 0)};
    }
};

cudaError_t values_fill_rows(float *to, const struct values_key *key, const int64_t *a,
                             const int64_t *b, int64_t rows, int columns, cudaStream_t stream)
{
    const struct hidden_rows hidden = {to, a, b, hash_of(key), columns};
    const struct shape s = {rows, columns, 0, 1};
    return fill_launch(hidden, &s, vec_is_wide((uintptr_t)to, columns), key->divisor, stream);
}

/* By slot. */
struct kv_rows {
    struct values_kv p;
    uint64_t hash;

    __device__ struct row<uint16_t> at(int64_t slot) const {
        const int64_t position = kv_pages_position(slot, p.shard, p.shards);
        return {p.pages + kv_pages_row(p.table, slot) * p.width,
                mix(mix(hash, (uint64_t)position), (uint64_t)p.layer)};
    }
};

/* False where the sizes cannot be. */
static bool find_kv_rows(const struct values_kv *p, struct kv_rows *rows, struct shape *s)
{
    if (p->tokens < 0 || p->width < 0 || p->shard < 0 || p->shard >= p->shards)
        return false;
    *rows = {*p, mix(hash_of(&p->key), (uint64_t)p->req)};
    *s = {kv_pages_shard_tokens(p->tokens, p->shard, p->shards), p->width, p->first_d, 1};
    return true;
}

cudaError_t values_fill_kv(const struct values_kv *p, cudaStream_t stream)
{
    struct kv_rows rows;
    struct shape s;
    if (!find_kv_rows(p, &rows, &s))
        return cudaErrorInvalidValue;
    return fill_launch(rows, &s, vec_is_wide((uintptr_t)p->pages, p->width), p->key.divisor,
                       stream);
}

static __device__ void load_bits(uint16_t (&x)[8], const uint16_t *from)
{
    *reinterpret_cast<uint4 *>(x) = *reinterpret_cast<const uint4 *>(from);
}

static __device__ void load_bits(uint16_t (&x)[1], const uint16_t *from)
{
    x[0] = *from;
}

template <int Vec>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    checksum(const __grid_constant__ struct kv_rows rows, const __grid_constant__ struct shape s,
             unsigned long long *sum)
{
    __shared__ unsigned long long of_block;
    if (threadIdx.x == 0)
        of_block = 0;
    __syncthreads();
    unsigned long long mine = 0;
    for (int64_t i = warp_index(); i < s.rows; i += (int64_t)gridDim.x * WARPS) {
        const struct row<uint16_t> row = rows.at(i);
        for (int64_t j = threadIdx.x % 32 * Vec; j < s.columns; j += 32 * Vec) {
            alignas(16) uint16_t x[Vec];
            load_bits(x, row.numbers + j);
#pragma unroll
            for (int v = 0; v < Vec; v++)
                mine += mix(row.hash, (uint64_t)(s.first_d + j + v) << 16 | x[v]);
        }
    }
    for (int lanes = 16; lanes > 0; lanes /= 2)
        mine += __shfl_xor_sync(~0u, mine, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&of_block, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(sum, of_block);
}

cudaError_t values_checksum_kv(const struct values_kv *p, uint64_t *sum, cudaStream_t stream)
{
    struct kv_rows rows;
    struct shape s;
    if (!find_kv_rows(p, &rows, &s))
        return cudaErrorInvalidValue;
    if (s.rows == 0 || s.columns == 0)
        return cudaSuccess;
    unsigned grid;
    cudaError_t e = grid_of(&s, &grid);
    if (e != cudaSuccess)
        return e;
    unsigned long long *total = reinterpret_cast<unsigned long long *>(sum);
    if (vec_is_wide((uintptr_t)p->pages, p->width))
        checksum<8><<<grid, THREADS, 0, stream>>>(rows, s, total);
    else
        checksum<1><<<grid, THREADS, 0, stream>>>(rows, s, total);
    return cudaGetLastError();
}

struct poison {
    uint16_t *pages;
    const int32_t *page;
    int width;

    template <int Vec> __device__ void at(int64_t i) const
    {
        const int64_t numbers = (int64_t)KV_PAGE_TOKENS * width;
        const int64_t which = i * Vec / numbers;
        uint16_t *to = pages + page[which] * numbers + (i * Vec - which * numbers);
        if (Vec == 8)
            *reinterpret_cast<uint4 *>(to) = make_uint4(~0u, ~0u, ~0u, ~0u);
        else
            *to = 0xffff;
    }
};

cudaError_t values_poison_pages(uint16_t *pages, const int32_t *page, int64_t n, int width,
                                cudaStream_t stream)
{
    if (n < 0 || width < 0)
        return cudaErrorInvalidValue;
    const struct poison poison = {pages, page, width};
    return vec_launch(poison, n * KV_PAGE_TOKENS * width, vec_is_wide((uintptr_t)pages, 0), stream);
}

static __device__ int64_t now_ns(void)
{
    int64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

static __global__ void spin(int64_t ns)
{
    const int64_t start_ns = now_ns();
    while (now_ns() - start_ns < ns)
        ;
}

cudaError_t values_delay(int64_t ns, cudaStream_t stream)
{
    if (ns < 0)
        return cudaErrorInvalidValue;
    spin<<<1, 1, 0, stream>>>(ns);
    return cudaGetLastError();
}
