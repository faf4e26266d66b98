/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy: the fastest layout that fits, at every step, whatever the switch costs.
 */
#include <wavetank/policy.h>

static void *init(const struct wavetank_setup *setup, char *error, size_t error_size)
{
    static int nothing; /* a policy without state still has to point somewhere */
    (void)setup, (void)error, (void)error_size;
    return &nothing;
}

static void decide(void *state, const struct wavetank_view *view, struct wavetank_decision *out)
{
    int32_t best = -1;
    (void)state;
    for (int32_t l = 0; l < view->n_layouts; l++)
        if (view->candidate[l].verdict == WAVETANK_FITS &&
            (best < 0 || view->candidate[l].score.a_ps < view->candidate[best].score.a_ps))
            best = l;
    out->layout = best;
}

const struct wavetank_policy *wavetank_policy(void)
{
    static const struct wavetank_policy policy = {
        .abi = WAVETANK_POLICY_ABI,
        .size = sizeof policy,
        .init = init,
        .decide = decide,
    };
    return &policy;
}
