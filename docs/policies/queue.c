/* SPDX-License-Identifier: Apache-2.0
 *
 * queue: while requests wait, the layout that computes most rows a second; else the fastest step.
 * It admits at most admit (no limit) requests.
 */
#include <stdlib.h>
#include <string.h>

#include <wavetank/policy.h>

struct queue {
    int64_t admit;
};

static void *init(const struct wavetank_setup *setup, char *error, size_t error_size)
{
    struct queue *q = calloc(1, sizeof *q);
    (void)error, (void)error_size;
    for (int i = 0; q != NULL && i < setup->n_options; i++)
        if (strcmp(setup->key[i], "admit") == 0)
            q->admit = strtoll(setup->value[i], NULL, 10);
    return q;
}

/* Picoseconds that a layout takes for what we would have more of. */
static double price(const struct wavetank_view *view, int32_t l)
{
    const struct wavetank_candidate *c = &view->candidate[l];
    return view->n_waiting > 0 ? (double)c->step.a_ps / (double)c->rows : (double)c->score.a_ps;
}

static void decide(void *state, const struct wavetank_view *view, struct wavetank_decision *out)
{
    const struct queue *q = state;
    int32_t best = -1;
    for (int32_t l = 0; l < view->n_layouts; l++)
        if (view->candidate[l].verdict == WAVETANK_FITS &&
            (best < 0 || price(view, l) < price(view, best)))
            best = l;
    out->layout = best;
    out->admit_most = q->admit;
}

const struct wavetank_policy *wavetank_policy(void)
{
    static const struct wavetank_policy policy = {
        .abi = WAVETANK_POLICY_ABI,
        .size = sizeof policy,
        .init = init,
        .decide = decide,
        .fini = free,
    };
    return &policy;
}
