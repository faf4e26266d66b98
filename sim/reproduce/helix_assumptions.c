/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Helix paper does not say: three fixed times that are fitted, then one assumption varied
 * at a time: between which values the figures move, and which value of it would give the paper's.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/reproduce/helix.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/rows.h"

enum { VALUES_MAX = 8, NOTE_SIZE = 24 };

static const double reached_frac = 0.02; /* a value of ours that is no further off */
static const double flat_frac = 0.005;   /* an assumption that moves a figure no more */
static const double near_frac = 0.10;

#define FIELD(name) #name, offsetof(struct helix_setting, name)

static const struct assumption {
    const char *name;
    size_t field;
    const char *range; /* in ids */
    int n;
    double value[VALUES_MAX];
    const char *choice[VALUES_MAX]; /* names of values that are no quantities */
} assumptions[] = {
    {FIELD(collective_us), "0-20", 8, {0, 1, 2, 3, 5, 8, 12, 20}, {0}},
    {FIELD(layer_us), "0-100", 7, {0, 10, 25, 40, 55, 75, 100}, {0}},
    {FIELD(exchange_row_us), "0-4", 7, {0, 0.1, 0.25, 0.5, 1, 2, 4}, {0}},
    {FIELD(link_gb_per_s), "25-1800", 7, {25, 50, 100, 225, 450, 900, 1800}, {0}},
    {FIELD(flop_frac), "0.1-1", 5, {0.1, 0.25, 0.5, 0.75, 1}, {0}},
    {FIELD(hbm_frac), "0.5-1", 6, {0.5, 0.6, 0.7, 0.8, 0.9, 1}, {0}},
    {FIELD(memory_frac), "0.6-1", 5, {0.6, 0.7, 0.8, 0.9, 1}, {0}},
    {FIELD(exchanged_bytes), "0.5-2", 3, {0.5, 1, 2}, {0}},
    {FIELD(context_tokens), "1M-4M", 4, {1e6, 1048576, 2e6, 4e6}, {0}},
    {FIELD(even_experts), "no-yes", 2, {0, 1}, {"busiest group", "mean group"}},
    {FIELD(every_batch), "no-yes", 2, {0, 1}, {"powers of two", "every batch"}},
    {FIELD(every_gpus), "no-yes", 2, {0, 1}, {"powers of two", "1 to 64"}},
    {FIELD(baseline),
     "4_sets",
     HELIX_BASELINES,
     {FROM_TP_PP_EP, FROM_TP_PP, WITH_MEDHA, WITH_DPA},
     {"tp,pp,ep", "tp,pp", "tp,pp,ep,kvp", "tp,pp,ep,dpa"}},
};

enum { ASSUMPTIONS = sizeof assumptions / sizeof *assumptions };

static struct helix_setting varied(const struct assumption *a, int i)
{
    struct helix_setting s = helix_setting;
    *(double *)((char *)&s + a->field) = a->value[i];
    return s;
}

static void gains_of(const struct helix_data *d, int model, const struct helix_setting *s,
                     struct helix_gains *g)
{
    struct helix_case c;
    helix_search(&c, d, model, s);
    helix_gains(&c, model, g);
    helix_case_release(&c);
}

/* Ours over the values of an assumption, or along a curve. */
struct course {
    int n;
    const double *at, *ours;
    const char *const *choice; /* names of values that are no quantities, or NULL */
};

static void extremes(const struct course *c, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < c->n; i++) {
        *low = fmin(*low, c->ours[i]);
        *high = fmax(*high, c->ours[i]);
    }
}

/* Where it first passes the paper's value, by straight lines; NAN: nowhere. */
static double crossing(const struct course *c, double paper)
{
    for (int i = 0; i + 1 < c->n; i++)
        if ((c->ours[i] - paper) * (c->ours[i + 1] - paper) < 0)
            return c->at[i] +
                   (c->at[i + 1] - c->at[i]) * (paper - c->ours[i]) / (c->ours[i + 1] - c->ours[i]);
    return NAN;
}

static int nearest_of(const struct course *c, double paper)
{
    int nearest = 0;
    for (int i = 1; i < c->n; i++)
        if (fabs(log(c->ours[i] / paper)) < fabs(log(c->ours[nearest] / paper)))
            nearest = i;
    return nearest;
}

/* "near 4.66", "at 1000000". */
static void quantity(const char *word, double value, char note[NOTE_SIZE])
{
    snprintf(note, NOTE_SIZE, value < 100 ? "%s %.3g" : "%s %.0f", word, value);
}

