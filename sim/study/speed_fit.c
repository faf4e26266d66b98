/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/speed_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/study/speed_internal.h"

enum { PAGE_TOKENS = 64, ROUNDS = 10 }; /* memory plays no part */

static const double factor_high = 20, exchange_low = 0.1;
static const double launch_low_us = 1, launch_high_us = 200000;
static const double settled = 1e-6; /* of a parameter, relative */

static const struct {
    const char *name;
    enum profile_stage stage;
} parts[SPEED_PARTS] = {
    [SPEED_PROJ] = {"proj.time_factor", STAGE_PROJ},
    [SPEED_ATTN_PREFILL] = {"attn_prefill.time_factor", STAGE_ATTN_PREFILL},
    [SPEED_ATTN_DECODE] = {"attn_decode.time_factor", STAGE_ATTN_DECODE},
    [SPEED_FFN] = {"ffn.time_factor", STAGE_FFN},
    [SPEED_EXCHANGE] = {"collectives.time_factor", STAGE_COUNT},
    [SPEED_LAUNCH] = {"step_launch_us", STAGE_COUNT},
};

static double largest(const struct efficiency *e)
{
    double most = 0;
    for (int i = 0; i < e->n; i++)
        most = fmax(most, e->frac[i]);
    return most;
}

/* A stage may be so much faster that it reaches a peak somewhere. */
static double lowest_factor(const struct profile *base, int part)
{
    if (part == SPEED_EXCHANGE)
        return exchange_low;
    const struct stage_profile *s = &base->stage[parts[part].stage];
    return fmin(fmax(largest(&s->flop_frac), largest(&s->hbm_frac)), 1);
}

static void list_params(struct fit_param *param, const struct profile *base)
{
    for (int k = 0; k < SPEED_PARTS; k++) {
        bool is_launch = k == SPEED_LAUNCH;
        struct fit_param *q = &param[k];
        *q = (struct fit_param){.which = k,
                                .low = is_launch ? launch_low_us : lowest_factor(base, k),
                                .high = is_launch ? launch_high_us : factor_high,
                                .base = is_launch ? base->step_launch_us : 1};
        q->value = fmin(fmax(q->base, q->low), q->high);
        snprintf(q->name, sizeof q->name, "%s", parts[k].name);
    }
}

static void set_stage(struct stage_profile *s, const struct stage_profile *base, double factor)
{
    for (int i = 0; i < s->flop_frac.n; i++)
        s->flop_frac.frac[i] = base->flop_frac.frac[i] / factor;
    for (int i = 0; i < s->hbm_frac.n; i++)
        s->hbm_frac.frac[i] = base->hbm_frac.frac[i] / factor;
    s->launch_us = base->launch_us * factor;
}

static void set_collectives(struct collective_table *t, const struct collective_table *base,
                            double factor)
{
    for (int op = 0; op < COLL_COUNT; op++)
        for (int i = 0; i < t->n[op]; i++) {
            const struct collective_curve *from = &base->curve[op][i];
            t->curve[op][i].latency_us = from->latency_us * factor;
            for (int k = 0; k < from->n; k++)
                t->curve[op][i].point[k].us = from->point[k].us * factor;
        }
}

/* `p`, a copy of the base, with these parameters in it. */
static void set_profile(struct profile *p, const struct profile *base,
                        const struct fit_param *param)
{
    for (int k = SPEED_PROJ; k <= SPEED_FFN; k++)
        set_stage(&p->stage[parts[k].stage], &base->stage[parts[k].stage], param[k].value);
    p->attention.merge_us = base->attention.merge_us * param[SPEED_ATTN_DECODE].value;
    p->attention.combine_us = base->attention.combine_us * param[SPEED_ATTN_DECODE].value;
    set_collectives(&p->collectives, &base->collectives, param[SPEED_EXCHANGE].value);
    p->step_launch_us = param[SPEED_LAUNCH].value;
}

/* Every row's times as the cost model has them now, for parameters of 1. */
static void split_rows(struct speed_split *unit, const struct cost *c, const struct speeds *s,
                       const struct fit_param *param)
{
    for (int i = 0; i < s->n; i++) {
        unit[i] = speed_predict(c, s, &s->row[i], param[SPEED_LAUNCH].value);
        for (int k = 0; k < SPEED_LAUNCH; k++)
            unit[i].part_s[k] /= param[k].value;
    }
}

/* What was left open before may turn out to be known. */
static void solve_anew(struct speed_problem *p)
{
    for (int k = 0; k < SPEED_PARTS; k++) {
        p->param[k].state = FIT_FITTED;
        p->param[k].value = fmin(fmax(p->param[k].value, p->param[k].low), p->param[k].high);
    }
    speed_solve(p);
}

static bool is_settled(const struct fit_param *before, const struct fit_param *after)
{
    for (int k = 0; k < SPEED_PARTS; k++)
        if (fabs(after[k].value - before[k].value) > settled * before[k].value)
            return false;
    return true;
}

/* Where exchange hides beside attention, times are not quite linear in the parameters: then split
 * and solve again from there. */
