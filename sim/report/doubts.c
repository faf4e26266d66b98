/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/doubts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/percent.h"

static const double part_frac = 0.05, layout_frac = 0.05, step_frac = 0.15, switch_frac = 0.2;

/* Of a kind; tables have the others. */
enum { NAMED_MAX = 4 };

__attribute__((format(printf, 2, 3))) static void say(struct doubts *d, const char *fmt, ...)
{
    char *text;
    size_t size;
    va_list ap;
    FILE *out = open_memstream(&text, &size);
    va_start(ap, fmt);
    vfprintf(out, fmt, ap);
    va_end(ap);
    fclose(out);
    d->sentence = xgrow(d->sentence, &d->cap, (size_t)d->n + 1, sizeof *d->sentence);
    d->sentence[d->n++] = text;
}

static void doubt_parts(struct doubts *d, const struct step_errors *e)
{
    char error[PERCENT_SIZE], share[PERCENT_SIZE], blame[PERCENT_SIZE];
    for (int p = 0; p < PART_COUNT; p++) {
        const struct part_error *part = &e->part[p];
        double mean = part->error.mean;
        if (!(fabs(mean) > part_frac))
            continue;
        say(d,
            "%s is predicted %s too %s on average; it is %s of the measured time and moves the "
            "step by %s.",
            p == PART_REST ? "What is left of a step beside its stages" : step_part_names[p],
            percent(fabs(mean), error), mean < 0 ? "short" : "long",
            percent(part->share_frac, share), percent_signed(part->blame, blame));
    }
}

static void doubt_layouts(struct doubts *d, const struct joined *j, const struct step_errors *e)
{
    char p50[PERCENT_SIZE];
    for (int l = 0; l < j->n_layouts; l++)
        if (e->layout[l].p50 > layout_frac)
            say(d, "Under %s the median step is off by %s.", j->layout[l],
                percent(e->layout[l].p50, p50));
}

enum phase { PHASE_DECODE, PHASE_PREFILL, PHASE_MIXED, PHASE_COUNT };

static const char *const phase_names[PHASE_COUNT] = {"decode", "prefill", "mixed"};

static enum phase phase_of(const struct step_shape *s)
{
    if (s->prefill_rows == 0)
        return PHASE_DECODE;
    return s->prefill_rows == s->rows ? PHASE_PREFILL : PHASE_MIXED;
}

/* Steps of one layout and phase, and the range of those that are far off. */
struct shapes {
    int n, n_off;
    double worst; /* signed */
    int64_t requests[2], ctx_tokens[2];
};

static void widen(int64_t range[2], int64_t x, bool first)
{
    range[0] = first ? x : min_i64(range[0], x);
    range[1] = first ? x : max_i64(range[1], x);
}

static struct shapes find_shapes(const struct validation *v, int layout, enum phase phase)
{
    struct shapes out = {0};
    enum step_kind kind = v->main == &v->ready ? STEP_READY : STEP_STEADY;
    for (int i = 0; i < v->joined.n; i++) {
        const struct joined_step *s = &v->joined.step[i];
        struct step_shape shape = joined_shape(s->at);
        if (s->kind != kind || s->layout != layout || phase_of(&shape) != phase)
            continue;
        out.n++;
        if (fabs(s->error) <= step_frac)
            continue;
        widen(out.requests, shape.requests, out.n_off == 0);
        widen(out.ctx_tokens, shape.mean_ctx_tokens, out.n_off == 0);
        out.worst = fabs(s->error) > fabs(out.worst) ? s->error : out.worst;
        out.n_off++;
    }
    return out;
}

static char *range(const int64_t x[2], char *buf, size_t size)
{
    char low[32], high[32];
    units_count(x[0], low, sizeof low);
    units_count(x[1], high, sizeof high);
    snprintf(buf, size, x[0] == x[1] ? "%s" : "%s to %s", low, high);
    return buf;
}

static void doubt_shapes(struct doubts *d, const struct validation *v)
{
    char worst[PERCENT_SIZE], requests[80], context[80];
    for (int l = 0; l < v->joined.n_layouts; l++) {
        for (int p = 0; p < PHASE_COUNT; p++) {
            struct shapes s = find_shapes(v, l, p);
            if (s.n_off == 0)
                continue;
            say(d,
                "Under %s, %d of %d %s steps are off by more than 15%%, the worst by %s "
                "(requests: %s, mean context: %s).",
                v->joined.layout[l], s.n_off, s.n, phase_names[p], percent_signed(s.worst, worst),
                range(s.requests, requests, sizeof requests),
                range(s.ctx_tokens, context, sizeof context));
        }
    }
}

/* A time that may be negative. */
static char *time_text(double ns, char *buf, size_t size)
{
    char length[32];
    units_time((int64_t)fmin(fabs(ns) * PS_PER_NS, 9e18), length, sizeof length);
    snprintf(buf, size, "%s%s", ns < 0 ? "-" : "", length);
    return buf;
}

/* One direction, as an item of a sentence's list. */
static void list_way(FILE *out, const struct joined *j, const struct switch_direction *s,
                     const struct switch_way *w)
{
    char error[PERCENT_SIZE], time[40];
    fprintf(out, "%s to %s ", j->layout[s->from], j->layout[s->to]);
    if (w->resolved)
        fprintf(out, "by %s ", percent_signed(w->error, error));
    fprintf(out, "(predicted %s", time_text(w->pred_ns, time, sizeof time));
    fprintf(out, ", measured %s", time_text(w->dt_ns, time, sizeof time));
    if (!w->resolved && !isnan(s->noise_ns))
        fprintf(out, ", noise %s", time_text(s->noise_ns, time, sizeof time));
    fputs(")", out);
}

