/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of query rows over one rank's paged KV (kernels/kv_pages.h), decode and chunked prefill
 * alike: a row sees the first row_slots of its request's slots on this rank, which for position p
 * of a context is kv_pages_shard_tokens(p + 1, shard, shards): causal by global position. Output
 * is normalised over what is seen, with its natural-log sum of exponentials, so that partial
 * results of several ranks combine (kernels/lse_combine.h); nothing seen gives 0 and -infinity.
 *
 * Who attends to what is laid out once per step by attention_plan_make() and read on the device, so
 * that one captured graph serves steps whose contexts differ.
 */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/attention_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct attention {
    const uint16_t *query;      /* [rows][heads][key_dim] BF16 */
    const uint16_t *pages;      /* [page][KV_PAGE_TOKENS][width] BF16 */
    const int32_t *table;       /* [requests][table_pages] */
    const int32_t *row_request; /* [rows]: whose row of `table` */
    const int64_t *row_slots;   /* [rows] */
    int64_t rows;
    const void *plan;  /* the attention_plan of the step, on the device */
    void *workspace;   /* attention_workspace_bytes(); one launch at a time */
    uint16_t *out;     /* [rows][heads][value_dim] BF16 */
    float *lse_base_e; /* [rows][heads] */
    float scale;       /* of scores */
    int64_t table_pages;
    struct attention_bounds bounds; /* of the plan */
    int heads, kv_heads;            /* query heads share a KV head in runs of heads / kv_heads */
    int key_dim, value_dim;
};

/* MLA, absorbed: kv_heads 1, a KV row of `width` = key_dim numbers is the key, its first value_dim
 * numbers are the value. Tensor cores for key_dim 576 and value_dim 512. */
cudaError_t mla_attention(const struct attention *a, cudaStream_t stream);

/* GQA: a KV row is [kv_heads][2][key_dim], key then value of each KV head; value_dim = key_dim.
 * Tensor cores for key_dim 128 and at most 128 query heads a KV head, at
 * addresses that are multiples of 16 bytes. */
cudaError_t gqa_attention(const struct attention *a, cudaStream_t stream);

/* Any dimensions, in plain loops with FP32 sums: what the two above use for shapes that they have
 * no tensor-core kernel for, and what they are tested against. value_at: of the value in a KV
 * head's `kv_dim` numbers. */
cudaError_t plain_attention(const struct attention *a, int kv_dim, int value_at,
                            cudaStream_t stream);

/* How to plan for a shape on the current device: tile_rows, parts. `reserved_sms` stay free. */
cudaError_t mla_attention_bounds(int heads, int reserved_sms, int rows_max,
                                 struct attention_bounds *bounds);
cudaError_t gqa_attention_bounds(int heads, int kv_heads, int reserved_sms, int rows_max,
                                 struct attention_bounds *bounds);

size_t attention_workspace_bytes(const struct attention_bounds *b, int heads, int value_dim);

#ifdef __cplusplus
}
#endif
#endif
