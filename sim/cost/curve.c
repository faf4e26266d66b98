/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/curve.h"

#include <assert.h>

static int64_t round_ps(double ps)
{
    return (int64_t)(ps + 0.5);
}

void curve_through(struct curve *c, int n, const int64_t *tokens, const double *ps)
{
    assert(n >= 2 && n <= CURVE_PIECES_MAX && tokens[0] == 0);
    c->n = n - 1;
    for (int i = 0; i < c->n; i++) {
        double rise = (ps[i + 1] - ps[i]) / (double)(tokens[i + 1] - tokens[i]);
        assert(tokens[i + 1] > tokens[i] && ps[i] >= 0 && rise >= 0);
        c->from[i] = tokens[i];
        c->value_ps[i] = round_ps(ps[i]);
        c->slope_ps[i] = round_ps(rise);
    }
    c->from[c->n] = INT64_MAX;
}

struct seg curve_seg(const struct curve *c, int64_t tokens)
{
    /* Most contexts are beyond the last knot. */
    int i = c->n - 1;
    while (tokens < c->from[i])
        i--;
    int64_t left = c->from[i + 1] == INT64_MAX ? SEG_FOREVER : c->from[i + 1] - tokens;
    return (struct seg){c->value_ps[i] + c->slope_ps[i] * (tokens - c->from[i]), c->slope_ps[i],
                        left};
}
