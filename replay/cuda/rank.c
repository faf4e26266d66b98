/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/rank.h"

#include "kernels/pick.h"
#include "kernels/values.h"

static int delay(struct gpu_rank *r, cudaStream_t stream, struct err *err)
{
    int64_t most_us = r->job->options.delay_us;
    if (most_us == 0)
        return 0;
    int64_t ns = rng_range(&r->delays, 0, most_us) * 1000;
    return gpu_try(values_delay(ns, stream), "delay", err);
}

static int run(struct gpu_rank *r, const struct link_exchange *e, enum link_channel channel,
               cudaStream_t stream, struct err *err)
{
    if (e == NULL)
        return 0;
    if (delay(r, stream, err) < 0)
        return -1;
    return link_run(r->link, e, r->arena.base, r->arena.base, channel, stream, err);
}

int rank_exchange(struct gpu_rank *r, const struct link_exchange *e, struct err *err)
{
    return run(r, e, LINK_COMPUTE, r->stream, err);
}

int rank_exchange_beside(struct gpu_rank *r, const struct link_exchange *e, struct err *err)
{
    return run(r, e, LINK_BESIDE, r->side, err);
}

int rank_all_reduce(struct gpu_rank *r, uint16_t *x, int64_t n, struct err *err)
{
    if (delay(r, r->stream, err) < 0)
        return -1;
    return link_all_reduce(r->link, x, n, LINK_COMPUTE, r->stream, err);
}

int rank_tap_hidden(struct gpu_rank *r, int layer, struct err *err)
{
    int64_t hidden = r->slice->model.hidden;
    if (r->sample == NULL)
        return 0;
    return gpu_try(pick_rows(r->scratch.taps.hidden + (int64_t)layer * ORACLE_ROWS_MAX * hidden,
                             r->scratch.x, r->scratch.device.sample_home, ORACLE_ROWS_MAX,
                             hidden * (int64_t)sizeof(float), r->stream),
                   "tap", err);
}

int rank_product(struct gpu_rank *r, const struct gemm *m, struct err *err)
{
    return gemm_run(r->gemm, m, r->stream, err);
}
