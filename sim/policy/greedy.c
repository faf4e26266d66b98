/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy: the fastest feasible layout at every step, whatever the switch costs.
 */
#include "sim/policy/lead.h"

static int init(void *state, const char *arg, const struct layout *layouts, int n, struct err *err)
{
    (void)state, (void)arg, (void)layouts, (void)n, (void)err;
    return 0;
}

static struct decision decide(void *state, const struct policy_view *view)
{
    static const int64_t no_margin[LAYOUT_MAX];
    (void)state;
    struct lead lead = lead_find(view, no_margin);
    int64_t hold = lead.pick == view->current ? lead.hold : 1;
    return (struct decision){.layout = lead.pick, .wanted = lead.wanted, .hold = hold};
}

const struct policy_kind policy_greedy = {
    .name = "greedy",
    .what = "the fastest feasible layout at every step (margin 0)",
    .may_switch = true,
    .init = init,
    .decide = decide,
};
