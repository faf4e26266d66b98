/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dop.h"
#include "kernels/runs.cuh"

/* One run is one head of one row. */
struct pack_runs {
    int64_t n, bytes, split_bytes;
    struct dop_queries p;

    __device__ struct span at(int64_t run) const
    {
        const int64_t row = run / p.heads;
        const int owner = runs_interval(p.first, p.owners, row);
        if (owner == p.owners)
            return {nullptr, nullptr, nullptr};
        const int64_t there = run - p.first[owner] * p.heads;
        return {p.to[owner] + there * (p.nope_dim + p.rope_dim), p.nope + run * p.nope_dim,
                p.rope + run * p.rope_dim};
    }
};

cudaError_t dop_pack_queries(const struct dop_queries *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->owners < 1 || p->owners > DOP_OWNERS_MAX || p->heads < 1 ||
        p->nope_dim < 0 || p->rope_dim < 0)
        return cudaErrorInvalidValue;
    const int64_t nope_bytes = 2 * (int64_t)p->nope_dim, rope_bytes = 2 * (int64_t)p->rope_dim;
    const struct pack_runs runs = {p->rows * p->heads, nope_bytes + rope_bytes, nope_bytes, *p};
    uint64_t bits = (uintptr_t)p->nope | (uintptr_t)p->rope | (uint64_t)nope_bytes;
    for (int o = 0; o < p->owners; o++)
        bits |= (uintptr_t)p->to[o];
    return runs_launch(runs, bits, stream);
}

/* [outer][inner][run] to [inner][outer][run]: one run is the heads of one row on one rank. */
struct swap_runs {
    int64_t n, bytes, split_bytes;
    const uint16_t *from;
    uint16_t *to;
    int64_t outer, inner, width;

    __device__ struct span at(int64_t run) const
    {
        const int64_t o = run / inner, i = run - o * inner;
        return {to + (i * outer + o) * width, from + run * width, nullptr};
    }
};

static cudaError_t swap_launch(const struct dop_rows *p, bool rank_first, cudaStream_t stream)
{
    if (p->rows < 0 || p->ranks < 1 || p->heads < 1 || p->dim < 0)
        return cudaErrorInvalidValue;
    const int64_t width = (int64_t)p->heads * p->dim, bytes = 2 * width;
    const struct swap_runs runs = {p->rows * p->ranks,
                                   bytes,
                                   bytes,
                                   p->from,
                                   p->to,
                                   rank_first ? p->ranks : p->rows,
                                   rank_first ? p->rows : p->ranks,
                                   width};
    return runs_launch(runs, (uintptr_t)p->from | (uintptr_t)p->to, stream);
}

cudaError_t dop_unpack_queries(const struct dop_rows *p, cudaStream_t stream)
{
    return swap_launch(p, true, stream);
}

cudaError_t dop_pack_outputs(const struct dop_rows *p, cudaStream_t stream)
{
    return swap_launch(p, false, stream);
}
