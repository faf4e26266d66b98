/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/step_errors.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"

enum { ANY_LAYOUT = -1 };

/* `buf` has room for all steps. */
static struct error_summary summarize(const struct joined *j, enum step_kind kind, int layout,
                                      double *buf)
{
    int n = 0;
    for (int i = 0; i < j->n; i++) {
        const struct joined_step *s = &j->step[i];
        if (s->kind == kind && (layout == ANY_LAYOUT || s->layout == layout))
            buf[n++] = s->error;
    }
    return sample_errors(buf, n);
}

static struct part_error summarize_part(const struct joined *j, enum step_kind kind,
                                        enum step_part part, double *buf)
{
    struct part_error e = {0};
    int64_t pred_ns[PART_COUNT], meas_ns[PART_COUNT];
    double total_ns = 0, step_ns = 0;
    int n = 0, n_steps = 0;
    for (int i = 0; i < j->n; i++) {
        const struct joined_step *s = &j->step[i];
        if (s->kind != kind)
            continue;
        joined_parts(s->pred, pred_ns);
        joined_parts(s->meas, meas_ns);
        double late_ns = (double)(pred_ns[part] - meas_ns[part]);
        if (meas_ns[part] > 0)
            buf[n++] = late_ns / (double)meas_ns[part];
        e.blame += late_ns / (double)s->meas->step_ns;
        total_ns += (double)meas_ns[part];
        step_ns += (double)s->meas->step_ns;
        n_steps++;
    }
    e.error = sample_errors(buf, n);
    e.share_frac = n_steps > 0 ? total_ns / step_ns : NAN;
    e.blame = n_steps > 0 ? e.blame / n_steps : NAN;
    return e;
}

/* Insert into a list that keeps the largest errors; of equal ones the earlier step stays ahead. */
static void keep_worst(struct step_errors *e, const struct joined *j, int step)
{
    int at = e->n_worst;
    while (at > 0 && fabs(j->step[e->worst[at - 1]].error) < fabs(j->step[step].error))
        at--;
    if (at == STEP_ERRORS_WORST)
        return;
    e->n_worst += e->n_worst < STEP_ERRORS_WORST;
    for (int i = e->n_worst - 1; i > at; i--)
        e->worst[i] = e->worst[i - 1];
    e->worst[at] = step;
}

void step_errors_init(struct step_errors *e, const struct joined *j, enum step_kind kind)
{
    double *buf = xcalloc((size_t)j->n, sizeof *buf);
    *e = (struct step_errors){.all = summarize(j, kind, ANY_LAYOUT, buf)};
    e->layout = xcalloc((size_t)j->n_layouts, sizeof *e->layout);
    for (int l = 0; l < j->n_layouts; l++)
        e->layout[l] = summarize(j, kind, l, buf);
    for (int p = 0; p < PART_COUNT; p++)
        e->part[p] = summarize_part(j, kind, p, buf);
    for (int i = 0; i < j->n; i++)
        if (j->step[i].kind == kind)
            keep_worst(e, j, i);
    free(buf);
}

void step_errors_release(struct step_errors *e)
{
    free(e->layout);
    *e = (struct step_errors){0};
}

/* Sum into the last window, after opening one where a switch begins it. */
static void add_step(struct schedule_errors *e, const struct joined *j, int i)
{
    const struct joined_step *s = &j->step[i];
    if (i == 0 || s->from >= 0)
        e->window[e->n_windows++] = (struct window){.first = i};
    struct window *w = &e->window[e->n_windows - 1];
    w->n++;
    double pred_ns = (double)s->pred->step_ns, meas_ns = (double)s->meas->step_ns;
    w->pred_ns += pred_ns;
    w->meas_ns += meas_ns;
    e->pred_ns += pred_ns;
    e->meas_ns += meas_ns;
}

void schedule_errors_init(struct schedule_errors *e, const struct joined *j)
{
    double *buf = xcalloc((size_t)j->n, sizeof *buf);
    *e = (struct schedule_errors){.window = xcalloc((size_t)j->n, sizeof *e->window)};
    for (int i = 0; i < j->n; i++)
        add_step(e, j, i);
    for (int i = 0; i < e->n_windows; i++) {
        struct window *w = &e->window[i];
        w->error = buf[i] = w->pred_ns / w->meas_ns - 1;
    }
    e->windows = sample_errors(buf, e->n_windows);
    e->error = e->pred_ns / e->meas_ns - 1;
    free(buf);
}

void schedule_errors_release(struct schedule_errors *e)
{
    free(e->window);
    *e = (struct schedule_errors){0};
}
