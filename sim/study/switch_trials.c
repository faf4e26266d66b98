/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/switch_trials.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/study/sample.h"

enum { HALVINGS = 200, NOISE_TRIALS_MIN = 4 };

static const double context_frac = 0.05;

/* Work space for one direction; every array has room for all steps of the join. */
struct scratch {
    const struct joined *j;
    int *ready; /* indices of the direction's target-ready steps */
    int n_ready;
    double *step_ns, *dt_ns, *waits_ns, *first_ns; /* by trial */
    double *of_batch;
};

static void scratch_init(struct scratch *s, const struct joined *j)
{
    size_t n = (size_t)j->n;
    *s = (struct scratch){.j = j, .ready = xcalloc(n, sizeof *s->ready)};
    double **const arrays[] = {&s->step_ns, &s->dt_ns, &s->waits_ns, &s->first_ns, &s->of_batch};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = xcalloc(n, sizeof **arrays[i]);
}

static void scratch_release(struct scratch *s)
{
    free(s->ready);
    free(s->step_ns);
    free(s->dt_ns);
    free(s->waits_ns);
    free(s->first_ns);
    free(s->of_batch);
}

static bool is_of(const struct joined_step *s, const struct switch_direction *d)
{
    return s->from == d->from && s->layout == d->to;
}

static bool is_trial(const struct joined_step *s, const struct switch_direction *d)
{
    return s->kind == STEP_SWITCH && is_of(s, d);
}

/* Whether the batch was also switched in the ways that are to be judged. */
static bool was_tried(const struct joined *j, const struct switch_direction *d,
                      const struct plan_step *batch)
{
    for (int i = 0; i < j->n; i++)
        if (is_trial(&j->step[i], d) && joined_same_batch(batch, j->step[i].at, context_frac))
            return true;
    return false;
}

static void find_ready(struct scratch *s, const struct switch_direction *d)
{
    s->n_ready = 0;
    for (int i = 0; i < s->j->n; i++) {
        const struct joined_step *r = &s->j->step[i];
        if (r->kind == STEP_READY && is_of(r, d) && was_tried(s->j, d, r->at))
            s->ready[s->n_ready++] = i;
    }
}

/* Median time of the target-ready steps of a step's batch, NAN without; *n counts them. */
static double ready_median(const struct scratch *s, const struct plan_step *at, int *n)
{
    *n = 0;
    for (int i = 0; i < s->n_ready; i++) {
        const struct joined_step *r = &s->j->step[s->ready[i]];
        if (joined_same_batch(r->at, at, context_frac))
            s->of_batch[(*n)++] = (double)r->meas->step_ns;
    }
    return sample_median(s->of_batch, *n);
}

static void shuffle(double *x, int n, struct rng *rng)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)rng_range(rng, 0, i);
        double swap = x[i];
        x[i] = x[k];
        x[k] = swap;
    }
}

/* Batches are pooled by their distances from their own medians. */
static double noise(struct scratch *s, struct rng *rng)
{
    double apart[HALVINGS], *x = s->step_ns;
    int n = 0, same;
    for (int i = 0; i < s->n_ready; i++) {
        const struct joined_step *r = &s->j->step[s->ready[i]];
        double median = ready_median(s, r->at, &same);
        if (same >= NOISE_TRIALS_MIN)
            x[n++] = (double)r->meas->step_ns - median;
    }
    if (n == 0)
        return NAN;
    for (int i = 0; i < HALVINGS; i++) {
        shuffle(x, n, rng);
        apart[i] = fabs(sample_median(x, n / 2) - sample_median(x + n / 2, n - n / 2));
    }
    return sample_median(apart, HALVINGS);
}

static double ready_time(struct scratch *s)
{
    for (int i = 0; i < s->n_ready; i++)
        s->step_ns[i] = (double)s->j->step[s->ready[i]].meas->step_ns;
    return sample_median(s->step_ns, s->n_ready);
}

static void add_trial(struct scratch *s, struct switch_way *w, const struct joined_step *t)
{
    int matched;
    double step_ns = (double)t->meas->step_ns, ready_ns = ready_median(s, t->at, &matched);
    s->step_ns[w->n] = step_ns;
    s->dt_ns[w->n] = matched > 0 ? step_ns - ready_ns : (double)t->meas->switch_exposed_ns;
    w->n_matched += matched > 0;
    w->n++;
}

/* A file that says nothing of the first layer gives no part of what was waited. */
static struct switch_parts find_parts(struct scratch *s, const struct switch_direction *d,
                                      enum mechanism mechanism, bool measured)
{
    int n = 0;
    bool said = true;
    for (int i = 0; i < s->j->n; i++) {
        const struct joined_step *t = &s->j->step[i];
        const struct plan_times *times = measured ? t->meas : t->pred;
        if (t->mechanism != mechanism || !is_trial(t, d))
            continue;
        s->waits_ns[n] = (double)times->switch_exposed_ns;
        s->first_ns[n++] = (double)times->switch_first_ns;
        said = said && (times->switch_first_ns > 0 || times->switch_exposed_ns == 0);
    }
    struct switch_parts p = {.waits_ns = sample_median(s->waits_ns, n), .slowed_ns = NAN};
    p.first_ns = said ? sample_median(s->first_ns, n) : NAN;
    p.later_ns = p.waits_ns - p.first_ns;
    return p;
}

