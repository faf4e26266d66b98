/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kv_pages.h"
#include "kernels/kv_repack.h"
#include "kernels/runs.cuh"

struct repack_runs {
    int64_t n, bytes, split_bytes;
    struct kv_repack p;
    bool to_pages;

    __device__ struct span at(int64_t row) const
    {
        const int request = runs_interval(p.first, p.requests, row);
        if (request == p.requests)
            return {nullptr, nullptr, nullptr};
        const int32_t *table = p.table + request * p.table_pages;
        const int64_t slot = kv_pages_position(row - p.first[request], p.shard, p.shards);
        uint16_t *paged = p.pages + kv_pages_row(table, slot) * p.width;
        uint16_t *packed = p.buffer + row * p.width;
        return {to_pages ? paged : packed, to_pages ? packed : paged, nullptr};
    }
};

static cudaError_t repack_launch(const struct kv_repack *p, bool to_pages, cudaStream_t stream)
{
    if (p->rows < 0 || p->table_pages < 0 || p->requests < 0 || p->width < 0 || p->shard < 0 ||
        p->shard >= p->shards)
        return cudaErrorInvalidValue;
    const int64_t bytes = 2 * (int64_t)p->width;
    const struct repack_runs runs = {p->rows, bytes, bytes, *p, to_pages};
    return runs_launch(runs, (uintptr_t)p->buffer | (uintptr_t)p->pages, stream);
}

cudaError_t kv_repack_gather(const struct kv_repack *p, cudaStream_t stream)
{
    return repack_launch(p, false, stream);
}

cudaError_t kv_repack_scatter(const struct kv_repack *p, cudaStream_t stream)
{
    return repack_launch(p, true, stream);
}
