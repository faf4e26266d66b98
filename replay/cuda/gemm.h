/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of BF16 with FP32 sums by cuBLASLt: y = x w^T, row by row. Algorithms are looked
 * up once per shape and kept, so that a captured graph holds nothing but kernels.
 */
#ifndef REPLAY_CUDA_GEMM_H
#define REPLAY_CUDA_GEMM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/err.h"

struct gemm_context;

/* With a workspace of its own: products of one context follow each other. */
struct gemm_context *gemm_new(struct err *err);
void gemm_free(struct gemm_context *g);

/* Distances in numbers. No rows: nothing happens. */
struct gemm {
    const uint16_t *x; /* [rows][k], x_row from row to row */
    const uint16_t *w; /* [n][k], or [k][n] when `k_first`; w_row from row to row of that */
    void *y;           /* [rows][n] BF16, or FP32 when `y_is_fp32` */
    int64_t rows, n, k;
    int64_t x_row, w_row, y_row;
    int batch; /* so many products side by side, such as heads; 0 and 1 are one */
    int64_t x_batch, w_batch, y_batch;
    bool k_first, y_is_fp32;
};

int gemm_run(struct gemm_context *g, const struct gemm *m, cudaStream_t stream, struct err *err);

#endif
