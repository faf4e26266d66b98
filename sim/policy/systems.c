/* SPDX-License-Identifier: Apache-2.0
 *
 * Related systems, by what they may switch and how. Each is a simplification of the one it is named
 * for: docs/policies.md has the sources and says what is left out.
 *
 * flying         Flying Serving (arXiv 2602.22593): DP and TP, moving before the step
 * shift          Shift Parallelism (ArcticInference): TP up to so many rows, else sequence parallel
 * loong          LoongServe (SOSP 2024): how many ranks hold a request's positions
 * drain-restart  engines as they ship: finish the batch, start anew in the other layout
 */
#include <string.h>

#include "sim/base/units.h"
#include "sim/policy/lead.h"

struct systems {
    /* options */
    double margin_frac, dwell_ms;
    int64_t threshold_rows;
    /* compiled */
    bool uses[LAYOUT_MAX];
    int first;     /* of those that it uses */
    int few, many; /* shift: for few rows, and for many */
    int64_t margin_ppm[LAYOUT_MAX], dwell_ps;
    /* between decisions */
    bool has_switched;
    int64_t last_switch_ps;
};

static const struct opt margin_opts[] = {
    {"margin", 0, OPT_F64, offsetof(struct systems, margin_frac), "FRAC", "0.05", 0, 1, NULL,
     "lead over the current layout that a switch needs, as a share of its step time"},
    {0},
};

static const struct opt restart_opts[] = {
    {"margin", 0, OPT_F64, offsetof(struct systems, margin_frac), "FRAC", "0.05", 0, 1, NULL,
     "lead over the current layout that a restart needs, as a share of its step time"},
    {"dwell-ms", 0, OPT_F64, offsetof(struct systems, dwell_ms), "MS", "600000", 0, 1e9, NULL,
     "shortest time from one restart to the next"},
    {0},
};

static const struct opt shift_opts[] = {
    {"threshold", 0, OPT_I64, offsetof(struct systems, threshold_rows), "N", "512", 0, 1e9, NULL,
     "query rows of a step up to which it runs as TP"},
    {0},
};

static int find(enum layout_kind kind, const struct layout *layouts, int n)
{
    for (int l = 0; l < n; l++)
        if (layouts[l].kind == kind)
            return l;
    return -1;
}

/* It switches between the first layouts of two kinds. */
static int use_pair(struct systems *s, enum layout_kind a, enum layout_kind b,
                    const struct layout *layouts, int n, struct err *err)
{
    s->few = find(a, layouts, n);
    s->many = find(b, layouts, n);
    if (s->few < 0 || s->many < 0)
        return err_set(err, "this policy switches between %s and %s: put both in --layouts",
                       layout_kind_names[a], layout_kind_names[b]);
    s->uses[s->few] = s->uses[s->many] = true;
    s->first = s->few < s->many ? s->few : s->many;
    for (int l = 0; l < n; l++)
        s->margin_ppm[l] = (int64_t)(s->margin_frac * PPM + 0.5);
    return 0;
}

static int init_flying(void *state, const char *arg, const struct layout *layouts, int n,
                       struct err *err)
{
    (void)arg;
    return use_pair(state, LAYOUT_TP, LAYOUT_DP, layouts, n, err);
}

static int init_shift(void *state, const char *arg, const struct layout *layouts, int n,
                      struct err *err)
{
    (void)arg;
    return use_pair(state, LAYOUT_TP, LAYOUT_CP, layouts, n, err);
}

static int init_loong(void *state, const char *arg, const struct layout *layouts, int n,
                      struct err *err)
{
    (void)arg;
    return use_pair(state, LAYOUT_DP, LAYOUT_CP, layouts, n, err);
}

static int init_restart(void *state, const char *arg, const struct layout *layouts, int n,
                        struct err *err)
{
    struct systems *s = state;
    (void)arg, (void)layouts, (void)err;
    s->dwell_ps = (int64_t)(s->dwell_ms * (double)PS_PER_MS + 0.5);
    for (int l = 0; l < n; l++) {
        s->uses[l] = true;
        s->margin_ppm[l] = (int64_t)(s->margin_frac * PPM + 0.5);
    }
    return 0;
}

