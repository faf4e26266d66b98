/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/seg.h"

#include <assert.h>

#include "sim/base/ints.h"

struct seg seg_const(int64_t a_ps)
{
    return (struct seg){a_ps, 0, SEG_FOREVER};
}

struct seg seg_add(struct seg x, struct seg y)
{
    return (struct seg){x.a_ps + y.a_ps, x.b_ps + y.b_ps, min_i64(x.n, y.n)};
}

struct seg seg_max(struct seg x, struct seg y)
{
    int64_t n = min_i64(x.n, y.n);
    struct seg high = x, low = y;
    if (y.a_ps > x.a_ps || (y.a_ps == x.a_ps && y.b_ps > x.b_ps)) {
        high = y;
        low = x;
    }
    /* From step gap / closing + 1 on, `low` is above: the larger one up to there, both ends equal.
     */
    int64_t gap = high.a_ps - low.a_ps, closing = low.b_ps - high.b_ps;
    if (closing > 0)
        n = min_i64(n, gap / closing + 1);
    return (struct seg){high.a_ps, high.b_ps, n};
}

struct seg seg_excess(struct seg x, struct seg y)
{
    struct seg rest = {x.a_ps - y.a_ps, x.b_ps - y.b_ps, min_i64(x.n, y.n)};
    return seg_max(rest, seg_const(0));
}

struct seg seg_scale(struct seg x, int64_t times)
{
    return (struct seg){x.a_ps * times, x.b_ps * times, x.n};
}

struct seg seg_pipeline(struct seg c, struct seg x, int64_t parts)
{
    return seg_add(seg_add(c, x), seg_scale(seg_max(c, x), parts - 1));
}

int64_t seg_at(struct seg x, int64_t i)
{
    assert(i >= 0 && i < x.n);
    return x.a_ps + x.b_ps * i;
}

struct seg seg_shift(struct seg x, int64_t k)
{
    assert(k >= 0 && k < x.n);
    return (struct seg){x.a_ps + x.b_ps * k, x.b_ps, x.n == SEG_FOREVER ? x.n : x.n - k};
}

static __int128 sum_of(struct seg x, int64_t k)
{
    return (__int128)k * x.a_ps + (__int128)x.b_ps * k * (k - 1) / 2;
}

int64_t seg_sum(struct seg x, int64_t k)
{
    assert(k >= 0 && k <= x.n);
    __int128 sum = sum_of(x, k);
    assert(sum >= 0 && sum <= INT64_MAX);
    return (int64_t)sum;
}

int64_t seg_steps_to_reach(struct seg x, int64_t elapsed_ps)
{
    /* Sums of non-negative steps ascend: bisect, below a bound found by doubling, so that no sum
     * far beyond elapsed_ps is ever formed. */
    int64_t low = 1, high = 1;
    while (high < x.n && sum_of(x, high) < elapsed_ps) {
        low = high + 1;
        high = high > x.n / 2 ? x.n : 2 * high;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sum_of(x, middle) >= elapsed_ps)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int64_t seg_same_order(struct seg x, int64_t p, struct seg y, int64_t q)
{
    int64_t n = min_i64(x.n, y.n);
    __int128 gap = (__int128)p * x.a_ps - (__int128)q * y.a_ps;
    __int128 growth = (__int128)p * x.b_ps - (__int128)q * y.b_ps;
    if (growth == 0 || (gap > 0) == (growth > 0))
        return n;
    /* A positive gap is gone at ceil(gap / -growth); another one is there at floor(-gap / growth)
     * + 1. */
    __int128 flip = gap > 0 ? (gap - growth - 1) / -growth : -gap / growth + 1;
    return flip < n ? (int64_t)flip : n;
}
