/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/policy/lead.h"

#include <assert.h>

#include "sim/base/ints.h"

/* Steps for which the order of two candidates, ties included, cannot change. */
static int64_t order_span(const struct policy_view *v, int a, int b)
{
    struct seg x = v->candidate[a].score, y = v->candidate[b].score;
    return min_i64(seg_same_order(x, 1, y, 1), seg_same_order(y, 1, x, 1));
}

static int fastest_that_fits(const struct policy_view *v)
{
    int best = -1;
    for (int l = 0; l < v->n; l++)
        if (v->candidate[l].verdict == FITS &&
            (best < 0 || v->candidate[l].score.a_ps < v->candidate[best].score.a_ps))
            best = l;
    assert(best >= 0);
    return best;
}

static bool leads(const struct policy_view *v, int l, int64_t margin_ppm, int64_t *span)
{
    struct seg current = v->candidate[v->current].score, other = v->candidate[l].score;
    *span = seg_same_order(current, PPM - margin_ppm, other, PPM);
    return (__int128)(PPM - margin_ppm) * current.a_ps > (__int128)PPM * other.a_ps;
}

struct lead lead_find(const struct policy_view *v, const int64_t *margin_ppm)
{
    struct lead found = {.pick = v->current, .wanted = v->current, .hold = SEG_FOREVER};
    int leader[LAYOUT_MAX], n = 0;

    if (v->candidate[v->current].verdict != FITS) {
        int best = fastest_that_fits(v);
        return (struct lead){.pick = best, .wanted = best, .hold = 1};
    }
    for (int l = 0; l < v->n; l++) {
        int64_t span;
        if (l == v->current || v->candidate[l].verdict == FITS_NEVER)
            continue;
        if (leads(v, l, margin_ppm[l], &span))
            leader[n++] = l;
        found.hold = min_i64(found.hold, span);
    }
    int64_t pick_ps = INT64_MAX, wanted_ps = INT64_MAX;
    for (int i = 0; i < n; i++) {
        const struct candidate *c = &v->candidate[leader[i]];
        if (c->score.a_ps < wanted_ps) {
            wanted_ps = c->score.a_ps;
            found.wanted = leader[i];
        }
        if (c->verdict == FITS && c->score.a_ps < pick_ps) {
            pick_ps = c->score.a_ps;
            found.pick = leader[i];
        }
        for (int k = 0; k < i; k++)
            found.hold = min_i64(found.hold, order_span(v, leader[i], leader[k]));
    }
    return found;
}