static void note_of(const struct course *c, double paper, char note[NOTE_SIZE])
{
    double low, high, between = c->choice == NULL ? crossing(c, paper) : NAN;
    int nearest = nearest_of(c, paper);
    extremes(c, &low, &high);
    if (high / low - 1 <= flat_frac)
        snprintf(note, NOTE_SIZE, "no effect");
    else if (!isnan(between))
        quantity("near", between, note);
    else if (fabs(c->ours[nearest] / paper - 1) > reached_frac)
        snprintf(note, NOTE_SIZE, "not reached");
    else if (c->choice != NULL)
        snprintf(note, NOTE_SIZE, "by %s", c->choice[nearest]);
    else
        quantity("at", c->at[nearest], note);
}

/* One row; `of` and `range` say what is varied and how far. */
static void add_course(struct reproduction *r, const struct paper *stated, const char *id,
                       const struct course *c, const char *of, const char *range)
{
    const char *paper = paper_text(stated, paper_find(stated, id, NULL), 2);
    char note[NOTE_SIZE];
    double low, high;
    extremes(c, &low, &high);
    note_of(c, strtod(paper, NULL), note);
    rows_scanned(r, paper, low, high, note, "helix.%s.by.%s.%s", id, of, range);
}

struct scan {
    double ours[ASSUMPTIONS][VALUES_MAX][HELIX_FIGURES];
};

static void scan_model(const struct helix_data *d, int model, struct scan *scan)
{
    for (int k = 0; k < ASSUMPTIONS; k++)
        for (int i = 0; i < assumptions[k].n; i++) {
            struct helix_setting s = varied(&assumptions[k], i);
            struct helix_gains g;
            gains_of(d, model, &s, &g);
            for (int f = 0; f < HELIX_FIGURES; f++)
                scan->ours[k][i][f] = g.figure[f];
        }
}

static void add_scan(struct reproduction *r, const struct paper *stated, int model, int figure,
                     const struct scan *scan)
{
    for (int k = 0; k < ASSUMPTIONS; k++) {
        const struct assumption *a = &assumptions[k];
        double ours[VALUES_MAX] = {0};
        for (int i = 0; i < a->n; i++)
            ours[i] = scan->ours[k][i][figure];
        struct course c = {a->n, a->value, ours, a->choice[0] != NULL ? a->choice : NULL};
        add_course(r, stated, helix_figure_ids[model][figure], &c, a->name, a->range);
    }
}

/* The ratios as functions: the paper does not say where it reads them. */
static void add_where(struct reproduction *r, const struct paper *stated, const char *id,
                      const struct ratio_curve *curve, const char *of)
{
    int n = (int)curve->n;
    double *at = xcalloc(curve->n, sizeof *at), *ours = xcalloc(curve->n, sizeof *ours);
    char range[48];
    assert(n > 0);
    for (int i = 0; i < n; i++) {
        at[i] = curve->point[i].at;
        ours[i] = curve->point[i].ratio;
    }
    snprintf(range, sizeof range, "%.3g-%.3g", at[0], at[n - 1]);
    struct course c = {n, at, ours, NULL};
    add_course(r, stated, id, &c, of, range);
    free(at);
    free(ours);
}

static void add_curves(struct reproduction *r, const struct paper *stated,
                       const struct helix_data *d, int model)
{
    struct helix_case c;
    struct frontier both;
    struct ratio_curve user, gpu;
    helix_search(&c, d, model, &helix_setting);
    helix_union(&c, &both);
    ratio_concurrency(&gpu, &both, &c.baseline);
    ratio_interactivity(&user, &both, &c.baseline);
    add_where(r, stated, helix_figure_ids[model][HELIX_CONCURRENCY], &gpu, "tok_s_user");
    add_where(r, stated, helix_figure_ids[model][HELIX_INTERACTIVITY], &user, "tok_s_gpu");
    ratio_release(&gpu);
    ratio_release(&user);
    frontier_release(&both);
    helix_case_release(&c);
}

/* The largest error of a model's figures, as ln of a factor. R1's HOP-B is left out: no setting
 * here comes near it. */
