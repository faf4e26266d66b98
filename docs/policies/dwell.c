/* SPDX-License-Identifier: Apache-2.0
 *
 * dwell: the fastest layout that fits, but at least dwell_ms (50) in one before the next switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wavetank/policy.h>

struct dwell {
    int64_t ps;
};

static void *init(const struct wavetank_setup *setup, char *error, size_t error_size)
{
    double ms = 50;
    for (int i = 0; i < setup->n_options; i++) {
        if (strcmp(setup->key[i], "dwell_ms") != 0) {
            snprintf(error, error_size, "no option \"%s\": there is dwell_ms", setup->key[i]);
            return NULL;
        }
        ms = strtod(setup->value[i], NULL);
    }
    struct dwell *d = malloc(sizeof *d);
    if (d != NULL)
        d->ps = (int64_t)(ms * 1e9);
    return d;
}

static void decide(void *state, const struct wavetank_view *view, struct wavetank_decision *out)
{
    const struct dwell *d = state;
    const struct wavetank_candidate *candidate = view->candidate;
    int64_t hold;
    bool stays = view->since_switch_ps >= 0 && view->since_switch_ps < d->ps;
    if (candidate[view->current].verdict == WAVETANK_FITS && stays)
        return; /* out says so already */
    for (int32_t l = 0; l < view->n_layouts; l++)
        if (candidate[l].verdict == WAVETANK_FITS &&
            (candidate[out->layout].verdict != WAVETANK_FITS ||
             view->leads(view, out->layout, l, 0, &hold)))
            out->layout = l;
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
