/* SPDX-License-Identifier: Apache-2.0
 *
 * fixed:<layout>: what engines do today.
 */
#include <string.h>

#include "sim/policy/policy.h"

struct fixed {
    int layout;
};

static int init(void *state, const char *arg, const struct layout *layouts, int n, struct err *err)
{
    struct fixed *f = state;
    const char *names[LAYOUT_MAX];
    for (int i = 0; i < n; i++) {
        names[i] = layouts[i].name;
        if (arg != NULL && strcmp(layouts[i].name, arg) == 0) {
            f->layout = i;
            return 0;
        }
    }
    const char *near = arg ? err_nearest(arg, names, n) : NULL;
    return err_set(err, "policy fixed: %s%s%s is not in --layouts%s%s%s", arg ? "\"" : "a layout",
                   arg ? arg : "", arg ? "\"" : "", near ? " (did you mean \"" : "",
                   near ? near : "", near ? "\"?)" : "; write fixed:tp");
}

static int start(const void *state)
{
    return ((const struct fixed *)state)->layout;
}

static struct decision decide(void *state, const struct policy_view *view)
{
    const struct fixed *f = state;
    (void)view;
    return (struct decision){.layout = f->layout, .wanted = f->layout, .hold = SEG_FOREVER};
}

const struct policy_kind policy_fixed = {
    .name = "fixed",
    .what = "one layout from start to end: fixed:tp",
    .state_size = sizeof(struct fixed),
    .init = init,
    .start = start,
    .decide = decide,
};
