/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention_merge.cuh"
#include "kernels/grid.cuh"

#include <cuda_bf16.h>

/* One warp of a block, or several, merge COLUMNS columns of a (row, head). */
enum { WARPS = 8, COLUMNS = 4 * 32, LOADS = 4 /* in flight per lane */, BLOCKS_PER_SM = 4 };

struct merges {
    struct attention a;
    struct attention_plan plan;
    struct attention_partials partials;
    int chunks; /* of COLUMNS in value_dim */
};

/* Of one (row, head). */
struct partial_set {
    const float *out, *lse_base_e;
    int64_t out_stride, lse_stride;
    int n;
};

struct weighted {
    float4 out;
    float weight;
};

/* Without a finite maximum, 0 serves: exp(-infinity) = 0 and ln 0 = -infinity. */
static __device__ float largest(const struct partial_set *s)
{
    float max = -INFINITY;
    for (int i = threadIdx.x % 32; i < s->n; i += 32)
        max = fmaxf(max, s->lse_base_e[i * s->lse_stride]);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        max = fmaxf(max, __shfl_xor_sync(~0u, max, lanes));
    return max == -INFINITY ? 0 : max;
}

/* x + weight * y */
static __device__ float4 add(float4 x, float weight, float4 y)
{
    return {x.x + weight * y.x, x.y + weight * y.y, x.z + weight * y.z, x.w + weight * y.w};
}

/* Every `step`th partial result, 4 columns a lane. What has no weight is not read: it may be NaN.
 */
static __device__ struct weighted sum_share(const struct partial_set *s, float max, int share,
                                            int step, bool in_range)
{
    struct weighted sum = {};
    for (int first = share; first < s->n; first += step * LOADS) {
        float4 x[LOADS] = {};
        float weight[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            const int i = first + k * step;
            weight[k] = i < s->n ? expf(s->lse_base_e[i * s->lse_stride] - max) : 0;
            if (weight[k] != 0 && in_range)
                x[k] = *reinterpret_cast<const float4 *>(s->out + i * s->out_stride);
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            sum.out = add(sum.out, weight[k], x[k]);
            sum.weight += weight[k];
        }
    }
    return sum;
}

/* Columns of a (row, head) of a tile that was cut. */
struct task {
    struct attention_merge tile;
    int row, head, column;
};

static __device__ struct task task_at(const struct merges *m, int64_t i)
{
    const int column = (int)(i % m->chunks) * COLUMNS + threadIdx.x % 32 * 4;
    const int64_t pair = i / m->chunks, per_tile = (int64_t)m->a.bounds.tile_rows * m->a.heads;
    const int rest = (int)(pair % per_tile);
    return {m->plan.merge[pair / per_tile], rest / m->a.heads, rest % m->a.heads, column};
}

static __device__ struct partial_set partials_of(const struct merges *m, const struct task *t)
{
    const struct attention *a = &m->a;
    const int64_t first = attention_partials_pair(a, t->tile.first_partial, t->row, t->head);
    const int64_t stride = attention_partials_pair(a, 1, 0, 0);
    return {m->partials.out + first * a->value_dim + t->column, m->partials.lse_base_e + first,
            stride * a->value_dim, stride, t->tile.partials};
}

static __device__ void store(const struct attention *a, const struct task *t, struct weighted sum,
                             float max)
{
    const int64_t pair = (int64_t)(t->tile.first_row + t->row) * a->heads + t->head;
    const float scale = sum.weight > 0 ? 1 / sum.weight : 0;
    const __nv_bfloat162 v[2] = {__floats2bfloat162_rn(sum.out.x * scale, sum.out.y * scale),
                                 __floats2bfloat162_rn(sum.out.z * scale, sum.out.w * scale)};
    if (t->column < a->value_dim)
        *reinterpret_cast<uint2 *>(a->out + pair * a->value_dim + t->column) =
            *reinterpret_cast<const uint2 *>(v);
    if (t->column == 0)
        a->lse_base_e[pair] = max + logf(sum.weight);
}

/* Warps that share a task, without the block's others. */
static __device__ void meet(int group, int warps)
{
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(warps * 32) : "memory");
}

/* The task of a warp, or of `step` warps that share it: then it is their only one. */
static __device__ void merge(const struct merges *m, const struct task *t, int step)
{
    __shared__ struct weighted shares[WARPS][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const struct partial_set set = partials_of(m, t);
    const float max = largest(&set);
    struct weighted sum = sum_share(&set, max, warp % step, step, t->column < m->a.value_dim);
    if (step > 1) {
        shares[warp][lane] = sum;
        meet(warp / step, step);
        for (int other = 1; other < step && warp % step == 0; other++) {
            sum.out = add(sum.out, 1, shares[warp + other][lane].out);
            sum.weight += shares[warp + other][lane].weight;
        }
    }
    if (warp % step == 0)
        store(&m->a, t, sum, max);
}

/* As many warps of a block share a task as are there when all tasks run at once. */
static __device__ int sharing_warps(int64_t tasks)
{
    int step = WARPS;
    while (step > 1 && tasks * step > (int64_t)gridDim.x * WARPS)
        step /= 2;
    return step;
}

static __global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_SM)
    merge_all(const __grid_constant__ struct merges m)
{
    cudaGridDependencySynchronize();
    const int64_t n = (int64_t)*m.plan.n_merges * m.a.bounds.tile_rows * m.a.heads * m.chunks;
    const int step = sharing_warps(n);
    const int64_t at_once = WARPS / step; /* tasks of a block */
    for (int64_t i = blockIdx.x * at_once + threadIdx.x / 32 / step; i < n;
         i += gridDim.x * at_once) {
        const struct task t = task_at(&m, i);
        if (t.row < t.tile.rows)
            merge(&m, &t, step);
    }
}

size_t attention_workspace_bytes(const struct attention_bounds *b, int heads, int value_dim)
{
    return (size_t)attention_plan_partials_max(b) * b->tile_rows * heads * (value_dim + 1) *
           sizeof(float);
}

cudaError_t attention_merge(const struct attention *a, cudaStream_t stream)
{
    const struct attention_bounds *b = &a->bounds;
    const int chunks = (a->value_dim + COLUMNS - 1) / COLUMNS;
    const int64_t blocks_max =
        (int64_t)attention_plan_merges_max(b) * b->tile_rows * a->heads * chunks;
    if (blocks_max == 0)
        return cudaSuccess;
    const struct merges m = {*a, attention_plan_at(const_cast<void *>(a->plan), b),
                             attention_partials_of(a, attention_plan_partials_max(b)), chunks};
    unsigned grid;
    cudaError_t e = grid_fill(blocks_max, BLOCKS_PER_SM, &grid);
    if (e != cudaSuccess)
        return e;
    /* May start before the partial results are there, so that its launch takes no time. */
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t config = {dim3(grid), dim3(WARPS * 32), 0, stream, &early, 1};
    return cudaLaunchKernelEx(&config, merge_all, m);
}
