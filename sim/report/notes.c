/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/notes.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/units.h"
#include "sim/report/percent.h"

/* A time >= 0. */
static char *time_text(double ns, char *buf, size_t size)
{
    return units_time((int64_t)fmin(ns * PS_PER_NS, 9e18), buf, size);
}

char *note_noise(const struct switch_trials *t, char buf[NOTE_SIZE])
{
    char p50[32], p95[32];
    buf[0] = '\0';
    if (!isnan(t->noise_p50_ns))
        snprintf(buf, NOTE_SIZE,
                 "Noise (A/A), the dT between target-ready steps themselves: p50 %s, p95 %s over "
                 "directions.",
                 time_text(t->noise_p50_ns, p50, sizeof p50),
                 time_text(t->noise_p95_ns, p95, sizeof p95));
    return buf;
}

char *note_hidden(const struct validation *v, char buf[NOTE_SIZE])
{
    char limit[PERCENT_SIZE];
    bool any = false;
    for (int i = 0; i < v->trials.n; i++)
        any |= !isnan(v->trials.direction[i].hidden_frac) ||
               !isnan(v->trials.direction[i].pred_hidden_frac);
    buf[0] = '\0';
    if (any)
        snprintf(buf, NOTE_SIZE,
                 "Hidden is 1 - dT overlapped / dT blocking. Of %d layers the first one's transfer "
                 "always shows: at most %s hides where all move alike.",
                 v->joined.layers, percent(switch_trials_hidden_max(v->joined.layers), limit));
    return buf;
}

char *note_first_runs(const struct first_runs *f, char buf[NOTE_SIZE])
{
    char p50[2][PERCENT_SIZE], p95[2][PERCENT_SIZE];
    buf[0] = '\0';
    if (f->after_switch.n + f->others.n > 0)
        snprintf(buf, NOTE_SIZE,
                 "A step's first run against its median: %s (p95 %s) right after a switch (%d "
                 "steps), %s (p95 %s) elsewhere (%d steps).",
                 percent_signed(f->after_switch.p50, p50[0]),
                 percent_signed(f->after_switch.p95, p95[0]), f->after_switch.n,
                 percent_signed(f->others.p50, p50[1]), percent_signed(f->others.p95, p95[1]),
                 f->others.n);
    return buf;
}

char *note_hopb(const struct validation *v, char buf[NOTE_SIZE])
{
    const struct hopb_trial *worst = hopb_trials_loss(&v->hopb);
    char gain[PERCENT_SIZE];
    buf[0] = '\0';
    if (worst != NULL)
        snprintf(buf, NOTE_SIZE,
                 "It loses in %d of %d comparisons, most with %d sub-batches from step %lld on: "
                 "%s.",
                 v->hopb.losses, v->hopb.comparisons, worst->sub_batches,
                 (long long)v->joined.step[worst->step].at->step,
                 percent_signed(worst->gain, gain));
    return buf;
}
