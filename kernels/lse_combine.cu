/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lse_combine.h"
#include "kernels/vec.cuh"

enum { LOADS = 2 /* partial results of a thread in flight */ };

/* A thread per vector of a (row, head): it works the weights out by itself, since the sums of
 * exponentials are few and cached, and reads results and sums at once, to wait for memory once. */
template <typename In> struct combine {
    struct lse_combine p;

    template <int Vec> __device__ void at(int64_t i) const
    {
        const int64_t pairs = p.rows * p.heads, vecs = p.dim / Vec, pair = i / vecs;
        const float *lse = p.partial_lse_base_e + pair;
        const In *from = static_cast<const In *>(p.partial) + i * Vec;
        float max = -INFINITY, total = 0, sum[Vec] = {};
        for (int first = 0; first < p.partials; first += LOADS) {
            float x[LOADS][Vec], l[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++) {
                l[k] = -INFINITY;
                if (first + k < p.partials) {
                    l[k] = lse[(first + k) * pairs];
                    vec_load(x[k], from + (first + k) * pairs * p.dim);
                }
            }
            add(max, total, sum, l, x);
        }
        const float scale = total != 0 ? 1 / total : 0;
#pragma unroll
        for (int v = 0; v < Vec; v++)
            sum[v] *= scale;
        vec_store(p.out + i * Vec, sum);
        if (i == pair * vecs && p.out_lse_base_e)
            p.out_lse_base_e[pair] = max + logf(total);
    }

    /* total and sum are relative to exp(max). Without a finite maximum, 0 serves: exp(-infinity) =
     * 0. What has no weight may be NaN. */
    template <int Vec>
    static __device__ void add(float &max, float &total, float (&sum)[Vec], const float (&l)[LOADS],
                               const float (&x)[LOADS][Vec])
    {
        const float before = max;
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            max = fmaxf(max, l[k]);
        const float base = max == -INFINITY ? 0 : max, scale = expf(before - base);
        total *= scale;
#pragma unroll
        for (int v = 0; v < Vec; v++)
            sum[v] *= scale;
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            const float weight = expf(l[k] - base);
            total += weight;
            if (weight != 0)
#pragma unroll
                for (int v = 0; v < Vec; v++)
                    sum[v] += weight * x[k][v];
        }
    }
};

template <typename In> static cudaError_t launch(const struct lse_combine *p, cudaStream_t stream)
{
    const combine<In> each = {*p};
    const uintptr_t bits = (uintptr_t)p->partial | (uintptr_t)p->out;
    return vec_launch(each, p->rows * p->heads * p->dim, vec_is_wide(bits, p->dim), stream);
}

cudaError_t lse_combine(const struct lse_combine *p, cudaStream_t stream)
{
    if (p->rows < 0 || p->partials < 1 || p->heads < 1 || p->dim < 1)
        return cudaErrorInvalidValue;
    return p->partial_is_bf16 ? launch<uint16_t>(p, stream) : launch<float>(p, stream);
}
