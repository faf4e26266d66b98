/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/frontier.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

void frontier_release(struct frontier *f)
{
    free(f->point);
    *f = (struct frontier){0};
}

/* How many points have more tokens/s/user than x; the next one has at most as many. */
static size_t faster_than(const struct frontier *f, double x)
{
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (f->point[mid].tok_s_user > x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The last point with at least x tokens/s/user: of those the one with most tokens/s/GPU. */
static const struct pareto_point *last_at(const struct frontier *f, double x)
{
    size_t i = faster_than(f, x);
    if (i < f->n && f->point[i].tok_s_user == x)
        return &f->point[i];
    return i > 0 ? &f->point[i - 1] : NULL;
}

bool frontier_covers(const struct frontier *f, double tok_s_user, double tok_s_gpu)
{
    const struct pareto_point *p = last_at(f, tok_s_user);
    return p != NULL && p->tok_s_gpu >= tok_s_gpu;
}

static bool is_twin(const struct pareto_point *a, const struct pareto_point *b)
{
    return a->tok_s_user == b->tok_s_user && a->tok_s_gpu == b->tok_s_gpu;
}

void frontier_add(struct frontier *f, const struct pareto_point *p)
{
    size_t from = faster_than(f, p->tok_s_user), to = from;
    if (from < f->n && is_twin(&f->point[from], p)) {
        if (p->number < f->point[from].number)
            f->point[from] = *p;
        return;
    }
    if (frontier_covers(f, p->tok_s_user, p->tok_s_gpu))
        return;
    while (to < f->n && f->point[to].tok_s_gpu <= p->tok_s_gpu)
        to++;
    f->point = xgrow(f->point, &f->cap, f->n + 1, sizeof *f->point);
    memmove(&f->point[from + 1], &f->point[to], (f->n - to) * sizeof *f->point);
    f->point[from] = *p;
    f->n = f->n - (to - from) + 1;
}

void frontier_merge(struct frontier *into, const struct frontier *from)
{
    for (size_t i = 0; i < from->n; i++)
        frontier_add(into, &from->point[i]);
}

double frontier_gpu_at(const struct frontier *f, double tok_s_user)
{
    const struct pareto_point *p = last_at(f, tok_s_user);
    return p != NULL ? p->tok_s_gpu : 0;
}

double frontier_user_at(const struct frontier *f, double tok_s_gpu)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->point[i].tok_s_gpu >= tok_s_gpu)
            return f->point[i].tok_s_user;
    return 0;
}

/* What is compared, and where. */
struct comparison {
    double (*value)(const struct frontier *f, double at);
    double (*place)(const struct pareto_point *p);
};

static double place_gpu(const struct pareto_point *p)
{
    return p->tok_s_gpu;
}

static double place_user(const struct pareto_point *p)
{
    return p->tok_s_user;
}

static int by_place(const void *a, const void *b)
{
    double x = ((const struct ratio_point *)a)->at, y = ((const struct ratio_point *)b)->at;
    return (x > y) - (x < y);
}

static void add_steps(struct ratio_curve *c, const struct comparison *how,
                      const struct frontier *steps, const struct frontier *f,
                      const struct frontier *base)
{
    for (size_t i = 0; i < steps->n; i++) {
        double at = how->place(&steps->point[i]);
        double above = how->value(f, at), below = how->value(base, at);
        if (above > 0 && below > 0)
            c->point[c->n++] = (struct ratio_point){at, above / below};
    }
}

static void compare(struct ratio_curve *c, const struct comparison *how, const struct frontier *f,
                    const struct frontier *base)
{
    size_t kept = 0;
    *c = (struct ratio_curve){.point = xcalloc(f->n + base->n + 1, sizeof *c->point)};
    add_steps(c, how, f, f, base);
    add_steps(c, how, base, f, base);
    qsort(c->point, c->n, sizeof *c->point, by_place);
    for (size_t i = 0; i < c->n; i++)
        if (kept == 0 || c->point[i].at != c->point[kept - 1].at)
            c->point[kept++] = c->point[i];
    c->n = kept;
}

void ratio_interactivity(struct ratio_curve *c, const struct frontier *f,
                         const struct frontier *base)
{
    compare(c, &(struct comparison){frontier_user_at, place_gpu}, f, base);
}

void ratio_concurrency(struct ratio_curve *c, const struct frontier *f, const struct frontier *base)
{
    compare(c, &(struct comparison){frontier_gpu_at, place_user}, f, base);
}

void ratio_release(struct ratio_curve *c)
{
    free(c->point);
    *c = (struct ratio_curve){0};
}

struct ratio_point ratio_max(const struct ratio_curve *c)
{
    struct ratio_point best = {0};
    for (size_t i = 0; i < c->n; i++)
        if (c->point[i].ratio > best.ratio)
            best = c->point[i];
    return best;
}

static int by_ratio(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ratio_median(const struct ratio_curve *c)
{
    if (c->n == 0)
        return 0;
    double *ratio = xcalloc(c->n, sizeof *ratio);
    for (size_t i = 0; i < c->n; i++)
        ratio[i] = c->point[i].ratio;
    qsort(ratio, c->n, sizeof *ratio, by_ratio);
    double median = ratio[c->n / 2];
    free(ratio);
    return median;
}
