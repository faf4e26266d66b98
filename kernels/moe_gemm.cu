/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grid.cuh"
#include "kernels/moe.h"
#include "kernels/scan.cuh"
#include "kernels/wgmma.cuh"

#include <cuda_bf16.h>

/* A tile of y is up to SLOTS slots of one expert, 64 for each warpgroup, by N columns. A stage is K
 * numbers of each of its rows of x and then of w, as wgmma wants them. */
template <int Slots, int Columns> struct config {
    static constexpr int SLOTS = Slots, N = Columns, K = WGMMA_BOX_COLUMNS;
    static constexpr int THREADS = Slots / 64 * 128, PARTS = N / 128;
    static constexpr int ROW_BYTES = 2 * K, CHUNKS = ROW_BYTES / 16;
    static constexpr int ROW_STEP = THREADS / CHUNKS; /* of the rows that a thread copies */
    static constexpr int STAGE_BYTES = (Slots + N) * ROW_BYTES;
    static constexpr int STAGES = 220 * 1024 / STAGE_BYTES;
};

/* Few rows: all of w is read as fast as memory gives it. Many: no expert needs two tiles where one
 * would do, and the more slots share a stage the less of it is w. */
typedef config<128, 256> few;
typedef config<256, 128> many;

struct tile {
    int expert, slots, column;
    int64_t slot; /* the first */
};

/* Tiles are counted expert by expert and within one column by column: those that share a piece of w
 * follow each other. */
template <typename C> struct tiling {
    const struct moe_gemm *p;
    const int *end; /* [experts]: how many tiles there are, of the same columns, up to this one's */
    int column_tiles;

    __device__ int64_t tiles(void) const
    {
        return (int64_t)end[p->experts - 1] * column_tiles;
    }

    __device__ struct tile at(int64_t i) const
    {
        const int rank = (int)(i / column_tiles);
        int e = 0;
        for (int high = p->experts - 1; e < high;) {
            const int middle = (e + high) / 2;
            if (end[middle] <= rank)
                e = middle + 1;
            else
                high = middle;
        }
        const int before = e > 0 ? end[e - 1] : 0, down = end[e] - before;
        const int in_expert = (int)(i - (int64_t)before * column_tiles);
        const int64_t slot = p->first[e] + (int64_t)(in_expert % down) * C::SLOTS;
        return {e, (int)min(p->first[e + 1] - slot, (int64_t)C::SLOTS), in_expert / down * C::N,
                slot};
    }
};

/* Into shared memory without passing through registers; zeros where `is_there` is not. */
static __device__ void copy_chunk(uint32_t to, const uint16_t *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(is_there ? 16 : 0)
                 : "memory");
}

static __device__ void end_stage(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all but the last stages are there, for wgmma too, as far as this thread copies them. */
template <int Pending> static __device__ void wait_stages(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
    fence_proxy_async();
}

/* What a thread copies next, ahead of what the block computes, into the next tile as well. */
template <typename C> struct loader {
    const tiling<C> *plan;
    int64_t next;                                  /* tile */
    int k;                                         /* done of the current one */
    const uint16_t *w, *x[C::SLOTS / C::ROW_STEP]; /* rows; NULL: none */
    int w_rows;

    __device__ void begin(int64_t i)
    {
        const struct moe_gemm *p = plan->p;
        const int row = threadIdx.x / C::CHUNKS;
        next = i, k = 0;
        if (next >= plan->tiles())
            return;
        const struct tile t = plan->at(next);
        w_rows = p->n - t.column - row;
        w = p->w + ((int64_t)t.expert * p->n + t.column + row) * p->k;
#pragma unroll
        for (int r = 0; r < C::SLOTS / C::ROW_STEP; r++) {
            const int64_t slot = t.slot + row + r * C::ROW_STEP;
            x[r] = nullptr;
            if (row + r * C::ROW_STEP < t.slots)
                x[r] = p->x + (p->slot_row ? p->slot_row[slot] : slot) * p->k;
        }
    }

    /* One stage, perhaps an empty one. */
    __device__ void load(uint32_t stage)
    {
        const struct moe_gemm *p = plan->p;
        const int row = threadIdx.x / C::CHUNKS, chunk = threadIdx.x % C::CHUNKS;
        const int column = k + chunk * 8;
        if (next < plan->tiles()) {
            const bool is_there = column < p->k;
            uint32_t to = stage + row * C::ROW_BYTES + ((chunk ^ row % 8) << 4);
#pragma unroll
            for (int r = 0; r < C::SLOTS / C::ROW_STEP; r++, to += C::ROW_STEP * C::ROW_BYTES)
                copy_chunk(to, x[r] ? x[r] + column : p->x, is_there && x[r]);
#pragma unroll
            for (int r = 0; r < C::N / C::ROW_STEP; r++, to += C::ROW_STEP * C::ROW_BYTES)
                copy_chunk(to, w + (int64_t)r * C::ROW_STEP * p->k + column,
                           is_there && r * C::ROW_STEP < w_rows);
            k += C::K;
            if (k >= p->k)
                begin(next + gridDim.x);
        }
        end_stage();
    }
};

/* sum [64][128] = A [64][16] B [16][128], both by wgmma_rows(); with `add`, sum += that. */
static __device__ void multiply_64x128(float (&sum)[64], uint64_t a, uint64_t b, bool add)
{
#define FLOATS_8(i)                                                                                \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]),          \
        "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 " %8, %9, %10, %11, %12, %13, %14, %15, "
                 " %16, %17, %18, %19, %20, %21, %22, %23, "
                 " %24, %25, %26, %27, %28, %29, %30, %31, "
                 " %32, %33, %34, %35, %36, %37, %38, %39, "
                 " %40, %41, %42, %43, %44, %45, %46, %47, "
                 " %48, %49, %50, %51, %52, %53, %54, %55, "
                 " %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, add, 1, 1, 0, 0;\n"
                 "}"
                 : FLOATS_8(0), FLOATS_8(8), FLOATS_8(16), FLOATS_8(24), FLOATS_8(32), FLOATS_8(40),
                   FLOATS_8(48), FLOATS_8(56)
                 : "l"(a), "l"(b), "r"((int)add));
#undef FLOATS_8
}