static double worst_of(const struct helix_data *d, const struct paper *stated, int model,
                       const struct helix_setting *s)
{
    struct helix_gains g;
    double worst = 0;
    gains_of(d, model, s, &g);
    for (int f = 0; f < HELIX_FIGURES; f++) {
        int row = paper_find(stated, helix_figure_ids[model][f], NULL);
        if (model == HELIX_405B || f != HELIX_HOPB)
            worst = fmax(worst, fabs(log(g.figure[f] / paper_number(stated, row, 2))));
    }
    return worst;
}

/* Fixed times that were tried, and the nearest of them so far. */
struct fit {
    const struct helix_data *d;
    const struct paper *stated;
    struct helix_setting best;
    double least; /* its worst_of() */
    int tried, near;
};

/* 405B is searched sooner than R1, which is needed only where that leaves a chance. */
static void try_setting(struct fit *fit, const struct helix_setting *s)
{
    double goal = log(1 + near_frac);
    double worst = worst_of(fit->d, fit->stated, HELIX_405B, s);
    fit->tried++;
    if (worst > fmax(fit->least, goal))
        return;
    worst = fmax(worst, worst_of(fit->d, fit->stated, HELIX_R1, s));
    fit->near += worst <= goal;
    if (worst < fit->least) {
        fit->least = worst;
        fit->best = *s;
    }
}

static void add_nearest(struct reproduction *r, const struct helix_data *d,
                        const struct paper *stated)
{
    enum { COLLECTIVE_US = 6, LAYER_US = 80, LAYER_STEP_US = 5, ROW_QUARTERS_US = 6 };
    struct fit fit = {.d = d, .stated = stated, .best = helix_setting, .least = INFINITY};
    struct helix_setting s = helix_setting;
    for (int row = 0; row <= ROW_QUARTERS_US; row++)
        for (int collective = 0; collective <= COLLECTIVE_US; collective++)
            for (int layer = 0; layer <= LAYER_US; layer += LAYER_STEP_US) {
                s.exchange_row_us = row / 4.0;
                s.collective_us = collective;
                s.layer_us = layer;
                try_setting(&fit, &s);
            }
    rows_figure(r, fit.best.collective_us, NAN, true, "helix.nearest.collective_us");
    rows_figure(r, fit.best.layer_us, NAN, true, "helix.nearest.layer_us");
    rows_figure(r, fit.best.exchange_row_us, NAN, true, "helix.nearest.exchange_row_us");
    rows_figure(r, exp(fit.least) - 1, NAN, true, "helix.nearest.largest_error");
    rows_figure(r, fit.tried, NAN, true, "helix.nearest.tried");
    rows_figure(r, fit.near, NAN, true, "helix.nearest.within_goal");
}

/* All figures under another setting. */
static void add_variant(struct reproduction *r, const struct helix_data *d,
                        const struct paper *stated, const struct helix_setting *s,
                        const char *variant)
{
    for (int model = 0; model < HELIX_MODELS; model++) {
        struct helix_gains g;
        gains_of(d, model, s, &g);
        for (int f = 0; f < HELIX_FIGURES; f++) {
            const char *id = helix_figure_ids[model][f];
            rows_predicted(r, paper_text(stated, paper_find(stated, id, NULL), 2), g.figure[f], NAN,
                           "helix.%s.%s", id, variant);
        }
    }
}

static void add_variants(struct reproduction *r, const struct helix_data *d,
                         const struct paper *stated)
{
    struct helix_setting peaks = helix_setting, row_free = helix_setting, bytes;
    peaks.collective_us = peaks.layer_us = peaks.exchange_row_us = 0;
    row_free.exchange_row_us = 0;
    bytes = row_free;
    bytes.collective_us = 0;
    bytes.exchanged_bytes = 0.5;
    add_variant(r, d, stated, &peaks, "without_fixed_times");
    add_variant(r, d, stated, &row_free, "without_exchange_row");
    add_variant(r, d, stated, &bytes, "exchange_of_fp4_bytes");
}

int reproduce_assumptions(struct reproduction *r, struct err *err)
{
    struct paper stated;
    struct helix_data d;
    struct scan scan;
    if (helix_load(&d, err) < 0 || paper_load(&stated, "helix/stated", "name,from|value", err) < 0)
        return -1;
    add_nearest(r, &d, &stated);
    add_variants(r, &d, &stated);
    for (int model = 0; model < HELIX_MODELS; model++) {
        scan_model(&d, model, &scan);
        for (int f = 0; f < HELIX_FIGURES; f++)
            add_scan(r, &stated, model, f, &scan);
        add_curves(r, &stated, &d, model);
    }
    paper_release(&stated);
    return 0;
}