/* The directions of one mechanism that are resolved and far off, or not resolved: the worst of
 * them, into `found`, which has room for all. Returns how many. */
static int find_ways(const struct switch_trials *t, enum mechanism m, bool resolved,
                     const struct switch_direction **found)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        const struct switch_direction *s = &t->direction[i];
        const struct switch_way *w = &s->way[m];
        if (w->n == 0 || w->resolved != resolved || fabs(w->error) <= switch_frac)
            continue;
        int at = n++;
        for (; at > 0 && fabs(w->error) > fabs(found[at - 1]->way[m].error); at--)
            found[at] = found[at - 1];
        found[at] = s;
    }
    return n;
}

static void doubt_ways(struct doubts *d, const struct validation *v, enum mechanism m,
                       bool resolved, const char *what)
{
    const struct switch_direction **found = xcalloc((size_t)v->trials.n, sizeof(*found));
    char *list;
    size_t size;
    int n = find_ways(&v->trials, m, resolved, found);
    FILE *out = open_memstream(&list, &size);
    for (int i = 0; i < n && i < NAMED_MAX; i++) {
        fputs(i > 0 ? ", " : "", out);
        list_way(out, &v->joined, found[i], &found[i]->way[m]);
    }
    if (n > NAMED_MAX)
        fprintf(out, " and %d more directions", n - NAMED_MAX);
    fclose(out);
    if (n > 0)
        say(d, "What %s switches add is %s: %s.", mechanism_names[m], what, list);
    free(list);
    free(found);
}

static void doubt_switches(struct doubts *d, const struct validation *v)
{
    for (int m = 0; m < MECH_COUNT; m++) {
        doubt_ways(d, v, m, true, "off by more than 20%");
        doubt_ways(d, v, m, false, "not resolved from the noise");
    }
}

static void doubt_group(struct doubts *d, const struct joined *j, const struct order_group *g)
{
    char requests[32], context[32], regret[PERCENT_SIZE];
    struct step_shape shape = joined_shape(j->step[g->first].at);
    say(d,
        "From step %lld on (requests: %s, mean context: %s) it picks %s, where %s is fastest and "
        "%s takes %s longer.",
        (long long)j->step[g->first].at->step,
        units_count(shape.requests, requests, sizeof requests),
        units_count(shape.mean_ctx_tokens, context, sizeof context),
        j->layout[g->member[g->pick].layout], j->layout[g->member[g->fastest].layout],
        j->layout[g->member[g->pick].layout], percent(g->regret, regret));
}

static void doubt_order(struct doubts *d, const struct validation *v)
{
    const struct layout_order *o = &v->order;
    int named = 0, wrong = o->verdicts[ORDER_WRONG];
    if (wrong > 0)
        say(d, "In %d of %d comparisons it picks a layout that is slower by 2%% or more.", wrong,
            o->n);
    for (int i = 0; i < o->n && named < NAMED_MAX; i++) {
        if (o->group[i].verdict != ORDER_WRONG)
            continue;
        doubt_group(d, &v->joined, &o->group[i]);
        named++;
    }
    if (wrong > named)
        say(d, "The table of layouts has %d more.", wrong - named);
}

static void doubt_hopb(struct doubts *d, const struct validation *v)
{
    const struct hopb_trial *worst = hopb_trials_misjudged(&v->hopb);
    char gain[PERCENT_SIZE], pred_gain[PERCENT_SIZE];
    if (worst != NULL)
        say(d,
            "In %d of %d comparisons HOP-B's gain has the wrong sign, by 2%% or more: most with %d "
            "sub-batches of %s from step %lld on (predicted %s, measured %s).",
            v->hopb.misjudged, v->hopb.comparisons, worst->sub_batches,
            v->joined.layout[worst->layout], (long long)v->joined.step[worst->step].at->step,
            percent_signed(worst->pred_gain, pred_gain), percent_signed(worst->gain, gain));
}

static void doubt_coverage(struct doubts *d, const struct validation *v)
{
    char unmatched[32];
    if (v->joined.unmatched > 0)
        say(d, "The run was cut: the last %s steps of the plan were not measured.",
            units_count(v->joined.unmatched, unmatched, sizeof unmatched));
    if (v->joined.check_max_error == 0)
        say(d, "No output was checked against the reference, or all were exact.");
    if (v->main == &v->ready)
        say(d,
            "Stages, layouts and shapes are judged by target-ready steps, which a replay on GPUs "
            "runs without CUDA graphs: the plan has hardly others.");
    if (v->main->all.n == 0)
        say(d, "Every step has a switch inside: nothing here tests the step times by themselves.");
    if (v->order.n == 0)
        say(d, "No batch runs under two layouts: nothing here tests which layout is faster.");
    if (v->trials.n == 0)
        say(d, "No step has a switch inside: nothing here tests what switches cost.");
}

void doubts_init(struct doubts *d, const struct validation *v)
{
    *d = (struct doubts){0};
    doubt_parts(d, v->main);
    doubt_layouts(d, &v->joined, v->main);
    doubt_shapes(d, v);
    doubt_switches(d, v);
    doubt_order(d, v);
    doubt_hopb(d, v);
    if (d->n == 0)
        say(d, "Within what was measured, no rule finds a place: stages are within 5%% on average, "
               "every layout's median step within 5%%, every step within 15%%, every switch within "
               "20%%, and every layout picked is fastest or within 2%% of it.");
    doubt_coverage(d, v);
}

void doubts_release(struct doubts *d)
{
    for (int i = 0; i < d->n; i++)
        free(d->sentence[i]);
    free(d->sentence);
    *d = (struct doubts){0};
}
