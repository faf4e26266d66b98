/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/hopb_trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

static const char variant[] = ",hopb=";
static const double decisive_frac = 0.02;

static int sub_batches(const char *layout)
{
    const char *at = strstr(layout, variant);
    return at != NULL ? (int)strtol(at + strlen(variant), NULL, 10) : 1;
}

/* Whether a layout is that of `whole`, but cut. */
static bool is_cut(const char *layout, const char *whole)
{
    size_t n = strlen(whole);
    return sub_batches(layout) > 1 && strncmp(layout, whole, n) == 0 &&
           strncmp(layout + n, variant, strlen(variant)) == 0;
}

static struct hopb_trial *append(struct hopb_trials *t, size_t *cap, const struct hopb_trial *trial)
{
    t->trial = xgrow(t->trial, cap, (size_t)t->n + 1, sizeof *t->trial);
    t->trial[t->n] = *trial;
    return &t->trial[t->n++];
}

static void add_cut(struct hopb_trials *t, size_t *cap, int whole, struct hopb_trial cut)
{
    const struct hopb_trial *w = &t->trial[whole];
    cut.pred_gain = cut.pred_ns > 0 ? (double)w->pred_ns / (double)cut.pred_ns - 1 : NAN;
    cut.gain = (double)w->meas_ns / (double)cut.meas_ns - 1;
    cut.misjudged = (cut.gain < 0) != (cut.pred_gain < 0) && fabs(cut.gain) >= decisive_frac;
    t->comparisons++;
    t->losses += cut.gain < 0;
    t->misjudged += cut.misjudged;
    struct hopb_trial *at = append(t, cap, &cut);
    for (; at - 1 > &t->trial[whole] && at[-1].sub_batches > cut.sub_batches; at--)
        at[0] = at[-1];
    *at = cut;
}

static void add_trials(struct hopb_trials *t, size_t *cap, const struct joined *j,
                       const struct order_group *g, const struct order_member *whole)
{
    const char *name = j->layout[whole->layout];
    struct hopb_trial trial = {g->first,       whole->layout, 1,   whole->pred_ns,
                               whole->meas_ns, NAN,           NAN, false};
    int at = t->n;
    for (int i = 0; i < g->n; i++) {
        const struct order_member *m = &g->member[i];
        const char *other = j->layout[m->layout];
        if (!is_cut(other, name))
            continue;
        if (at == t->n)
            append(t, cap, &trial);
        trial.sub_batches = sub_batches(other);
        trial.pred_ns = m->pred_ns;
        trial.meas_ns = m->meas_ns;
        add_cut(t, cap, at, trial);
    }
}

void hopb_trials_init(struct hopb_trials *t, const struct joined *j, const struct layout_order *o)
{
    size_t cap = 0;
    *t = (struct hopb_trials){0};
    for (int i = 0; i < o->n; i++)
        for (int m = 0; m < o->group[i].n; m++)
            add_trials(t, &cap, j, &o->group[i], &o->group[i].member[m]);
}

void hopb_trials_release(struct hopb_trials *t)
{
    free(t->trial);
    *t = (struct hopb_trials){0};
}

const struct hopb_trial *hopb_trials_loss(const struct hopb_trials *t)
{
    const struct hopb_trial *worst = NULL;
    for (int i = 0; i < t->n; i++)
        if (t->trial[i].gain < (worst != NULL ? worst->gain : 0))
            worst = &t->trial[i];
    return worst;
}

const struct hopb_trial *hopb_trials_misjudged(const struct hopb_trials *t)
{
    const struct hopb_trial *worst = NULL;
    for (int i = 0; i < t->n; i++)
        if (t->trial[i].misjudged && fabs(t->trial[i].gain) > (worst ? fabs(worst->gain) : 0))
            worst = &t->trial[i];
    return worst;
}