static int start(const void *state)
{
    return ((const struct systems *)state)->first;
}

/* A request that only another layout can hold is served there all the same. */
static bool must_leave(const struct systems *s, const struct policy_view *view)
{
    for (int l = 0; l < view->n; l++)
        if (s->uses[l] && view->candidate[l].verdict == FITS)
            return false;
    return true;
}

/* The fastest of its layouts, beyond the margin. */
static struct decision decide_fastest(void *state, const struct policy_view *view)
{
    const struct systems *s = state;
    struct candidate own[LAYOUT_MAX];
    struct policy_view restricted = *view;
    if (!must_leave(s, view)) {
        memcpy(own, view->candidate, (size_t)view->n * sizeof *own);
        for (int l = 0; l < view->n; l++)
            own[l].verdict = s->uses[l] ? own[l].verdict : FITS_NEVER;
        restricted.candidate = own;
    }
    struct lead lead = lead_find(&restricted, s->margin_ppm);
    bool stays = lead.pick == view->current;
    bool early = s->has_switched && view->now_ps - s->last_switch_ps < s->dwell_ps &&
                 view->candidate[view->current].verdict == FITS;
    return (struct decision){
        .layout = early ? view->current : lead.pick,
        .wanted = lead.wanted,
        .hold = stays ? lead.hold : 1,
    };
}

/* By rows alone; they stay what they are while only contexts grow. */
static struct decision decide_shift(void *state, const struct policy_view *view)
{
    const struct systems *s = state;
    int64_t rows = view->candidate[s->few].cost.rows;
    int wanted = rows <= s->threshold_rows ? s->few : s->many;
    if (view->candidate[wanted].verdict == FITS)
        return (struct decision){
            .layout = wanted, .wanted = wanted, .hold = wanted == view->current ? SEG_FOREVER : 1};
    struct decision other = decide_fastest(state, view);
    if (view->candidate[view->current].verdict == FITS)
        other.layout = view->current;
    other.wanted = view->candidate[wanted].verdict == FITS_NOT ? wanted : other.layout;
    other.hold = 1;
    return other;
}

static void switched(void *state, int from, int to, int64_t now_ps)
{
    struct systems *s = state;
    (void)from, (void)to;
    s->has_switched = true;
    s->last_switch_ps = now_ps;
}

const struct policy_kind policy_flying = {
    .name = "flying",
    .what = "dp and tp, the faster by a margin, blocking switches (Flying Serving)",
    .may_switch = true,
    .mechanism = MECH_BLOCKING,
    .opts = margin_opts,
    .state_size = sizeof(struct systems),
    .init = init_flying,
    .start = start,
    .decide = decide_fastest,
    .switched = switched,
};

const struct policy_kind policy_shift = {
    .name = "shift",
    .what = "tp for steps of few rows, cp for many, free switches (Shift Parallelism)",
    .may_switch = true,
    .mechanism = MECH_FREE,
    .opts = shift_opts,
    .state_size = sizeof(struct systems),
    .init = init_shift,
    .start = start,
    .decide = decide_shift,
    .switched = switched,
};

const struct policy_kind policy_loong = {
    .name = "loong",
    .what = "cp over all ranks or one (dp), the faster by a margin (LoongServe)",
    .may_switch = true,
    .opts = margin_opts,
    .state_size = sizeof(struct systems),
    .init = init_loong,
    .start = start,
    .decide = decide_fastest,
    .switched = switched,
};

const struct policy_kind policy_drain_restart = {
    .name = "drain-restart",
    .what = "the fastest by a margin, after draining and a restart (engines as they ship)",
    .may_switch = true,
    .mechanism = MECH_RESTART,
    .opts = restart_opts,
    .state_size = sizeof(struct systems),
    .init = init_restart,
    .start = start,
    .decide = decide_fastest,
    .switched = switched,
};