/* The median of a normal variate's size is 0.67 deviations: two deviations. */
static const double noises_apart = 3;

static void fill_way(struct switch_way *w, struct scratch *s, const struct switch_direction *d,
                     enum mechanism mechanism)
{
    for (int i = 0; i < s->j->n; i++) {
        const struct joined_step *t = &s->j->step[i];
        if (t->mechanism == mechanism && is_trial(t, d))
            add_trial(s, w, t);
    }
    w->measured = find_parts(s, d, mechanism, true);
    w->predicted = find_parts(s, d, mechanism, false);
    w->step_ns = sample_median(s->step_ns, w->n);
    w->dt_ns = sample_median(s->dt_ns, w->n);
    w->dt_p95_ns = sample_quantile(s->dt_ns, w->n, 0.95);
    w->pred_ns = w->predicted.waits_ns;
    if (w->n_matched == w->n)
        w->measured.slowed_ns = w->dt_ns - w->measured.waits_ns;
    w->resolved = w->dt_ns > 0 && !(w->dt_ns < noises_apart * d->noise_ns);
    w->error = w->resolved ? w->pred_ns / w->dt_ns - 1 : NAN;
}

static void fill_direction(struct switch_direction *d, struct scratch *s, uint64_t seed)
{
    const struct switch_way *blocking = &d->way[MECH_BLOCKING];
    const struct switch_way *overlapped = &d->way[MECH_OVERLAPPED];
    char stream[160];
    struct rng rng;
    snprintf(stream, sizeof stream, "noise %s %s", s->j->layout[d->from], s->j->layout[d->to]);
    rng_stream(&rng, seed, stream);
    find_ready(s, d);
    d->n_ready = s->n_ready;
    d->ready_ns = ready_time(s);
    d->noise_ns = noise(s, &rng);
    for (int m = 0; m < MECH_COUNT; m++)
        fill_way(&d->way[m], s, d, m);
    bool both = blocking->n > 0 && overlapped->n > 0;
    d->hidden_frac =
        both && blocking->resolved ? 1 - fmax(overlapped->dt_ns, 0) / blocking->dt_ns : NAN;
    d->pred_hidden_frac =
        both && blocking->pred_ns > 0 ? 1 - overlapped->pred_ns / blocking->pred_ns : NAN;
}

static bool has_trials(const struct joined *j, const struct switch_direction *d)
{
    for (int i = 0; i < j->n; i++)
        if (is_trial(&j->step[i], d))
            return true;
    return false;
}

static void summarize_noise(struct switch_trials *t)
{
    int n = 0;
    double *noise_ns = xcalloc((size_t)t->n, sizeof *noise_ns);
    for (int i = 0; i < t->n; i++)
        if (!isnan(t->direction[i].noise_ns))
            noise_ns[n++] = t->direction[i].noise_ns;
    t->noise_p50_ns = sample_median(noise_ns, n);
    t->noise_p95_ns = sample_quantile(noise_ns, n, 0.95);
    free(noise_ns);
}

void switch_trials_init(struct switch_trials *t, const struct joined *j, uint64_t seed)
{
    struct scratch scratch;
    size_t cap = 0;
    *t = (struct switch_trials){0};
    scratch_init(&scratch, j);
    for (int from = 0; from < j->n_layouts; from++) {
        for (int to = 0; to < j->n_layouts; to++) {
            struct switch_direction d = {.from = from, .to = to};
            if (!has_trials(j, &d))
                continue;
            fill_direction(&d, &scratch, seed);
            t->direction = xgrow(t->direction, &cap, (size_t)t->n + 1, sizeof *t->direction);
            t->direction[t->n++] = d;
        }
    }
    scratch_release(&scratch);
    summarize_noise(t);
}

void switch_trials_release(struct switch_trials *t)
{
    free(t->direction);
    *t = (struct switch_trials){0};
}

static bool is_split(const struct switch_parts *p)
{
    return !isnan(p->slowed_ns) || (p->waits_ns > 0 && !isnan(p->first_ns));
}

bool switch_way_has_parts(const struct switch_way *w)
{
    return w->n > 0 && (is_split(&w->measured) || is_split(&w->predicted));
}

bool switch_trials_have_parts(const struct switch_trials *t)
{
    for (int i = 0; i < t->n; i++)
        for (int m = 0; m < MECH_COUNT; m++)
            if (switch_way_has_parts(&t->direction[i].way[m]))
                return true;
    return false;
}

double switch_trials_hidden_max(int layers)
{
    return 1 - 1.0 / layers;
}
