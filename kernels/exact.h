/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain arithmetic in double for the oracle of replay: products with matrices that are worked out
 * by hash where they are multiplied, or read from stored rows, and what a layer does between them.
 * Shares nothing with the kernels that it is there to check, and is to be read rather than fast.
 * The same inputs give the same bits on every GPU.
 *
 * All pointers are to device memory, all distances are in numbers. Everything is launched on the
 * default stream; launchers return what the launch returned, cudaErrorInvalidValue for sizes that
 * cannot be.
 */
#ifndef KERNELS_EXACT_H
#define KERNELS_EXACT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of made-up numbers: (i, j) is value(seed, tag, a, i, c, j) of replay/values.c, divided
 * by `divisor` and rounded to BF16 again. */
struct exact_values {
    uint64_t seed;
    int tag;
    int64_t a, c;
    double divisor;
};

/* A matrix of stored rows: (i, j) lies in chunk i / EXACT_CHUNK_ROWS, from its i %
 * EXACT_CHUNK_ROWS rows of `row` numbers on. */
enum { EXACT_CHUNK_ROWS = 4096, EXACT_CHUNKS_MAX = 256 };
struct exact_stored {
    const double *chunk[EXACT_CHUNKS_MAX];
    int64_t row;
};

/* to[i * columns + j] = (first_row + i, j) */
cudaError_t exact_fill(double *to, const struct exact_values *v, int64_t first_row, int64_t rows,
                       int64_t columns);

/* For each batch b: y[i][j] = sum over k of x[i][k] w[j][k], or w[k][j] when transposed. */
struct exact_product {
    const double *x; /* of batch b, row i: from x + b * x_batch + i * x_row on */
    double *y;       /* likewise */
    int64_t x_batch, x_row, y_batch, y_row;
    int64_t batches, m, n, k;            /* x [m][k], y [m][n] */
    int64_t w_row;                       /* w[0][0] of batch 0 is (w_row, 0) of the matrix */
    int64_t w_batch_row, w_batch_column; /* how far into the matrix w moves from batch to batch */
    bool transposed;
    double *workspace; /* EXACT_WORKSPACE_NUMBERS */
};
enum { EXACT_WORKSPACE_NUMBERS = 1 << 23 };

/* A number of w is worked out once for all of x, up to 64 rows. */
cudaError_t exact_product_values(const struct exact_product *p, const struct exact_values *w);
cudaError_t exact_product_stored(const struct exact_product *p, const struct exact_stored *w);

/* y = x / sqrt(mean of squares + 1e-6), both [rows][width]. */
cudaError_t exact_norm(double *y, const double *x, int64_t rows, int64_t width);

/* Rotary embedding of heads of one position: width numbers each, `distance` apart; pairs (2i, 2i +
 * 1) turn by position * 10000^(-2i / width). */
cudaError_t exact_rotate(double *x, int64_t heads, int64_t distance, int width, int64_t position);

/* x [rows][width] = softmax(x / divisor) in place, lse [rows] its log of the sum of
 * exponentials. */
cudaError_t exact_softmax(double *x, double *lse, double divisor, int64_t rows, int64_t width);

/* gate = silu(gate) * up, n numbers. */
cudaError_t exact_swiglu(double *gate, const double *up, int64_t n);

/* y += scale * x, n numbers. */
cudaError_t exact_add(double *y, double scale, const double *x, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
