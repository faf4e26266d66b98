/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention.h"
#include "kernels/grid.cuh"
#include "kernels/kv_pages.h"

#include <cuda_bf16.h>

/* A block does one query row and head at a time, THREADS slots per round. */
enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS_PER_SM = 4 };

struct plain {
    struct attention a;
    int kv_dim, value_at;
};

static __device__ float from_bf16(uint16_t bits)
{
    return __uint_as_float((unsigned)bits << 16);
}

/* The KV head's numbers in a slot of the request. */
static __device__ const uint16_t *slot_at(const struct plain *p, int request, int kv_head,
                                          int64_t slot)
{
    const int32_t *table = p->a.table + request * p->a.table_pages;
    return p->a.pages + (kv_pages_row(table, slot) * p->a.kv_heads + kv_head) * p->kv_dim;
}

/* A warp per slot, its lanes along the key. */
static __device__ void score_slots(const struct plain *p, float *score, const float *query,
                                   int request, int kv_head, int64_t first, int n)
{
    for (int i = threadIdx.x / 32; i < n; i += WARPS) {
        const uint16_t *key = slot_at(p, request, kv_head, first + i);
        float sum = 0;
        for (int d = threadIdx.x % 32; d < p->a.key_dim; d += 32)
            sum += query[d] * from_bf16(key[d]);
        for (int lanes = 16; lanes > 0; lanes /= 2)
            sum += __shfl_xor_sync(~0u, sum, lanes);
        score[i] = p->a.scale * sum;
    }
}

/* A thread per number of the value. */
static __device__ void add_values(const struct plain *p, float *out, const float *weight,
                                  float keep, int request, int kv_head, int64_t first, int n)
{
    for (int d = threadIdx.x; d < p->a.value_dim; d += THREADS) {
        float sum = keep * out[d];
        for (int i = 0; i < n; i++)
            sum += weight[i] * from_bf16(slot_at(p, request, kv_head, first + i)[p->value_at + d]);
        out[d] = sum;
    }
}

static __device__ void attend(const struct plain *p, int64_t row, int head, float *query,
                              float *out, float *weight)
{
    const struct attention *a = &p->a;
    const int64_t pair = row * a->heads + head, slots = a->row_slots[row];
    const int request = a->row_request[row], kv_head = head / (a->heads / a->kv_heads);
    float max = -INFINITY, total = 0;
    for (int d = threadIdx.x; d < a->key_dim; d += THREADS)
        query[d] = from_bf16(a->query[pair * a->key_dim + d]);
    for (int d = threadIdx.x; d < a->value_dim; d += THREADS)
        out[d] = 0;
    for (int64_t first = 0; first < slots; first += THREADS) {
        const int n = (int)(slots - first < THREADS ? slots - first : THREADS);
        __syncthreads();
        score_slots(p, weight, query, request, kv_head, first, n);
        __syncthreads();
        const float max_before = max;
        for (int i = 0; i < n; i++)
            max = fmaxf(max, weight[i]);
        const float keep = expf(max_before - max);
        __syncthreads();
        if (threadIdx.x < n)
            weight[threadIdx.x] = expf(weight[threadIdx.x] - max);
        __syncthreads();
        total *= keep;
        for (int i = 0; i < n; i++)
            total += weight[i];
        add_values(p, out, weight, keep, request, kv_head, first, n);
    }
    for (int d = threadIdx.x; d < a->value_dim; d += THREADS) {
        const __nv_bfloat16 x = __float2bfloat16_rn(slots > 0 ? out[d] / total : 0);
        a->out[pair * a->value_dim + d] = __bfloat16_as_ushort(x);
    }
    if (threadIdx.x == 0)
        a->lse_base_e[pair] = slots > 0 ? max + logf(total) : -INFINITY;
}

static __global__ void __launch_bounds__(THREADS) attend_all(const __grid_constant__ struct plain p)
{
    extern __shared__ float shared[]; /* query, output, weights of the slots of a round */
    float *out = shared + p.a.key_dim, *weight = out + p.a.value_dim;
    for (int64_t pair = blockIdx.x; pair < p.a.rows * p.a.heads; pair += gridDim.x) {
        attend(&p, pair / p.a.heads, (int)(pair % p.a.heads), shared, out, weight);
        __syncthreads();
    }
}

cudaError_t plain_attention(const struct attention *a, int kv_dim, int value_at,
                            cudaStream_t stream)
{
    if (a->rows < 0 || a->kv_heads < 1 || a->heads < 1 || a->heads % a->kv_heads != 0 ||
        a->key_dim < 1 || a->value_dim < 1 || kv_dim < a->key_dim || value_at < 0 ||
        kv_dim - value_at < a->value_dim)
        return cudaErrorInvalidValue;
    if (a->rows == 0)
        return cudaSuccess;
    const struct plain p = {*a, kv_dim, value_at};
    const size_t shared_bytes = (size_t)(a->key_dim + a->value_dim + THREADS) * sizeof(float);
    unsigned grid;
    cudaError_t e = grid_fill(a->rows * a->heads, BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    attend_all<<<grid, THREADS, shared_bytes, stream>>>(p);
    return cudaGetLastError();
}
