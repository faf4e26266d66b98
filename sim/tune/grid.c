/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/grid.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"

static double number_of(const char *text)
{
    char *end;
    double x = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(x) ? x : NAN;
}

static int add_value(struct axis *a, const char *text, size_t len, struct err *err)
{
    char *value = xasprintf("%.*s", (int)len, text);
    double x = number_of(value);
    if (!isnan(x)) {
        free(value);
        value = xasprintf("%.9g", x + 0.0); /* no -0 */
    }
    a->value = a->n > 0 ? a->value : xcalloc(AXIS_VALUES_MAX, sizeof *a->value);
    a->number = a->n > 0 ? a->number : xcalloc(AXIS_VALUES_MAX, sizeof *a->number);
    bool twice = false;
    for (int i = 0; i < a->n; i++)
        twice = twice || strcmp(a->value[i], value) == 0;
    int rc = 0;
    if (value[0] == '\0')
        rc = err_set(err, "--grid %s: an empty value", a->name);
    else if (twice)
        rc = err_set(err, "--grid %s: %s is named twice: drop one", a->name, value);
    else if (a->n == AXIS_VALUES_MAX)
        rc = err_set(err, "--grid %s: more than %d values", a->name, AXIS_VALUES_MAX);
    if (rc < 0) {
        free(value);
        return -1;
    }
    a->number[a->n] = x;
    a->value[a->n++] = value;
    return 0;
}

static int add_list(struct axis *a, const char *text, struct err *err)
{
    const char *sep = strchr(text, '|') != NULL ? "|" : ",";
    for (;;) {
        size_t len = strcspn(text, sep);
        if (add_value(a, text, len, err) < 0)
            return -1;
        if (text[len] == '\0')
            return 0;
        text += len + 1;
    }
}

/* Numbers between colons: how many, up to 3; 0 when the text is anything else. */
static int split_range(const char *text, double part[3])
{
    int n = 0;
    for (;;) {
        size_t len = strcspn(text, ":");
        char *copy = xasprintf("%.*s", (int)len, text);
        double x = number_of(copy);
        free(copy);
        if (n == 3 || isnan(x))
            return 0;
        part[n++] = x;
        if (text[len] == '\0')
            return n;
        text += len + 1;
    }
}

static int add_range(struct axis *a, double from, double to, double step, struct err *err)
{
    if (!(step > 0) || to < from)
        return err_set(err,
                       "--grid %s: a range is FROM:TO:STEP with TO at least FROM and a "
                       "positive STEP",
                       a->name);
    double count = floor((to - from) / step + 1e-6) + 1;
    if (count > AXIS_VALUES_MAX)
        return err_set(err, "--grid %s: more than %d values", a->name, AXIS_VALUES_MAX);
    for (int i = 0; i < (int)count; i++) {
        double x = from + i * step;
        char text[32];
        /* 0 must not come out as 1e-17. */
        snprintf(text, sizeof text, "%.9g", fabs(x) < step * 1e-9 ? 0 : x);
        if (add_value(a, text, strlen(text), err) < 0)
            return -1;
    }
    return 0;
}

static void release_axis(struct axis *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->value[i]);
    free(a->value);
    free(a->number);
    free(a->name);
    *a = (struct axis){0};
}

static int fill(struct axis *a, const char *values, struct err *err)
{
    double part[3];
    int parts = split_range(values, part);
    return parts >= 2 ? add_range(a, part[0], part[1], parts == 3 ? part[2] : 1, err)
                      : add_list(a, values, err);
}

/* Options may be written with '-' or '_'. */
static char *spell(const char *text, size_t len)
{
    char *name = xasprintf("%.*s", (int)len, text);
    size_t stem = strcspn(name, "."); /* margin.tp-dp keeps its '-' */
    for (size_t i = 0; i < stem; i++)
        if (name[i] == '-')
            name[i] = '_';
    return name;
}

int grid_add(struct grid *g, const char *text, struct err *err)
{
    size_t len = strcspn(text, "=");
    if (len == 0 || text[len] == '\0' || text[len + 1] == '\0')
        return err_set(err, "--grid: write NAME=VALUE,VALUE or NAME=FROM:TO:STEP, not \"%s\"",
                       text);
    if (g->n == GRID_AXES_MAX)
        return err_set(err, "--grid: more than %d options", GRID_AXES_MAX);
    struct axis *a = &g->axis[g->n];
    *a = (struct axis){.name = spell(text, len)};
    int rc = 0;
    for (int i = 0; i < g->n; i++)
        if (strcmp(g->axis[i].name, a->name) == 0)
            rc = err_set(err, "--grid %s: given twice: put all its values into one", a->name);
    if (rc == 0)
        rc = fill(a, text + len + 1, err);
    assert(rc < 0 || a->n > 0);
    if (rc == 0 && grid_points(g) > GRID_POINTS_MAX / a->n)
        rc = err_set(err, "--grid: more settings than can be counted");
    if (rc < 0) {
        release_axis(a);
        return -1;
    }
    g->n++;
    return 0;
}

void grid_release(struct grid *g)
{
    for (int i = 0; i < g->n; i++)
        release_axis(&g->axis[i]);
    g->n = 0;
}

int64_t grid_points(const struct grid *g)
{
    int64_t n = 1;
    for (int i = 0; i < g->n; i++)
        n *= g->axis[i].n;
    return n;
}

int grid_at(const struct grid *g, int64_t point, int axis)
{
    for (int i = g->n - 1; i > axis; i--)
        point /= g->axis[i].n;
    return (int)(point % g->axis[axis].n);
}

const char *grid_value(const struct grid *g, int64_t point, int axis)
{
    return g->axis[axis].value[grid_at(g, point, axis)];
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In order already: a point drawn again counts once. */
static int64_t drop_repeats(int64_t *point, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || point[kept - 1] != point[i])
            point[kept++] = point[i];
    return kept;
}

int64_t grid_choose(const struct grid *g, int64_t n, uint64_t seed, int64_t **point)
{
    struct rng r;
    int64_t all = grid_points(g), got = 0;
    n = n < all ? n : all;
    *point = xcalloc((size_t)n, sizeof **point);
    rng_stream(&r, seed, "grid");
    if (n > all / 2) { /* selection sampling: each point with the chance that is left for it */
        for (int64_t i = 0; got < n; i++)
            if (rng_range(&r, 0, all - i - 1) < n - got)
                (*point)[got++] = i;
        return n;
    }
    while (got < n) {
        for (int64_t i = got; i < n; i++)
            (*point)[i] = rng_range(&r, 0, all - 1);
        qsort(*point, (size_t)n, sizeof **point, compare);
        got = drop_repeats(*point, n);
    }
    return n;
}
