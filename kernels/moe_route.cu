/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/moe.h"
#include "kernels/scan.cuh"
#include "kernels/vec.cuh"

enum {
    CHOOSE_THREADS = 256, /* a warp per row */
    CHOOSE_WARPS = CHOOSE_THREADS / 32,
    LANE_LOGITS = MOE_EXPERTS_MAX / 32,
    SORT_THREADS = MOE_EXPERTS_MAX, /* one per expert */
    SORT_WARPS = SORT_THREADS / 32,
    SORT_LOADS = 8, /* in flight per lane */
};

/* A positive number that orders as x does, +0 and -0 the same. */
static __device__ unsigned order_of(float x)
{
    const unsigned bits = __float_as_uint(x + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Expert lane + 32 i is order[i]; 0: there is none or it is taken. The best of all, which is then
 * taken: of equal ones the lowest. */
static __device__ int take_best(unsigned (&order)[LANE_LOGITS])
{
    const int lane = threadIdx.x % 32;
    unsigned mine = order[0];
    int at = 0;
#pragma unroll
    for (int i = 1; i < LANE_LOGITS; i++) {
        if (order[i] > mine)
            mine = order[i], at = i;
    }
    const unsigned best = __reduce_max_sync(~0u, mine);
    const int expert = (int)__reduce_min_sync(~0u, mine == best ? (unsigned)(lane + 32 * at) : ~0u);
#pragma unroll
    for (int i = 0; i < LANE_LOGITS; i++) {
        if (expert == lane + 32 * i)
            order[i] = 0;
    }
    return expert;
}

static __global__ void __launch_bounds__(CHOOSE_THREADS)
    choose(const __grid_constant__ struct moe_routes r, const float *logits, int64_t rows,
           int experts, int topk)
{
    const int64_t row = (int64_t)blockIdx.x * CHOOSE_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const int lane = threadIdx.x % 32;
    const float *of_row = logits + row * experts;
    unsigned order[LANE_LOGITS];
#pragma unroll
    for (int i = 0; i < LANE_LOGITS; i++)
        order[i] = lane + 32 * i < experts ? order_of(of_row[lane + 32 * i]) : 0;
    int mine = 0; /* lane k keeps the k-th best */
    for (int k = 0; k < topk; k++) {
        const int expert = take_best(order);
        if (lane == k)
            mine = expert;
    }
    const float logit = of_row[mine];
    const float max = __shfl_sync(~0u, logit, 0);
    const float exp = lane < topk ? expf(logit - max) : 0;
    float sum = exp;
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (lane < topk) {
        r.expert[row * topk + lane] = mine;
        r.weight[row * topk + lane] = exp / sum;
    }
}

/* Each warp sorts its share of the pairs (row, choice), in their order. */
struct share {
    const int32_t *expert; /* of all pairs */
    int64_t first, end;    /* the share */
    int first_expert, experts;
    int *next; /* [experts]: the warp's next slot of each */
};

/* The lane's of 32 pairs after each other from `first` on, and of more 32s: experts counted from
 * this rank's first; -1: another rank's, or beyond the share's end. */
static __device__ void load_experts(int (&expert)[SORT_LOADS], const struct share *s, int64_t first)
{
#pragma unroll
    for (int i = 0; i < SORT_LOADS; i++) {
        const int64_t pair = first + 32 * i + threadIdx.x % 32;
        const int e = pair < s->end ? s->expert[pair] - s->first_expert : -1;
        expert[i] = e < s->experts ? max(e, -1) : -1;
    }
}

static __device__ void count_pairs(const struct share *s)
{
    for (int64_t first = s->first; first < s->end; first += 32 * SORT_LOADS) {
        int expert[SORT_LOADS];
        load_experts(expert, s, first);
#pragma unroll
        for (int i = 0; i < SORT_LOADS; i++)
            if (expert[i] >= 0)
                atomicAdd(&s->next[expert[i]], 1);
    }
}

/* Lanes with the same expert take slots in their order. */
static __device__ int take_slot(int *next, int expert)
{
    const unsigned peers = __match_any_sync(~0u, expert);
    const int before = __popc(peers & ((1u << threadIdx.x % 32) - 1));
    const int slot = expert >= 0 ? next[expert] + before : -1;
    __syncwarp();
    if (expert >= 0 && before == 0)
        next[expert] += __popc(peers);
    __syncwarp();
    return slot;
}

static __device__ void place_pairs(const struct share *s, const struct moe_routes *r, int topk)
{
    for (int64_t first = s->first; first < s->end; first += 32 * SORT_LOADS) {
        int expert[SORT_LOADS];
        load_experts(expert, s, first);
#pragma unroll
        for (int i = 0; i < SORT_LOADS; i++) {
            const int64_t pair = first + 32 * i + threadIdx.x % 32;
            const int slot = take_slot(s->next, expert[i]);
            if (pair < s->end)
                r->slot[pair] = slot;
            if (slot >= 0)
                r->slot_row[slot] = (int32_t)(pair / topk);
        }
    }
}

/* A counting sort by one block: even thousands of rows are few. */
static __global__ void __launch_bounds__(SORT_THREADS)
    sort_slots(const __grid_constant__ struct moe_routes r, int64_t pairs, int topk,
               int first_expert, int experts)
{
    __shared__ int next[SORT_WARPS][MOE_EXPERTS_MAX], end[MOE_EXPERTS_MAX];
    const int e = threadIdx.x, warp = threadIdx.x / 32;
    const int64_t each = (pairs + SORT_THREADS - 1) / SORT_THREADS * 32;
    const int64_t first = min(warp * each, pairs);
    const struct share share = {r.expert,     first,   min(first + each, pairs),
                                first_expert, experts, next[warp]};
    for (int w = 0; w < SORT_WARPS; w++)
        next[w][e] = 0;
    __syncthreads();
    count_pairs(&share);
    __syncthreads();
    int slots = 0;
    for (int w = 0; w < SORT_WARPS; w++)
        slots += next[w][e];
    end[e] = slots;
    __syncthreads();
    if (warp == 0)
        scan_by_warp(end, experts);
    __syncthreads();
    if (e == 0)
        r.first[0] = 0;
    if (e < experts)
        r.first[e + 1] = end[e];
    int slot = e > 0 ? end[e - 1] : 0;
    for (int w = 0; w < SORT_WARPS; w++) {
        const int count = next[w][e];
        next[w][e] = slot;
        slot += count;
    }
    __syncthreads();
    place_pairs(&share, &r, topk);
}

cudaError_t moe_route(const struct moe_routes *r, const float *logits, int64_t rows, int experts,
                      int topk, int first_expert, int end_expert, cudaStream_t stream)
{
    if (rows < 0 || topk < 1 || topk > MOE_TOPK_MAX || topk > experts ||
        experts > MOE_EXPERTS_MAX || rows * topk > INT32_MAX || first_expert < 0 ||
        first_expert > end_expert || end_expert > experts)
        return cudaErrorInvalidValue;
    if (rows > 0) {
        const int64_t blocks = (rows + CHOOSE_WARPS - 1) / CHOOSE_WARPS;
        choose<<<(unsigned)blocks, CHOOSE_THREADS, 0, stream>>>(*r, logits, rows, experts, topk);
    }
    sort_slots<<<1, SORT_THREADS, 0, stream>>>(*r, rows * topk, topk, first_expert,
                                               end_expert - first_expert);
    return cudaGetLastError();
}

enum { LOADS = 4 /* in flight per thread */ };

struct combine {
    uint16_t *y;
    const uint16_t *add, *part;
    const int32_t *slot;
    const float *weight;
    int topk, width;

    template <int Vec> __device__ void at(int64_t i) const
    {
        const int64_t row = i / (width / Vec), column = i * Vec - row * width;
        float sum[Vec] = {};
        if (add)
            vec_load(sum, add + i * Vec);
        for (int first = 0; first < topk; first += LOADS) {
            float x[LOADS][Vec] = {}, scale[LOADS] = {};
#pragma unroll
            for (int k = 0; k < LOADS; k++) {
                const int64_t pair = row * topk + first + k;
                const int64_t from = first + k < topk ? slot[pair] : -1;
                if (from >= 0) {
                    vec_load(x[k], part + from * width + column);
                    scale[k] = weight[pair];
                }
            }
#pragma unroll
            for (int k = 0; k < LOADS; k++)
#pragma unroll
                for (int v = 0; v < Vec; v++)
                    sum[v] += scale[k] * x[k][v];
        }
        vec_store(y + i * Vec, sum);
    }
};

cudaError_t moe_combine(uint16_t *y, const uint16_t *add, const uint16_t *part,
                        const struct moe_routes *r, int64_t rows, int topk, int width,
                        cudaStream_t stream)
{
    if (rows < 0 || topk < 1 || topk > MOE_TOPK_MAX || width < 0)
        return cudaErrorInvalidValue;
    const struct combine combine = {y, add, part, r->slot, r->weight, topk, width};
    const uintptr_t bits = (uintptr_t)y | (uintptr_t)add | (uintptr_t)part;
    return vec_launch(combine, rows * width, vec_is_wide(bits, width), stream);
}
