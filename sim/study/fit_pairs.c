/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/fit_pairs.h"

#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/study/fit_internal.h"
#include "sim/study/speed_internal.h"

enum { PAGE_TOKENS = 64 }; /* memory plays no part */

static void add(struct fit_pairs *p, struct fit_pair pair)
{
    p->pair = xgrow(p->pair, &p->cap, p->n + 1, sizeof *p->pair);
    p->pair[p->n++] = pair;
}

static size_t stride_of(size_t n)
{
    return n / FIT_PAIRS_MAX + 1;
}

static void add_kind(struct fit_pairs *p, const struct trial *t, int kind)
{
    const struct fit_data *d = t->data;
    size_t n = 0, seen = 0;
    for (size_t i = 0; i < d->n; i++)
        n += fit_observes(t, kind, &d->step[i]);
    for (size_t i = 0; i < d->n; i++) {
        const struct fit_step *s = &d->step[i];
        if (!fit_observes(t, kind, s) || seen++ % stride_of(n) != 0)
            continue;
        add(p, (struct fit_pair){.of = kind == FIT_STEP ? "step" : fit_stage_names[kind],
                                 .layout = d->layout[s->layout].name,
                                 .measured_s = 1e-9 * (double)fit_measured_ns(kind, s),
                                 .predicted_s = trial_predict_s(t, kind, s)});
    }
}

void fit_pairs_of_plans(struct fit_pairs *p, const struct fit *f, const struct fit_data *d)
{
    struct trial t;
    *p = (struct fit_pairs){0};
    trial_init(&t, d, &f->profile);
    add_kind(p, &t, FIT_STEP);
    for (int kind = 0; kind < FIT_STAGE_COUNT; kind++)
        if (kind != FIT_REST)
            add_kind(p, &t, kind);
    trial_release(&t);
}

void fit_pairs_of_speeds(struct fit_pairs *p, const struct speed_fit *f, const struct speeds *s)
{
    double launch_us = f->param[SPEED_LAUNCH].value;
    struct cost *c =
        cost_new(s->model, s->cluster, &f->profile, s->layout, s->n_layouts, PAGE_TOKENS);
    *p = (struct fit_pairs){0};
    for (int i = 0; i < s->n; i += (int)stride_of((size_t)s->n)) {
        const struct speed *r = &s->row[i];
        struct speed_split split = speed_predict(c, s, r, launch_us);
        add(p, (struct fit_pair){.of = r->is_step ? "step" : "burst",
                                 .layout = s->layout[r->layout].name,
                                 .measured_s = r->s,
                                 .predicted_s = speed_split_s(&split, launch_us)});
    }
    cost_free(c);
}

void fit_pairs_release(struct fit_pairs *p)
{
    free(p->pair);
    *p = (struct fit_pairs){0};
}
