/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of tiles that the plan has cut: each item of such a tile leaves what it has seen of it,
 * normalised, in FP32 and with its natural-log sum of exponentials in the workspace, and a second
 * kernel merges them into the final place. Shared by the attention kernels.
 */
#ifndef KERNELS_ATTENTION_MERGE_CUH
#define KERNELS_ATTENTION_MERGE_CUH

#include "kernels/attention.h"

/* Of a (row, head) of an item, at attention_partials_pair(). Where a row of the item sees nothing
 * its sum is -infinity, and its output is not read. */
struct attention_partials {
    float *out;        /* [partials][tile_rows][heads][value_dim] */
    float *lse_base_e; /* [partials][tile_rows][heads] */
};

static inline __host__ __device__ int64_t attention_partials_pair(const struct attention *a,
                                                                  int partial, int row, int head)
{
    return ((int64_t)partial * a->bounds.tile_rows + row) * a->heads + head;
}

static inline __host__ __device__ struct attention_partials
attention_partials_of(const struct attention *a, int partials_max)
{
    float *out = static_cast<float *>(a->workspace);
    return {out, out + attention_partials_pair(a, partials_max, 0, 0) * a->value_dim};
}

/* Merges every tile that the plan says was cut; after the kernel that wrote the partial results,
 * on its stream. value_dim is a multiple of 4. */
cudaError_t attention_merge(const struct attention *a, cudaStream_t stream);

#endif
