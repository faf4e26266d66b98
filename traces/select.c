/* SPDX-License-Identifier: Apache-2.0
 *
 * Selections: which requests stay, and when they come.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "traces/order.h"

static const uint32_t dropped = UINT32_MAX;

enum lot { LOT_NOT_YET, LOT_KEPT, LOT_DROPPED };

struct keeping {
    const struct trace_select *select;
    struct rng draws;
    unsigned char *lot; /* enum lot of each session: its requests share one */
    uint32_t *new_at;   /* of each request that was looked at, or `dropped` */
};

static bool draw(struct keeping *k, const struct trace_request *r)
{
    bool kept;
    if (r->session == TRACE_NO_SESSION)
        return rng_f64(&k->draws) < k->select->sample_frac;
    if (k->lot[r->session] != LOT_NOT_YET)
        return k->lot[r->session] == LOT_KEPT;
    kept = rng_f64(&k->draws) < k->select->sample_frac;
    k->lot[r->session] = kept ? LOT_KEPT : LOT_DROPPED;
    return kept;
}

/* What waits goes where those go that it waits for. */
static bool is_kept(const struct trace *t, struct keeping *k, size_t at)
{
    const struct trace_select *s = k->select;
    const struct trace_request *r = &t->request[at];
    if (trace_waits_alike(t, at))
        return k->new_at[at - 1] != dropped;
    for (uint32_t i = 0; i < r->n_after; i++)
        if (k->new_at[t->after[r->after_at + i]] == dropped)
            return false;
    if (r->n_after > 0)
        return true;
    return r->arrival_ps >= s->from_ps && (s->to_ps == 0 || r->arrival_ps < s->to_ps) && draw(k, r);
}

static void keep(struct trace *t, const struct trace_select *s, uint64_t seed)
{
    struct keeping k = {.select = s,
                        .lot = xcalloc(t->session.n + 1, sizeof *k.lot),
                        .new_at = xcalloc(t->n, sizeof *k.new_at)};
    size_t n = 0;
    rng_stream(&k.draws, seed, "sample");
    for (size_t i = 0; i < t->n && (s->limit == 0 || n < (size_t)s->limit); i++) {
        k.new_at[i] = is_kept(t, &k, i) ? (uint32_t)n : dropped;
        if (k.new_at[i] != dropped)
            t->request[n++] = t->request[i];
    }
    t->n = n;
    trace_rename_waits(t, k.new_at);
    free(k.lot);
    free(k.new_at);
}

static void cap_waits(struct trace *t, int64_t cap_ps)
{
    for (size_t i = 0; i < t->n; i++) {
        struct trace_request *r = &t->request[i];
        t->waits_capped += r->delay_ps > cap_ps;
        r->delay_ps = r->delay_ps > cap_ps ? cap_ps : r->delay_ps;
    }
}

static int warp(struct trace *t, double rate, struct err *err)
{
    if ((double)t->last_ps / rate >= (double)TRACE_SPAN_MAX_PS)
        return err_set(err, "%s: at %g times its rate the trace is longer than 100 days", t->path,
                       rate);
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].n_after == 0)
            t->request[i].arrival_ps = llround((double)t->request[i].arrival_ps / rate);
    return 0;
}

static int spread(struct trace *t, int64_t spread_ps, uint64_t seed, struct err *err)
{
    struct rng r;
    if (spread_ps > TRACE_SPAN_MAX_PS - t->last_ps)
        return err_set(err, "%s: so spread, the trace is longer than 100 days", t->path);
    rng_stream(&r, seed, "spread");
    for (size_t i = 0, end; i < t->n; i = end) {
        int64_t at_ps = t->request[i].arrival_ps;
        size_t together = 0;
        for (end = i; end < t->n && t->request[end].arrival_ps == at_ps; end++)
            together += t->request[end].n_after == 0;
        for (size_t k = i; k < end && together > 1; k++)
            if (t->request[k].n_after == 0)
                t->request[k].arrival_ps += rng_range(&r, 0, spread_ps - 1);
    }
    return 0;
}

int trace_select(struct trace *t, const struct trace_select *s, uint64_t seed, struct err *err)
{
    keep(t, s, seed);
    if (t->n == 0)
        return err_set(err, "%s: the selection (--from, --to, --sample) keeps no request", t->path);
    if (s->wait_cap_ps > 0)
        cap_waits(t, s->wait_cap_ps);
    if (order_requests(t, err) < 0 || (s->rate != 1 && warp(t, s->rate, err) < 0) ||
        (s->spread_ps > 0 && spread(t, s->spread_ps, seed, err) < 0))
        return -1;
    return s->rate != 1 || s->spread_ps > 0 ? order_requests(t, err) : 0;
}
