/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over disjoint sets of positions, from the results over each: with natural-log sums of
 * exponentials L_i, L = ln sum exp(L_i) and O = sum exp(L_i - L) O_i. A partial result with
 * L_i = -infinity is of an empty set, and its O_i does not count, whatever it holds. When all are
 * empty, O = 0 and L = -infinity. NaN or +infinity in L_i shows in the result.
 */
#ifndef KERNELS_LSE_COMBINE_H
#define KERNELS_LSE_COMBINE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lse_combine {
    const void *partial;             /* [partials][rows][heads][dim], FP32 or BF16 */
    const float *partial_lse_base_e; /* [partials][rows][heads] */
    uint16_t *out;                   /* [rows][heads][dim] BF16 */
    float *out_lse_base_e;           /* [rows][heads]; may be NULL */
    int64_t rows;
    int partials, heads, dim;
    bool partial_is_bf16;
};

/* Returns what the launch returned; cudaErrorInvalidValue for sizes that cannot be. */
cudaError_t lse_combine(const struct lse_combine *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
