/* SPDX-License-Identifier: Apache-2.0
 *
 * KV between pages and a contiguous buffer, for a switch of layouts that moves it, one layer at a
 * time. The buffer holds what one shard has of several requests, each in the order of its positions
 * (kernels/kv_pages.h). Rows of 16-byte multiples move 16 bytes at a time, others 2.
 *
 * An owner of whole requests gathers for, or scatters from, shard `shard` of `shards`. The shard at
 * the other end has exactly these rows in its pages: for it they are shard 0 of 1.
 */
#ifndef KERNELS_KV_REPACK_H
#define KERNELS_KV_REPACK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kv_repack {
    uint16_t *buffer;     /* [rows][width] BF16 */
    uint16_t *pages;      /* [page][KV_PAGE_TOKENS][width] BF16 */
    const int32_t *table; /* [requests][table_pages]: pages of this rank's slots */
    const int64_t *first; /* [requests + 1] on the device, from 0: request b has the buffer's rows
                             first[b] up to first[b + 1], kv_pages_shard_tokens() of them; rows from
                             first[requests] on stay */
    int64_t rows, table_pages;
    int requests, width;
    int shard, shards;
};

/* From pages to the buffer, and back. They return what the launch returned; cudaErrorInvalidValue
 * for sizes that cannot be. */
cudaError_t kv_repack_gather(const struct kv_repack *p, cudaStream_t stream);
cudaError_t kv_repack_scatter(const struct kv_repack *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
