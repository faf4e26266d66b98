/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/trial_plans.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/study/trial_steps.h"

/* These keep a step's time within what the clock can count. */
static const int64_t ctx_tokens_max = 1 << 24, rows_max = 1 << 20;

static int check_step(const struct trial_source *source, const struct plan_step *s, struct err *err)
{
    int64_t rows = 0;
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        rows += min_i64(r->q, rows_max + 1);
        if (r->ctx_tokens > ctx_tokens_max || rows > rows_max)
            return err_at(err, source->path, 0,
                          "step %lld: a context of more than %lld tokens, or more than %lld query "
                          "rows, cannot be timed",
                          (long long)s->step, (long long)ctx_tokens_max, (long long)rows_max);
    }
    return 0;
}

static void take_rows(struct trial_steps *t, const struct plan_step *s)
{
    trial_steps_clear(t);
    for (int i = 0; i < s->n_rows; i++)
        trial_steps_add(t, s->row[i].req, s->row[i].owner, s->row[i].ctx_tokens, s->row[i].q);
}

static int check_ranks(const struct trial_source *source, const struct cost *c, struct err *err)
{
    int ranks = source->plan->header.ranks;
    if (ranks == cost_ranks(c))
        return 0;
    return err_at(err, source->path, 1, "the plan is for %d ranks, the cluster has %d", ranks,
                  cost_ranks(c));
}

int trial_plans_compare(struct plan *out, const struct trial_setting *setting,
                        const struct trial_source *source, int *left_out, struct err *err)
{
    const struct plan *p = source->plan;
    struct trial_steps t;
    int missing = 0;
    if (check_ranks(source, setting->cost, err) < 0)
        return -1;
    trial_steps_init(&t, setting);
    for (int64_t i = 0; i < p->n; i += source->every) {
        if (check_step(source, &p->step[i], err) < 0) {
            trial_steps_release(&t);
            return -1;
        }
        take_rows(&t, &p->step[i]);
        missing += trial_steps_run_each(&t);
    }
    *out = trial_steps_take(&t);
    *left_out = missing;
    return 0;
}

struct direction {
    int from, to;
    enum mechanism mechanism;
};

/* Every directed pair by every mechanism under trial; returns their number. */
static int list_directions(struct direction *d, int n_layouts)
{
    static const enum mechanism tried[] = {MECH_FREE, MECH_BLOCKING, MECH_OVERLAPPED};
    int n = 0;
    for (int from = 0; from < n_layouts; from++)
        for (int to = 0; to < n_layouts; to++)
            for (size_t m = 0; from != to && m < sizeof tried / sizeof *tried; m++)
                d[n++] = (struct direction){from, to, tried[m]};
    return n;
}

static void shuffle(struct direction *d, int n, struct rng *r)
{
    for (int i = n - 1; i > 0; i--) {
        int64_t j = rng_range(r, 0, i);
        struct direction other = d[j];
        d[j] = d[i];
        d[i] = other;
    }
}

static void draw_requests(struct trial_steps *t, const struct trial_switches *s)
{
    struct rng r;
    int64_t reach = llround((double)s->ctx_tokens * s->spread_frac);
    int ranks = cost_ranks(t->setting->cost);
    rng_stream(&r, t->setting->seed, "contexts");
    for (int64_t i = 0; i < s->batch; i++) {
        int64_t tokens = s->ctx_tokens + rng_range(&r, -reach, reach);
        int64_t rows = i < s->batch - ranks ? 1 : max_i64(s->chunk_rows, 1);
        trial_steps_add(t, i, (int)(i % ranks), max_i64(tokens, rows), rows);
    }
}

static int check_room(const struct trial_steps *t, const struct trial_switches *s, struct err *err)
{
    const struct model *m = cost_model(t->setting->cost);
    int64_t longest_tokens = 0;
    for (int i = 0; i < t->n_rows; i++)
        longest_tokens = max_i64(longest_tokens, t->row[i].ctx_tokens);
    if (longest_tokens > m->max_context_tokens)
        return err_set(err,
                       "--context, --spread: %s allows %lld tokens, and a request would have %lld; "
                       "try shorter ones",
                       m->name, (long long)m->max_context_tokens, (long long)longest_tokens);
    for (int l = 0; l < cost_n_layouts(t->setting->cost); l++)
        if (!trial_steps_fit(t, l))
            return err_set(err,
                           "--batch, --context: %lld requests of about %lld tokens do not fit "
                           "under %s; try fewer, shorter ones or other --layouts",
                           (long long)s->batch, (long long)s->ctx_tokens,
                           cost_layout(t->setting->cost, l)->name);
    return 0;
}

int trial_plans_switches(struct plan *out, const struct trial_setting *setting,
                         const struct trial_switches *s, struct err *err)
{
    struct direction d[3 * LAYOUT_MAX * LAYOUT_MAX];
    int n = list_directions(d, cost_n_layouts(setting->cost));
    struct trial_steps t;
    struct rng r;
    if (n == 0)
        return err_set(err, "--layouts: a switch needs two layouts at least");
    trial_steps_init(&t, setting);
    draw_requests(&t, s);
    if (check_room(&t, s, err) < 0) {
        trial_steps_release(&t);
        return -1;
    }
    rng_stream(&r, setting->seed, "directions");
    for (int64_t round = 0; round < s->repeats; round++) {
        shuffle(d, n, &r);
        for (int i = 0; i < n; i++) {
            trial_steps_run(&t, d[i].from, MECH_FREE);
            trial_steps_run(&t, d[i].to, d[i].mechanism);
        }
    }
    *out = trial_steps_take(&t);
    return 0;
}

static int layout_index(const struct cost *c, const char *name)
{
    for (int i = 0; i < cost_n_layouts(c); i++)
        if (strcmp(cost_layout(c, i)->name, name) == 0)
            return i;
    return -1;
}

static enum mechanism mechanism_index(const char *name)
{
    int m = 0;
    while (m + 1 < MECH_COUNT && strcmp(mechanism_names[m], name) != 0)
        m++;
    return (enum mechanism)m;
}

static void predict_step(struct trial_steps *t, const struct plan_step *s)
{
    const struct cost *c = t->setting->cost;
    int to = layout_index(c, s->layout);
    int from = s->from[0] != '\0' ? layout_index(c, s->from) : to;
    assert(to >= 0 && from >= 0);
    take_rows(t, s);
    t->layout = from;
    trial_steps_run(t, to, mechanism_index(s->mechanism));
    struct plan_step *made = &t->plan.step[t->plan.n - 1];
    made->step = s->step;
    made->at_ns = s->at_ns;
}

int trial_plans_predict(struct plan *out, const struct trial_setting *setting,
                        const struct trial_source *source, struct err *err)
{
    struct trial_steps t;
    if (check_ranks(source, setting->cost, err) < 0)
        return -1;
    trial_steps_init(&t, setting);
    for (int i = 0; i < source->plan->n; i++) {
        if (check_step(source, &source->plan->step[i], err) < 0) {
            trial_steps_release(&t);
            return -1;
        }
        predict_step(&t, &source->plan->step[i]);
    }
    *out = trial_steps_take(&t);
    return 0;
}
