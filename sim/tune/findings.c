/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"

static void find_flat(struct findings *f)
{
    const double *mean = f->last.mean_frac;
    f->flat = xcalloc((size_t)f->study->n, sizeof *f->flat);
    if (f->best < 0)
        return;
    for (int64_t i = 0; i < f->study->n; i++) {
        f->flat[i] = mean[i] <= mean[f->best] + FINDINGS_FLAT_FRAC;
        f->n_flat += f->flat[i];
    }
}

/* Is the setting the recommended one but for this axis? */
static bool differs_only_in(const struct findings *f, int64_t setting, int axis)
{
    const struct study *s = f->study;
    for (int a = 0; a < s->grid->n; a++)
        if (a != axis &&
            grid_at(s->grid, s->point[setting], a) != grid_at(s->grid, s->point[f->best], a))
            return false;
    return true;
}

/* Greatest less least of the means by value; NAN with fewer than two. */
static double spread(const struct findings *f, int axis, bool alone)
{
    const struct study *s = f->study;
    int n = s->grid->axis[axis].n, known = 0;
    double *sum = xcalloc((size_t)n, sizeof *sum), least = 0, most = 0;
    int64_t *count = xcalloc((size_t)n, sizeof *count);
    for (int64_t i = 0; i < s->n; i++) {
        int at = grid_at(s->grid, s->point[i], axis);
        if (isnan(f->first.mean_frac[i]) || (alone && !differs_only_in(f, i, axis)))
            continue;
        sum[at] += f->first.mean_frac[i];
        count[at]++;
    }
    for (int i = 0; i < n; i++) {
        double mean = count[i] > 0 ? sum[i] / (double)count[i] : NAN;
        if (isnan(mean))
            continue;
        least = known == 0 || mean < least ? mean : least;
        most = known == 0 || mean > most ? mean : most;
        known++;
    }
    free(sum);
    free(count);
    return known > 1 ? most - least : NAN;
}

static void weigh_axis(struct findings *f, int axis)
{
    const struct study *s = f->study;
    struct axis_effect *e = &f->effect[axis];
    *e = (struct axis_effect){.mean_frac = spread(f, axis, false),
                              .alone_frac = f->best >= 0 ? spread(f, axis, true) : NAN,
                              .flat_first = s->grid->axis[axis].n,
                              .flat_last = -1};
    for (int64_t i = 0; i < s->n; i++) {
        int at = grid_at(s->grid, s->point[i], axis);
        if (!f->flat[i])
            continue;
        e->flat_first = at < e->flat_first ? at : e->flat_first;
        e->flat_last = at > e->flat_last ? at : e->flat_last;
    }
}

/* For each draw one of the same trace. */
static void resample(struct rng *r, const struct draw_set *draws, int *drawn)
{
    for (int first = 0; first < draws->n;) {
        int end = first;
        while (end < draws->n && draws->trace[end] == draws->trace[first])
            end++;
        for (int d = first; d < end; d++)
            drawn[d] = (int)rng_range(r, first, end - 1);
        first = end;
    }
}

static double mean_over(const struct scores *s, int64_t setting, const int *drawn)
{
    double sum = 0;
    for (int d = 0; d < s->draws; d++)
        sum += s->weight[d] * s->above_frac[setting * s->draws + drawn[d]];
    return sum;
}

static bool holds(const struct findings *f, const int *drawn, int64_t contenders)
{
    double best = mean_over(&f->last, f->best, drawn), recommended = best;
    for (int64_t i = 0; i < contenders; i++) {
        double x = mean_over(&f->last, f->order[i], drawn);
        best = x < best ? x : best;
    }
    return recommended <= best + FINDINGS_FLAT_FRAC;
}

static double bootstrap(const struct findings *f, uint64_t seed)
{
    const struct draw_set *draws = &f->study->draws;
    int64_t contenders = 0, held = 0;
    int traces = draws->n > 0 ? draws->trace[draws->n - 1] + 1 : 0;
    struct rng r;
    if (f->best < 0 || traces == draws->n)
        return NAN;
    while (contenders < f->n && contenders < FINDINGS_CONTENDERS_MAX &&
           !isnan(f->last.mean_frac[f->order[contenders]]))
        contenders++;
    int *drawn = xcalloc((size_t)draws->n, sizeof *drawn);
    rng_stream(&r, seed, "bootstrap");
    for (int i = 0; i < FINDINGS_RESAMPLES; i++) {
        resample(&r, draws, drawn);
        held += holds(f, drawn, contenders);
    }
    free(drawn);
    return (double)held / FINDINGS_RESAMPLES;
}

void findings_make(struct findings *f, const struct study *s, uint64_t seed)
{
    *f = (struct findings){.study = s};
    study_scores(s, 0, &f->first);
    study_scores(s, s->rungs - 1, &f->last);
    f->n = scores_order(&f->last, &f->order);
    f->best = f->n > 0 && !isnan(f->last.mean_frac[f->order[0]]) ? f->order[0] : -1;
    find_flat(f);
    for (int a = 0; a < s->grid->n; a++)
        weigh_axis(f, a);
    f->confidence_frac = bootstrap(f, seed);
}

void findings_release(struct findings *f)
{
    scores_release(&f->first);
    scores_release(&f->last);
    free(f->order);
    free(f->flat);
}

void findings_axes(const struct findings *f, int axis[2])
{
    const struct grid *g = f->study->grid;
    axis[0] = axis[1] = -1;
    for (int k = 0; k < 2; k++)
        for (int a = 0; a < g->n; a++) {
            double x = f->effect[a].mean_frac;
            bool stronger = axis[k] < 0 || x > f->effect[axis[k]].mean_frac;
            if (g->axis[a].n > 1 && !isnan(x) && a != axis[0] && stronger)
                axis[k] = a;
        }
}
