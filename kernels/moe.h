/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixture of experts on the rank that holds experts [first, end): every rank has all rows, chooses
 * for all of them, computes its own experts' parts, and the ranks' sum is the layer's output. What
 * goes to which expert stays on the device, so that a captured graph serves any routing. BF16
 * inputs, FP32 sums. Launchers return what the launch returned; cudaErrorInvalidValue for sizes
 * that cannot be. The same inputs give the same bits.
 */
#ifndef KERNELS_MOE_H
#define KERNELS_MOE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOE_EXPERTS_MAX = 512, MOE_TOPK_MAX = 16 };

struct moe_routes {
    int32_t *expert;   /* [rows][topk], best first, ties to the lower index */
    float *weight;     /* [rows][topk]: softmax over the chosen logits */
    int32_t *slot;     /* [rows][topk]: where the pair lies among this rank's, by expert and then by
                          row; -1: another rank's */
    int32_t *slot_row; /* [rows * topk]: which row a slot is of */
    int32_t *first;    /* [end - first + 1]: an expert's slots, from its own to the next one's */
};

/* logits [rows][experts] FP32 */
cudaError_t moe_route(const struct moe_routes *r, const float *logits, int64_t rows, int experts,
                      int topk, int first_expert, int end_expert, cudaStream_t stream);

/* For each slot s of expert e: y[s] = w[e] x[row], row = slot_row[s] or, where that is NULL, s.
 * Tensor cores; k a multiple of 8, n of 2; x and w on 16 bytes, y on 4. */
struct moe_gemm {
    const uint16_t *x;       /* [rows][k] BF16 */
    const uint16_t *w;       /* [experts][n][k] BF16 */
    uint16_t *y;             /* [slots][n] BF16 */
    const int32_t *first;    /* [experts + 1] on the device */
    const int32_t *slot_row; /* or NULL */
    int64_t slots_max; /* there are no more; by experts, they also choose the shape of tiles */
    int experts, n, k;
};
cudaError_t moe_gemm(const struct moe_gemm *p, cudaStream_t stream);

/* y [rows][width] BF16 = (add [rows][width] BF16, or 0 where it is NULL) + sum over the row's slots
 * here of weight * part [slots][width] BF16, in FP32. y may be add. */
cudaError_t moe_combine(uint16_t *y, const uint16_t *add, const uint16_t *part,
                        const struct moe_routes *r, int64_t rows, int topk, int width,
                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
