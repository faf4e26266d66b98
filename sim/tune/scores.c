/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/scores.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"

static void weigh(struct scores *s, const struct draw_set *draws)
{
    int traces = draws->n > 0 ? draws->trace[draws->n - 1] + 1 : 0;
    for (int d = 0; d < draws->n; d++) {
        int same = 0;
        for (int i = 0; i < draws->n; i++)
            same += draws->trace[i] == draws->trace[d];
        s->weight[d] = 1.0 / ((double)traces * same);
    }
}

/* Objectives and completed requests of one setting. */
static void read_runs(struct scores *s, int64_t setting, const struct formula *objective,
                      const struct metrics *run)
{
    static const char completed[] = "completed";
    int metric = metric_find(completed);
    s->completed[setting] = 0;
    for (int d = 0; d < s->draws; d++) {
        const struct metrics *m = &run[setting * s->draws + d];
        s->value[setting * s->draws + d] = formula_value(objective, m);
        s->completed[setting] += m->value[metric];
    }
}

static bool has_values(const struct scores *s, int64_t setting, double most_completed)
{
    if (s->completed[setting] < most_completed)
        return false;
    for (int d = 0; d < s->draws; d++)
        if (isnan(s->value[setting * s->draws + d]))
            return false;
    return true;
}

/* Over the draw's best, for all settings. */
static void compare_on(struct scores *s, int draw, const bool *counts)
{
    double best = NAN;
    for (int64_t i = 0; i < s->n; i++) {
        double x = s->value[i * s->draws + draw];
        if (counts[i] && !(best <= x))
            best = x;
    }
    for (int64_t i = 0; i < s->n; i++) {
        double over = s->value[i * s->draws + draw] - best;
        s->above_frac[i * s->draws + draw] = best != 0 ? over / fabs(best) : over;
    }
}

void scores_make(struct scores *s, const struct formula *objective, const struct draw_set *draws,
                 const struct metrics *run, const bool *in, int64_t n)
{
    size_t cells = (size_t)n * (size_t)draws->n;
    double most = -1;
    bool *counts = xcalloc((size_t)n, sizeof *counts);
    *s = (struct scores){
        .n = n,
        .draws = draws->n,
        .weight = xcalloc((size_t)draws->n, sizeof(double)),
        .value = xcalloc(cells, sizeof(double)),
        .above_frac = xcalloc(cells, sizeof(double)),
        .mean_frac = xcalloc((size_t)n, sizeof(double)),
        .completed = xcalloc((size_t)n, sizeof(double)),
    };
    weigh(s, draws);
    for (int64_t i = 0; i < n; i++) {
        s->completed[i] = -1;
        if (in[i])
            read_runs(s, i, objective, run);
        most = s->completed[i] > most ? s->completed[i] : most;
    }
    for (int64_t i = 0; i < n; i++)
        counts[i] = in[i] && has_values(s, i, most);
    for (int d = 0; d < draws->n; d++)
        compare_on(s, d, counts);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int d = 0; d < draws->n; d++)
            sum += s->weight[d] * s->above_frac[i * draws->n + d];
        s->mean_frac[i] = counts[i] ? sum : NAN;
    }
    free(counts);
}

void scores_release(struct scores *s)
{
    free(s->weight);
    free(s->value);
    free(s->above_frac);
    free(s->mean_frac);
    free(s->completed);
    *s = (struct scores){0};
}

struct place {
    double mean_frac, completed;
    int64_t setting;
};

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    bool x_has = !isnan(x->mean_frac), y_has = !isnan(y->mean_frac);
    if (x_has != y_has)
        return x_has ? -1 : 1;
    if (x_has && x->mean_frac != y->mean_frac)
        return x->mean_frac < y->mean_frac ? -1 : 1;
    if (!x_has && x->completed != y->completed)
        return x->completed > y->completed ? -1 : 1;
    return x->setting < y->setting ? -1 : 1;
}

int64_t scores_order(const struct scores *s, int64_t **order)
{
    struct place *place = xcalloc((size_t)s->n, sizeof *place);
    size_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (s->completed[i] >= 0)
            place[n++] = (struct place){s->mean_frac[i], s->completed[i], i};
    qsort(place, n, sizeof *place, compare);
    *order = xcalloc(n, sizeof **order);
    for (size_t i = 0; i < n; i++)
        (*order)[i] = place[i].setting;
    free(place);
    return (int64_t)n;
}

double scores_objective(const struct scores *s, int64_t setting)
{
    double sum = 0;
    for (int d = 0; d < s->draws; d++)
        sum += s->weight[d] * s->value[setting * s->draws + d];
    return sum;
}