/* The warpgroup's 64 slots, one stage; done once wgmma_finish() returns. */
template <typename C>
static __device__ void multiply(float (&sum)[C::PARTS][64], const unsigned char *stage, bool add)
{
    const unsigned char *x = stage + threadIdx.x / 128 * 64 * C::ROW_BYTES;
    const unsigned char *w = stage + C::SLOTS * C::ROW_BYTES;
    wgmma_start(sum);
#pragma unroll
    for (int k = 0; k < C::K; k += WGMMA_K)
#pragma unroll
        for (int part = 0; part < C::PARTS; part++)
            multiply_64x128(sum[part], wgmma_rows(x, k),
                            wgmma_rows(w + part * 128 * C::ROW_BYTES, k), add || k > 0);
}

template <typename C>
static __device__ void store(const struct moe_gemm *p, const struct tile *t,
                             const float (&sum)[C::PARTS][64])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = warp * 16 + lane / 4 + 8 * half;
        if (row >= t->slots)
            continue;
        uint16_t *to = p->y + (t->slot + row) * p->n;
#pragma unroll
        for (int i = 0; i < C::N / 8; i++) {
            const int column = t->column + 8 * i + lane % 4 * 2;
            const float *pair = &sum[i / 16][i % 16 * 4 + half * 2];
            if (column < p->n)
                *reinterpret_cast<__nv_bfloat162 *>(to + column) =
                    __floats2bfloat162_rn(pair[0], pair[1]);
        }
    }
}

/* How many tiles each expert has is only known here. */
template <typename C>
static __device__ void count_tiles(int (&end)[MOE_EXPERTS_MAX], const struct moe_gemm *p)
{
    for (int e = threadIdx.x; e < p->experts; e += C::THREADS)
        end[e] = (p->first[e + 1] - p->first[e] + C::SLOTS - 1) / C::SLOTS;
    __syncthreads();
    if (threadIdx.x < 32)
        scan_by_warp(end, p->experts);
    __syncthreads();
}

template <typename C>
static __global__ void __launch_bounds__(C::THREADS, 1)
    gemm(const __grid_constant__ struct moe_gemm p)
{
    extern __shared__ __align__(1024) unsigned char stages[];
    __shared__ int end[MOE_EXPERTS_MAX];
    count_tiles<C>(end, &p);
    const uint32_t first = shared_address(stages);
    const tiling<C> plan = {&p, end, (p.n + C::N - 1) / C::N};
    loader<C> ahead = {&plan};
    ahead.begin(blockIdx.x);
    for (int s = 0; s < C::STAGES - 1; s++)
        ahead.load(first + s * C::STAGE_BYTES);
    int stage = 0;
    for (int64_t i = blockIdx.x; i < plan.tiles(); i += gridDim.x) {
        const struct tile t = plan.at(i);
        const bool is_idle = (int)threadIdx.x / 128 * 64 >= t.slots;
        float sum[C::PARTS][64] = {};
        for (int k = 0; k < p.k; k += C::K) {
            wait_stages<C::STAGES - 2>();
            __syncthreads(); /* all have this stage, and have done with the one before */
            const uint32_t free = first + (stage + C::STAGES - 1) % C::STAGES * C::STAGE_BYTES;
            if (is_idle) { /* ptxas serialises products that it sees overlap a join */
                ahead.load(free);
            } else {
                multiply<C>(sum, stages + stage * C::STAGE_BYTES, k > 0);
                ahead.load(free);
                wgmma_finish(sum);
            }
            stage = (stage + 1) % C::STAGES;
        }
        store<C>(&p, &t, sum);
    }
}

template <typename C> static cudaError_t gemm_launch(const struct moe_gemm *p, cudaStream_t stream)
{
    const int bytes = C::STAGES * C::STAGE_BYTES;
    const int64_t most = p->slots_max / C::SLOTS + min((int64_t)p->experts, p->slots_max);
    unsigned grid;
    cudaError_t e = grid_fill(most * ((p->n + C::N - 1) / C::N), 1, &grid);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(gemm<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e != cudaSuccess)
        return e;
    gemm<C><<<grid, C::THREADS, bytes, stream>>>(*p);
    return cudaGetLastError();
}

cudaError_t moe_gemm(const struct moe_gemm *p, cudaStream_t stream)
{
    const uintptr_t bits = (uintptr_t)p->x | (uintptr_t)p->w | (uintptr_t)p->y % 4;
    if (p->experts < 0 || p->experts > MOE_EXPERTS_MAX || p->n < 0 || p->n % 2 || p->k < 1 ||
        p->k % 8 || p->slots_max < 0 || p->slots_max > INT32_MAX || bits % 16)
        return cudaErrorInvalidValue;
    if (p->experts == 0 || p->slots_max == 0 || p->n == 0)
        return cudaSuccess;
    return p->slots_max / p->experts <= 128 ? gemm_launch<few>(p, stream)
                                            : gemm_launch<many>(p, stream);
}
