/* SPDX-License-Identifier: Apache-2.0
 *
 * The made-up numbers of replay (uniform in [-1, 1], a hash of what they are, exact in BF16)
 * written where they belong, bit for bit what the CPU works out; and checksums of KV rows.
 * Launchers return what the launch returned; cudaErrorInvalidValue for sizes that cannot be.
 */
#ifndef KERNELS_VALUES_H
#define KERNELS_VALUES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* value(seed, tag, a, b, c, d) of replay/values.c; divided by `divisor` and rounded again where
 * that is not 1. */
struct values_key {
    uint64_t seed;
    int tag;
    double divisor;
};

/* to[i * to_row + j] = value(a, first_b + i, c, first_d + j), rows x columns, BF16: a weight matrix
 * or part of one (a matrix, b row, c layer, d column). to_row in numbers. With `to_column` not 1, j
 * moves by it: a transposed place. */
struct values_matrix {
    struct values_key key;
    uint16_t *to;
    int64_t a, first_b, c, first_d;
    int64_t rows, columns, to_row, to_column;
};
cudaError_t values_fill_matrix(const struct values_matrix *p, cudaStream_t stream);

/* to[i * columns + j] = value(a[i], b[i], 0, j) as FP32: hidden rows of (request, position). */
cudaError_t values_fill_rows(float *to, const struct values_key *key, const int64_t *a,
                             const int64_t *b, int64_t rows, int columns, cudaStream_t stream);

/* One request's positions [0, tokens) of one layer that a shard holds (kernels/kv_pages.h), columns
 * [first_d, first_d + width) of the whole KV row. */
struct values_kv {
    struct values_key key;
    uint16_t *pages;      /* [page][KV_PAGE_TOKENS][width] BF16 */
    const int32_t *table; /* the request's, on the device */
    int64_t req, layer, tokens;
    int64_t first_d;
    int width, shard, shards;
};
/* Written as history: value(req, position, layer, first_d + j). */
cudaError_t values_fill_kv(const struct values_kv *p, cudaStream_t stream);
/* *sum += over all numbers held, mod 2^64, what value() hashes with d = (first_d + j) << 16 | the
 * 16 bits there: in any order, on any rank, the same numbers add the same. sum on the device. */
cudaError_t values_checksum_kv(const struct values_kv *p, uint64_t *sum, cudaStream_t stream);

/* Write 0xFFFF over the rows of these pages: pages [n] on the device. */
cudaError_t values_poison_pages(uint16_t *pages, const int32_t *page, int64_t n, int width,
                                cudaStream_t stream);

/* Spin on the device for about so many nanoseconds: to shake out missing synchronisation. */
cudaError_t values_delay(int64_t ns, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
