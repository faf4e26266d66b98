/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kv_append.h"
#include "kernels/kv_pages.h"
#include "kernels/runs.cuh"

struct append_runs {
    int64_t n, bytes, split_bytes;
    struct kv_append p;

    __device__ struct span at(int64_t row) const
    {
        const int64_t position = p.position[row];
        if (position < 0 || kv_pages_shard(position, p.shards) != p.shard)
            return {nullptr, nullptr, nullptr};
        const int32_t *table = p.table + p.request[row] * p.table_pages;
        const int64_t there = kv_pages_row(table, kv_pages_slot(position, p.shards));
        return {p.pages + there * p.width, p.from + row * p.width, nullptr};
    }
};

cudaError_t kv_append(const struct kv_append *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->table_pages < 0 || p->width < 0 || p->shard < 0 || p->shard >= p->shards)
        return cudaErrorInvalidValue;
    const int64_t bytes = 2 * (int64_t)p->width;
    const struct append_runs runs = {p->rows, bytes, bytes, *p};
    return runs_launch(runs, (uintptr_t)p->from | (uintptr_t)p->pages, stream);
}
