/* SPDX-License-Identifier: Apache-2.0
 *
 * A warp's matrix products (PTX mma.sync and ldmatrix): BF16 operands, FP32 sums, all in registers.
 *
 * A sum [16][8] has in lane l the rows l / 4 (numbers 0, 1) and l / 4 + 8 (2, 3), columns
 * l % 4 * 2 and the next. A [16][16]: the same rows and columns (registers 0, 1), then eight
 * columns on (2, 3), so that two sums side by side, rounded, are an A.
 */
#ifndef KERNELS_MMA_CUH
#define KERNELS_MMA_CUH

#include <cuda_bf16.h>
#include <stdint.h>

/* Four matrices of 8 rows of 16 bytes: lane l gives the shared-memory address of row l % 8 of
 * matrix l / 8. For mma_16x8, A is four: upper left, lower left, upper right, lower right; B is two
 * [8 columns][8 of the inner dimension]. */
static __device__ inline void mma_load(uint32_t (&m)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

/* The same of matrices stored [8 of the inner dimension][8 columns]. */
static __device__ inline void mma_load_transposed(uint32_t (&m)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

/* sum [16][8] += a [16][16] b [16][8] */
static __device__ inline void mma_16x8(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two numbers side by side in BF16. */
static __device__ inline uint32_t mma_pair(float left, float right)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(left, right);
    return *reinterpret_cast<const uint32_t *>(&pair);
}

#endif
