/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of DOP's two exchanges (SPLASH, Eq. 4): queries from head shards to the requests' owners,
 * attention outputs back. All tensors BF16 and on the device; heads are those of one rank. Rows of
 * 16-byte multiples at 16-byte addresses move 16 bytes at a time, others 2. No buffers may overlap.
 * Launchers return what the launch returned; cudaErrorInvalidValue for sizes that cannot be.
 *
 * What arrives on the way back, [rows of owner][heads][dim] from each owner in turn, is the result
 * as it stands, since rows are sorted by owner: receive it in place, no kernel is needed.
 */
#ifndef KERNELS_DOP_H
#define KERNELS_DOP_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DOP_OWNERS_MAX = 128 };

struct dop_queries {
    const uint16_t *nope; /* [rows][heads][nope_dim], rows sorted by owner */
    const uint16_t *rope; /* [rows][heads][rope_dim] */
    const int64_t *first; /* [owners + 1] on the device, from 0: owner o has rows first[o] up to
                             first[o + 1]; rows from first[owners] on have none and stay */
    uint16_t *to[DOP_OWNERS_MAX]; /* [owners], each [rows of o][heads][nope_dim + rope_dim]: send
                                     buffers, or memory of the owners themselves */
    int64_t rows;
    int owners, heads, nope_dim, rope_dim;
};

/* Fuse the two parts of each head's query and group the rows by owner. */
cudaError_t dop_pack_queries(const struct dop_queries *p, cudaStream_t stream);

struct dop_rows {
    const uint16_t *from;
    uint16_t *to;
    int64_t rows; /* of one owner */
    int ranks, heads, dim;
};

/* At the owner: from [ranks][rows][heads][dim] to [rows][ranks * heads][dim]. */
cudaError_t dop_unpack_queries(const struct dop_rows *p, cudaStream_t stream);

/* The way back: from [rows][ranks * heads][dim] to [ranks][rows][heads][dim]. */
cudaError_t dop_pack_outputs(const struct dop_rows *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
