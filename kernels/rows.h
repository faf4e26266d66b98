/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer does to rows between its matrix products. Launchers return what the launch returned;
 * cudaErrorInvalidValue for sizes that cannot be. No rows: nothing happens. Distances are in
 * numbers; the wide path is 16 bytes, with a scalar one where sizes or addresses do not allow it.
 */
#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y [rows][width] BF16 = x [rows][width] FP32 / sqrt(mean of squares + 1e-6). */
cudaError_t rows_norm(uint16_t *y, const float *x, int64_t rows, int width, cudaStream_t stream);

/* Rotary embedding, pairs (2i, 2i + 1) by angle position * 10000^(-2i / width): angles in double,
 * since positions are large. from and to may be the same place, else do not overlap. width is even
 * and at most ROWS_ROTATE_WIDTH_MAX. */
enum { ROWS_ROTATE_WIDTH_MAX = 512 };

struct rows_rotate {
    const uint16_t *from; /* of row r, head h: from + r * from_row + h * from_head, width numbers */
    uint16_t *to;         /* likewise */
    const int64_t *position; /* [rows] */
    int64_t rows, from_row, from_head, to_row, to_head;
    int heads, width;
};
cudaError_t rows_rotate(const struct rows_rotate *p, cudaStream_t stream);

/* x [n] FP32 += the sum of parts [parts][n] BF16, added up in FP32 in this order. */
cudaError_t rows_add(float *x, const uint16_t *parts, int n_parts, int64_t n, cudaStream_t stream);

/* y [n] BF16 = the sum of parts [parts][n] BF16, added up in FP32 in this order; y may be parts. */
cudaError_t rows_sum(uint16_t *y, const uint16_t *parts, int n_parts, int64_t n,
                     cudaStream_t stream);

/* act [rows][inter] BF16 = silu(gate) * up, gate_up [rows][2 * inter] BF16: gate, then up. */
cudaError_t rows_swiglu(uint16_t *act, const uint16_t *gate_up, int64_t rows, int inter,
                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
