/* SPDX-License-Identifier: Apache-2.0
 *
 * splash: run the fastest feasible layout, and switch once it leads the current one by a margin
 * (Eq. 8 and section 4.2 of the paper). The paper prints no margin; hysteresis options are ours.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/policy/lead.h"

struct splash {
    /* options */
    double margin_frac, return_margin_frac, dwell_ms;
    int64_t persist;
    bool charge;
    /* compiled */
    double direction_frac[LAYOUT_MAX][LAYOUT_MAX]; /* margin.<from>-<to>; 0 with !direction_set */
    bool direction_set[LAYOUT_MAX][LAYOUT_MAX];
    int64_t margin_ppm[LAYOUT_MAX][LAYOUT_MAX], return_margin_ppm, dwell_ps;
    int n;
    /* between decisions */
    bool has_switched;
    int came_from, leader;
    int64_t last_switch_ps, lead_steps;
};

static const struct opt opts[] = {
    {"margin", 0, OPT_F64, offsetof(struct splash, margin_frac), "FRAC", "0.05", 0, 1, NULL,
     "lead over the current layout that a switch needs, as a share of its step time"},
    {"return-margin", 0, OPT_F64, offsetof(struct splash, return_margin_frac), "FRAC", "0", 0, 1,
     NULL, "extra margin for going straight back to the layout before"},
    {"dwell-ms", 0, OPT_F64, offsetof(struct splash, dwell_ms), "MS", "0", 0, 1e9, NULL,
     "shortest stay in a layout"},
    {"persist", 0, OPT_I64, offsetof(struct splash, persist), "N", "1", 1, 1e9, NULL,
     "evaluations in a row that the lead must hold"},
    {"charge", 0, OPT_FLAG, offsetof(struct splash, charge), NULL, "0", 0, 0, NULL,
     "the lead must repay the exposed switch time over the rest of the batch"},
    {0},
};

static int layout_index(const char *name, size_t len, const struct layout *layouts, int n)
{
    for (int i = 0; i < n; i++)
        if (strlen(layouts[i].name) == len && memcmp(layouts[i].name, name, len) == 0)
            return i;
    return -1;
}

static int extra(void *state, const char *key, const char *value, const struct layout *layouts,
                 int n, struct err *err)
{
    struct splash *s = state;
    if (strncmp(key, "margin.", 7) != 0)
        return 0;
    const char *from = key + 7, *dash = strchr(from, '-');
    int a = dash ? layout_index(from, (size_t)(dash - from), layouts, n) : -1;
    int b = dash ? layout_index(dash + 1, strlen(dash + 1), layouts, n) : -1;
    if (a < 0 || b < 0 || a == b)
        return err_set(err,
                       "policy splash: \"%s\" is no direction between two of --layouts; write "
                       "margin.tp-dp=0.1",
                       key);
    if (units_parse_f64(value, key, 0, 1, &s->direction_frac[a][b], err) < 0)
        return -1;
    s->direction_set[a][b] = true;
    return 1;
}

static int64_t ppm(double frac)
{
    return (int64_t)(frac * PPM + 0.5);
}

static int init(void *state, const char *arg, const struct layout *layouts, int n, struct err *err)
{
    struct splash *s = state;
    (void)arg, (void)layouts, (void)err;
    s->n = n;
    s->leader = s->came_from = -1;
    s->dwell_ps = (int64_t)(s->dwell_ms * (double)PS_PER_MS + 0.5);
    s->return_margin_ppm = ppm(s->return_margin_frac);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            s->margin_ppm[a][b] =
                ppm(s->direction_set[a][b] ? s->direction_frac[a][b] : s->margin_frac);
    return 0;
}

static bool repays(const struct policy_view *view, int to)
{
    __int128 lead_ps =
        (__int128)view->candidate[view->current].score.a_ps - view->candidate[to].score.a_ps;
    return lead_ps * view->steps_left > view->switch_cost_ps(view, to);
}

static bool is_ripe(const struct splash *s, const struct policy_view *view, int to)
{
    return s->lead_steps >= s->persist &&
           (!s->has_switched || view->now_ps - s->last_switch_ps >= s->dwell_ps) &&
           (!s->charge || repays(view, to));
}

static struct decision decide(void *state, const struct policy_view *view)
{
    struct splash *s = state;
    int64_t margin[LAYOUT_MAX];
    for (int l = 0; l < s->n; l++) {
        margin[l] = s->margin_ppm[view->current][l];
        if (l == s->came_from)
            margin[l] =
                margin[l] + s->return_margin_ppm > PPM ? PPM : margin[l] + s->return_margin_ppm;
    }
    struct lead lead = lead_find(view, margin);
    if (lead.pick == view->current) {
        s->leader = -1;
        return (struct decision){.layout = view->current, .wanted = lead.wanted, .hold = lead.hold};
    }
    s->lead_steps = lead.pick == s->leader ? s->lead_steps + 1 : 1;
    s->leader = lead.pick;
    bool forced = view->candidate[view->current].verdict != FITS;
    bool go = forced || is_ripe(s, view, lead.pick);
    /* A lead that must ripen counts evaluations, so the engine has to come back every step. */
    return (struct decision){
        .layout = go ? lead.pick : view->current, .wanted = lead.wanted, .hold = 1};
}

static void switched(void *state, int from, int to, int64_t now_ps)
{
    struct splash *s = state;
    (void)to;
    s->has_switched = true;
    s->came_from = from;
    s->last_switch_ps = now_ps;
    s->leader = -1;
}

const struct policy_kind policy_splash = {
    .name = "splash",
    .what = "the fastest feasible layout once it leads by a margin (SPLASH, Eq. 8)",
    .may_switch = true,
    .opts = opts,
    .state_size = sizeof(struct splash),
    .init = init,
    .extra = extra,
    .decide = decide,
    .switched = switched,
};
