/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/study/fit_internal.h"

enum { HOLD_OUT = 5, HOLD_OUT_SEED = 5 };

/* Of every five steps of a layout, one drawn by lot: a plan's own rhythm must not choose. */
static bool *draw_held_out(const struct fit_data *d)
{
    bool *held_out = xcalloc(d->n + 1, sizeof *held_out);
    for (int l = 0; l < d->n_layouts; l++) {
        size_t five[HOLD_OUT];
        int n[2] = {0};
        struct rng r;
        rng_stream(&r, HOLD_OUT_SEED, d->layout[l].name);
        for (int switches = 0; switches < 2; switches++)
            for (size_t i = 0; i < d->n; i++) {
                if (d->step[i].layout != l || (d->step[i].from >= 0) != switches)
                    continue;
                five[n[switches]++ % HOLD_OUT] = i;
                if (n[switches] % HOLD_OUT == 0)
                    held_out[five[rng_range(&r, 0, HOLD_OUT - 1)]] = true;
            }
    }
    return held_out;
}

/* One fit under way: `start` has what is known so far. */
struct course {
    const struct fit_data *data;
    const bool *left_out;
    struct profile start;
    struct trial trial;
    struct fit_param *param;
    int n_params;
};

static void keep_all(struct fit_param *param, int n)
{
    for (int i = 0; i < n; i++) {
        param[i].state = FIT_KEPT;
        param[i].value = param[i].base;
    }
}

/* What the trial holds becomes known. */
static void settle(struct course *c)
{
    struct collective_table old = c->start.collectives;
    c->start = c->trial.profile;
    c->start.collectives = collective_copy(&c->trial.profile.collectives);
    collective_release(&old);
}

static void fit_stage(struct course *c, enum fit_stage stage, struct fit_param *param, int n_params)
{
    const struct fit_data *d = c->data;
    struct fit_problem p = {.trial = &c->trial,
                            .start = &c->start,
                            .stage = stage,
                            .step = xcalloc(d->n + 1, sizeof *p.step),
                            .param = param,
                            .n_params = n_params};
    for (size_t i = 0; i < d->n; i++)
        if (!c->left_out[i] && fit_observes(&c->trial, stage, &d->step[i]))
            p.step[p.n++] = &d->step[i];
    if (p.n > 0)
        fit_solve(&p);
    else
        keep_all(param, n_params);
    settle(c);
    free(p.step);
}

/* The base's own points for collectives of which nothing was fitted. Returns whether any was. */
static bool restore_collectives(struct course *c, const struct collective_table *base)
{
    bool fitted[COLL_COUNT] = {false}, any = false;
    struct collective_table was = collective_copy(base), *t = &c->start.collectives;
    for (int i = 0; i < c->n_params; i++)
        if (c->param[i].stage == FIT_EXCHANGE && c->param[i].state != FIT_KEPT &&
            c->param[i].state != FIT_SET)
            any = fitted[c->param[i].which] = true;
    for (int op = 0; op < COLL_COUNT; op++) {
        if (fitted[op])
            continue;
        struct collective_curve *curve = t->curve[op];
        t->curve[op] = was.curve[op];
        was.curve[op] = curve;
    }
    collective_release(&was);
    return any;
}

/* Its attention deals out rows with 3 blocks of 64 tokens for each, and cuts contexts at blocks, of
 * which the last is half full. */
void fit_as_replayed(struct attention_profile *a)
{
    a->mla_prefill = MLA_ABSORBED;
    a->positions = POSITIONS_PARTIAL;
    a->row_tokens = 3 * 64 + 64 / 2;
}

/* The profile fitted to the steps that are not left out, to be released by the caller. */
static struct profile run_course(const struct fit_data *d, const struct profile *base,
                                 const bool *left_out, struct fit *f)
{
    struct course c = {.data = d, .left_out = left_out, .start = *base, .param = f->param};
    int first[FIT_STAGE_COUNT + 1] = {0};
    c.start.collectives = collective_copy(&base->collectives);
    fit_as_replayed(&c.start.attention);
    for (int s = 0; s < FIT_STAGE_COUNT; s++) {
        assert(first[s] + FIT_STAGE_PARAMS_MAX <= FIT_PARAMS_MAX);
        first[s + 1] = first[s] + fit_params((enum fit_stage)s, d, &c.start, &c.param[first[s]]);
    }
    c.n_params = f->n_params = first[FIT_STAGE_COUNT];
    trial_init(&c.trial, d, &c.start);
    for (int s = 0; s < FIT_STAGE_COUNT; s++)
        fit_stage(&c, (enum fit_stage)s, &c.param[first[s]], first[s + 1] - first[s]);
    f->fits_collectives =
        restore_collectives(&c, &base->collectives) || d->collectives_said != NULL;
    trial_release(&c.trial);
    return c.start;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double nearest_rank(const double *sorted, int n, double q)
{
    int rank = (int)ceil(q * n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

struct fit_errors fit_errors_of(double *error, int n)
{
    struct fit_errors e = {.n = n};
    if (n == 0)
        return e;
    for (int i = 0; i < n; i++) {
        e.mean += error[i] / n;
        error[i] = fabs(error[i]);
        e.abs_mean += error[i] / n;
    }
    qsort(error, (size_t)n, sizeof *error, ascending);
    e.abs_p50 = nearest_rank(error, n, 0.5);
    e.abs_p95 = nearest_rank(error, n, 0.95);
    return e;
}

/* Errors of one kind under one layout, or all; `of`: only steps so marked. */
static struct fit_errors errors_of(const struct trial *t, int kind, int layout, const bool *of)
{
    const struct fit_data *d = t->data;
    double *error = xcalloc(d->n + 1, sizeof *error);
    int n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct fit_step *s = &d->step[i];
        if ((of != NULL && !of[i]) || (layout < d->n_layouts && s->layout != layout) ||
            !fit_observes(t, kind, s))
            continue;
        error[n++] = fit_error(t, kind, s);
    }
    struct fit_errors e = fit_errors_of(error, n);
    free(error);
    return e;
}

static void judge(const struct fit_data *d, const struct profile *p, const bool *of,
                  struct fit_errors errors[FIT_KINDS][LAYOUT_MAX + 1])
{
    struct trial t;
    trial_init(&t, d, p);
    for (int kind = 0; kind < FIT_KINDS; kind++)
        for (int l = 0; l <= d->n_layouts; l++)
            errors[kind][l < d->n_layouts ? l : LAYOUT_MAX] = errors_of(&t, kind, l, of);
    trial_release(&t);
}

static int check(const struct fit_data *d, struct err *err)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->step[i].from < 0)
            return 0;
    return err_set(err, "every measured step switches; stages are fitted to steps that do not");
}

int fit_run(struct fit *f, const struct fit_data *d, const struct profile *base, struct err *err)
{
    struct profile from = *base;
    if (check(d, err) < 0)
        return -1;
    *f = (struct fit){0};
    from.collectives = collective_rebase(&base->collectives, &d->collectives, d->cluster->ranks);
    bool *held_out = draw_held_out(d), *none = xcalloc(d->n + 1, sizeof *none);
    struct profile blind = run_course(d, &from, held_out, f);
    judge(d, &blind, held_out, f->held_out);
    profile_release(&blind);
    f->profile = run_course(d, &from, none, f);
    judge(d, &f->profile, NULL, f->errors);
    collective_release(&from.collectives);
    free(held_out);
    free(none);
    return 0;
}

void fit_release(struct fit *f)
{
    profile_release(&f->profile);
}
