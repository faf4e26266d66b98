/* SPDX-License-Identifier: Apache-2.0
 *
 * New KV rows into this rank's pages (kernels/kv_pages.h), one layer at a time. Every rank may be
 * given every row: it stores those whose position its shard holds. No two rows may have the same
 * request and position. Rows of 16-byte multiples move 16 bytes at a time, others 2.
 */
#ifndef KERNELS_KV_APPEND_H
#define KERNELS_KV_APPEND_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kv_append {
    const uint16_t *from;    /* [rows][width] BF16 */
    const int32_t *request;  /* [rows]: whose row of `table` */
    const int64_t *position; /* [rows]: in the request's context; negative rows are left out */
    const int32_t *table;    /* [requests][table_pages]: pages of this rank's slots */
    uint16_t *pages;         /* [page][KV_PAGE_TOKENS][width] BF16 */
    int64_t rows, table_pages;
    int width;
    int shard, shards; /* this rank's; 0 of 1 holds all positions */
};

/* Returns what the launch returned; cudaErrorInvalidValue for sizes that cannot be. */
cudaError_t kv_append(const struct kv_append *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
