/* SPDX-License-Identifier: Apache-2.0
 *
 * splash: the built-in policy of that name, with the same results to the byte: the fastest feasible
 * layout once it leads the current one by a margin. Options: margin, return_margin, dwell_ms,
 * persist, charge.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wavetank/policy.h>

enum { PPM = 1000000, LAYOUTS = 16 };

struct splash {
    double margin, return_margin, dwell_ms, persist, charge; /* options */
    int64_t margin_ppm, return_ppm, dwell_ps;
    int32_t came_from, leader;
    int64_t lead_steps;
};

struct lead {
    int32_t pick, wanted; /* the best leader that fits, the best of all */
    int64_t hold;
};

static int set_option(struct splash *s, const char *key, const char *value)
{
    const struct {
        const char *name;
        double *value;
    } option[] = {{"margin", &s->margin},
                  {"return_margin", &s->return_margin},
                  {"dwell_ms", &s->dwell_ms},
                  {"persist", &s->persist},
                  {"charge", &s->charge}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (strcmp(option[i].name, key) == 0) {
            *option[i].value = strtod(value, NULL);
            return 0;
        }
    return -1;
}

static void *init(const struct wavetank_setup *setup, char *error, size_t error_size)
{
    struct splash *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    *s = (struct splash){.margin = 0.05, .persist = 1, .came_from = -1, .leader = -1};
    for (int i = 0; i < setup->n_options; i++)
        if (set_option(s, setup->key[i], setup->value[i]) < 0) {
            snprintf(error, error_size, "unknown option \"%s\"", setup->key[i]);
            free(s);
            return NULL;
        }
    s->margin_ppm = (int64_t)(s->margin * PPM + 0.5);
    s->return_ppm = (int64_t)(s->return_margin * PPM + 0.5);
    s->dwell_ps = (int64_t)(s->dwell_ms * 1e9 + 0.5);
    return s;
}

static int32_t fastest_that_fits(const struct wavetank_view *v)
{
    int32_t best = -1;
    for (int32_t l = 0; l < v->n_layouts; l++)
        if (v->candidate[l].verdict == WAVETANK_FITS &&
            (best < 0 || v->candidate[l].score.a_ps < v->candidate[best].score.a_ps))
            best = l;
    return best;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Steps for which the order of two layouts, ties included, cannot change. */
static int64_t order_span(const struct wavetank_view *v, int32_t a, int32_t b)
{
    int64_t before, behind;
    v->leads(v, a, b, 0, &before);
    v->leads(v, b, a, 0, &behind);
    return shorter(before, behind);
}

static void choose(const struct wavetank_view *v, const int32_t *leader, int n, struct lead *found)
{
    int64_t pick_ps = INT64_MAX, wanted_ps = INT64_MAX;
    for (int i = 0; i < n; i++) {
        const struct wavetank_candidate *c = &v->candidate[leader[i]];
        if (c->score.a_ps < wanted_ps) {
            wanted_ps = c->score.a_ps;
            found->wanted = leader[i];
        }
        if (c->verdict == WAVETANK_FITS && c->score.a_ps < pick_ps) {
            pick_ps = c->score.a_ps;
            found->pick = leader[i];
        }
        for (int k = 0; k < i; k++)
            found->hold = shorter(found->hold, order_span(v, leader[i], leader[k]));
    }
}

static struct lead find_leads(const struct splash *s, const struct wavetank_view *v)
{
    struct lead found = {v->current, v->current, WAVETANK_FOREVER};
    int32_t leader[LAYOUTS];
    int n = 0;
    if (v->candidate[v->current].verdict != WAVETANK_FITS) {
        int32_t best = fastest_that_fits(v);
        return (struct lead){best, best, 1};
    }
    for (int32_t l = 0; l < v->n_layouts; l++) {
        int64_t margin_ppm = s->margin_ppm + (l == s->came_from ? s->return_ppm : 0), span;
        if (l == v->current || v->candidate[l].verdict == WAVETANK_FITS_NEVER)
            continue;
        if (v->leads(v, v->current, l, margin_ppm, &span))
            leader[n++] = l;
        found.hold = shorter(found.hold, span);
    }
    choose(v, leader, n, &found);
    return found;
}

static bool repays(const struct wavetank_view *v, int32_t to)
{
    int64_t lead_ps = v->candidate[v->current].score.a_ps - v->candidate[to].score.a_ps;
    return lead_ps * v->steps_left > v->switch_cost_ps(v, to);
}

static bool is_ripe(const struct splash *s, const struct wavetank_view *v, int32_t to)
{
    return s->lead_steps >= (int64_t)s->persist &&
           (v->since_switch_ps < 0 || v->since_switch_ps >= s->dwell_ps) &&
           (s->charge == 0 || repays(v, to));
}

static void decide(void *state, const struct wavetank_view *v, struct wavetank_decision *out)
{
    struct splash *s = state;
    struct lead lead = find_leads(s, v);
    out->wanted = lead.wanted;
    if (lead.pick == v->current) {
        s->leader = -1;
        out->hold = lead.hold;
        return;
    }
    s->lead_steps = lead.pick == s->leader ? s->lead_steps + 1 : 1;
    s->leader = lead.pick;
    bool forced = v->candidate[v->current].verdict != WAVETANK_FITS;
    /* A lead that must ripen counts steps: to be asked at every one, hold stays 1. */
    if (forced || is_ripe(s, v, lead.pick))
        out->layout = lead.pick;
}

static void switched(void *state, int32_t from, int32_t to, int64_t now_ps)
{
    struct splash *s = state;
    (void)to, (void)now_ps;
    s->came_from = from;
    s->leader = -1;
}

const struct wavetank_policy *wavetank_policy(void)
{
    static const struct wavetank_policy policy = {
        .abi = WAVETANK_POLICY_ABI,
        .size = sizeof policy,
        .init = init,
        .decide = decide,
        .switched = switched,
        .fini = free,
    };
    return &policy;
}
