/* SPDX-License-Identifier: Apache-2.0
 *
 * Warpgroup matrix products on Hopper (PTX wgmma): BF16 operands in shared memory, FP32 sums in
 * registers. Operands are stored as TMA's 128-byte swizzle leaves boxes of 64 columns: 128 bytes a
 * row, 16-byte units permuted by the row's number modulo 8, boxes at multiples of 1,024 bytes.
 *
 * Row r and columns c, c + 1 of a sum [64][n] are held by thread t of the warpgroup where
 * r = t / 32 * 16 + t % 32 / 4 + 8 * k and c = 8 * i + t % 4 * 2: numbers 4 * i + 2 * k and the
 * next.
 */
#ifndef KERNELS_WGMMA_CUH
#define KERNELS_WGMMA_CUH

#include "kernels/mbarrier.cuh"

enum { WGMMA_K = 16, WGMMA_BOX_COLUMNS = 64 };

/* Keeps the compiler from moving uses of a sum, an array of floats, past this point. */
template <typename Sum> static __device__ inline void wgmma_pin(Sum &sum)
{
#pragma unroll
    for (int i = 0; i < (int)(sizeof sum / sizeof(float)); i++)
        asm volatile("" : "+f"(reinterpret_cast<float *>(&sum)[i])::"memory");
}

/* Before products that add to the sum, whatever touched it before. */
template <typename Sum> static __device__ inline void wgmma_start(Sum &sum)
{
    wgmma_pin(sum);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Returns when all products so far are done: the sum may be read, operands be overwritten. */
template <typename Sum> static __device__ inline void wgmma_finish(Sum &sum)
{
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
    wgmma_pin(sum);
}

/* Strides in bytes: between groups of 8 rows, and between boxes side by side. */
static __device__ inline uint64_t wgmma_operand(const void *box, int group_bytes, int box_bytes)
{
    const uint64_t swizzle_128 = 1;
    return (uint64_t)(shared_address(box) >> 4) | (uint64_t)(box_bytes >> 4) << 16 |
           (uint64_t)(group_bytes >> 4) << 32 | swizzle_128 << 62;
}

/* Rows are rows of A or columns of B, their numbers run along the sum's inner dimension: 16 of
 * them from a column that is a multiple of 16. */
static __device__ inline uint64_t wgmma_rows(const void *box, int column)
{
    return wgmma_operand(static_cast<const char *>(box) + column * 2, 8 * 128, 16);
}

/* Rows are the inner dimension, 16 of them from a row that is a multiple of 16, of boxes of
 * box_bytes side by side that hold the columns of B. */
static __device__ inline uint64_t wgmma_columns(const void *box, int row, int box_bytes)
{
    return wgmma_operand(static_cast<const char *>(box) + row * 128, 8 * 128, box_bytes);
}

#define WGMMA_8(d, i)                                                                              \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define WGMMA_32(d, i) WGMMA_8(d, i), WGMMA_8(d, i + 8), WGMMA_8(d, i + 16), WGMMA_8(d, i + 24)

/* sum [64][64] = A [64][16] B [16][64], both by wgmma_rows(); with `add`, sum += that. */
static __device__ inline void wgmma_64x64(float (&sum)[32], uint64_t a, uint64_t b, bool add)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 " %8, %9, %10, %11, %12, %13, %14, %15, "
                 " %16, %17, %18, %19, %20, %21, %22, %23, "
                 " %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, add, 1, 1, 0, 0;\n"
                 "}"
                 : WGMMA_32(sum, 0)
                 : "l"(a), "l"(b), "r"((int)add));
}

/* The same for [64][128], B by wgmma_columns(). */
static __device__ inline void wgmma_64x128(float (&sum)[64], uint64_t a, uint64_t b, bool add)
{
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
                 "%64, %65, add, 1, 1, 0, 1;\n"
                 "}"
                 : WGMMA_32(sum, 0), WGMMA_32(sum, 32)
                 : "l"(a), "l"(b), "r"((int)add));
}

#undef WGMMA_8
#undef WGMMA_32

#endif