static void solve(struct speed_fit *f, struct speed_problem *p, struct speed_split *unit,
                  struct cost *c, const struct profile *base)
{
    struct fit_param before[SPEED_PARTS];
    for (int round = 0; round < ROUNDS; round++) {
        set_profile(&f->profile, base, f->param);
        cost_set_profile(c, &f->profile);
        memcpy(before, f->param, sizeof before);
        split_rows(unit, c, p->speeds, f->param);
        solve_anew(p);
        if (is_settled(before, f->param))
            break;
    }
}

/* Four digits, as a profile's reader wants them. */
static void round_params(struct fit_param *param)
{
    char text[32];
    for (int k = 0; k < SPEED_PARTS; k++) {
        if (param[k].state != FIT_FITTED)
            continue;
        snprintf(text, sizeof text, "%.4g", param[k].value);
        param[k].value = fmin(fmax(strtod(text, NULL), param[k].low), param[k].high);
    }
}

static void sum_up(const struct speeds *s, const double *error, struct fit_errors *out)
{
    double *some = xcalloc((size_t)s->n, sizeof *some);
    for (int l = 0; l <= s->n_layouts; l++) {
        int n = 0;
        for (int i = 0; i < s->n; i++)
            if (l == s->n_layouts || s->row[i].layout == l)
                some[n++] = error[i];
        out[l < s->n_layouts ? l : LAYOUT_MAX] = fit_errors_of(some, n);
    }
    free(some);
}

/* Of the profile as it is written. */
static void judge(struct speed_fit *f, const struct speeds *s, const struct cost *c)
{
    double *error = xcalloc((size_t)s->n, sizeof *error);
    for (int i = 0; i < s->n; i++) {
        double launch_us = f->param[SPEED_LAUNCH].value;
        struct speed_split split = speed_predict(c, s, &s->row[i], launch_us);
        error[i] = speed_split_s(&split, launch_us) / s->row[i].s - 1;
    }
    sum_up(s, error, f->errors);
    free(error);
}

/* Of one shape, from its rows' errors; repeats count by their mean. -1: one layout alone. */
static double regret_of(const struct speeds *s, const double *error, int shape)
{
    double measured_s[LAYOUT_MAX] = {0}, predicted_s[LAYOUT_MAX] = {0};
    int repeats[LAYOUT_MAX] = {0}, best = -1, chosen = -1, n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct speed *r = &s->row[i];
        if (r->shape != shape)
            continue;
        measured_s[r->layout] += r->s;
        predicted_s[r->layout] = r->s * (1 + error[i]);
        n += repeats[r->layout]++ == 0;
    }
    for (int l = 0; l < s->n_layouts; l++) {
        if (repeats[l] == 0)
            continue;
        measured_s[l] /= repeats[l];
        best = best < 0 || measured_s[l] < measured_s[best] ? l : best;
        chosen = chosen < 0 || predicted_s[l] < predicted_s[chosen] ? l : chosen;
    }
    return n > 1 ? measured_s[chosen] / measured_s[best] - 1 : -1;
}

static void sum_up_regret(struct speed_fit *f, const struct speeds *s, const double *error)
{
    double sum = 0;
    for (int shape = 0; shape < s->n_shapes; shape++) {
        double regret = regret_of(s, error, shape);
        if (regret < 0)
            continue;
        sum += regret;
        f->regret_shapes++;
    }
    f->regret = f->regret_shapes > 0 ? sum / f->regret_shapes : 0;
}

/* Each shape by parameters that were fitted to all others. */
static void hold_out(struct speed_fit *f, const struct speeds *s, const struct speed_split *unit,
                     const struct profile *base)
{
    if (s->n_shapes < 2)
        return;
    double *error = xcalloc((size_t)s->n, sizeof *error);
    for (int shape = 0; shape < s->n_shapes; shape++) {
        struct fit_param param[SPEED_PARTS];
        struct speed_problem p = {
            .speeds = s, .unit = unit, .without_shape = shape, .param = param};
        list_params(param, base);
        solve_anew(&p);
        for (int i = 0; i < s->n; i++)
            if (s->row[i].shape == shape)
                error[i] = speed_predicted_s(&unit[i], param) / s->row[i].s - 1;
    }
    sum_up(s, error, f->held_out);
    sum_up_regret(f, s, error);
    free(error);
}

void speed_fit_run(struct speed_fit *f, const struct speeds *s, const struct profile *base)
{
    struct speed_split *unit = xcalloc((size_t)s->n, sizeof *unit);
    struct speed_problem p = {.speeds = s, .unit = unit, .without_shape = -1, .param = f->param};
    *f = (struct speed_fit){.profile = *base};
    f->profile.collectives = collective_copy(&base->collectives);
    list_params(f->param, base);
    struct cost *c =
        cost_new(s->model, s->cluster, &f->profile, s->layout, s->n_layouts, PAGE_TOKENS);
    solve(f, &p, unit, c, base);
    hold_out(f, s, unit, base);
    f->noise = p.noise;
    round_params(f->param);
    set_profile(&f->profile, base, f->param);
    cost_set_profile(c, &f->profile);
    judge(f, s, c);
    f->fits_collectives = f->param[SPEED_EXCHANGE].state == FIT_FITTED;
    cost_free(c);
    free(unit);
}

void speed_fit_release(struct speed_fit *f)
{
    profile_release(&f->profile);
}
