/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/dist.h"

#include <assert.h>
#include <math.h>

#include "sim/base/draw.h"
#include "sim/base/ints.h"
#include "sim/base/units.h"
#include "workloads/preset.h"

#define SIGMA_MAX  10
#define WEIGHT_MAX 1e9
#define CV_MIN     0.01
#define CV_MAX     30

static int parse_point(struct dist *d, struct jobj *o, json_t *point, struct err *err)
{
    json_t *p = json_array_get(point, 0), *value = json_array_get(point, 1);
    if (json_array_size(point) != 2 || !json_is_number(p) || !json_is_number(value))
        return jobj_fail(o, "quantiles", err, "point %d is not [probability, value]", d->n);
    d->p[d->n] = json_number_value(p);
    d->value[d->n] = json_number_value(value);
    bool ascends = d->n == 0 ? d->p[0] == 0 && d->value[0] >= 0
                             : d->p[d->n] > d->p[d->n - 1] && d->value[d->n] >= d->value[d->n - 1];
    if (!ascends)
        return jobj_fail(o, "quantiles", err,
                         "point %d: probabilities must ascend from 0 to 1, and values with them "
                         "from 0 or more",
                         d->n);
    d->n++;
    return 0;
}

static int parse_table(struct dist *d, struct jobj *o, double limit, struct err *err)
{
    json_t *points;
    if (jobj_array(o, "quantiles", true, &points, err) < 0)
        return -1;
    size_t n = json_array_size(points);
    if (n < 2 || n > DIST_POINTS_MAX)
        return jobj_fail(o, "quantiles", err, "must have 2 to %d points", DIST_POINTS_MAX);
    for (size_t i = 0; i < n; i++)
        if (parse_point(d, o, json_array_get(points, i), err) < 0)
            return -1;
    if (d->p[n - 1] != 1)
        return jobj_fail(o, "quantiles", err, "the last point must be that of probability 1");
    if (d->value[n - 1] > limit)
        return jobj_fail(o, "quantiles", err, "values must be at most %g", limit);
    return 0;
}

static int parse_weights(struct dist *d, struct jobj *o, struct err *err)
{
    json_t *weights;
    double sum = 0, up_to = 0;
    if (jobj_array(o, "weights", true, &weights, err) < 0)
        return -1;
    size_t n = json_array_size(weights);
    if (n < 1 || n > DIST_POINTS_MAX)
        return jobj_fail(o, "weights", err, "must have 1 to %d numbers", DIST_POINTS_MAX);
    for (size_t i = 0; i < n; i++) {
        double weight = json_number_value(json_array_get(weights, i)); /* 0 for what is none */
        if (weight <= 0 || weight > WEIGHT_MAX)
            return jobj_fail(o, "weights", err, "must be numbers above 0, at most %g", WEIGHT_MAX);
        sum += weight;
    }
    for (d->n = 0; d->n < (int)n; d->n++) {
        up_to += json_number_value(json_array_get(weights, (size_t)d->n));
        d->p[d->n] = up_to / sum;
        d->value[d->n] = d->n + 1;
    }
    return 0;
}

static int parse_shape(struct dist *d, struct jobj *o, double limit, struct err *err)
{
    double cv = 1;
    switch (d->kind) {
    case DIST_CONSTANT: return jobj_f64(o, "value", true, 0, limit, &d->centre, err);
    case DIST_TABLE: return parse_table(d, o, limit, err);
    case DIST_WEIGHTS: return parse_weights(d, o, err);
    case DIST_LOGNORMAL:
        return jobj_f64(o, "median", true, 0, limit, &d->centre, err) < 0
                   ? -1
                   : jobj_f64(o, "sigma", true, 0, SIGMA_MAX, &d->shape, err);
    default:
        if (jobj_f64(o, "mean", true, 0, limit, &d->centre, err) < 0 ||
            jobj_f64(o, "cv", true, CV_MIN, CV_MAX, &cv, err) < 0)
            return -1;
        d->shape = 1 / (cv * cv);
        return 0;
    }
}

int dist_parse(struct dist *d, struct jobj *up, const char *key, double limit, struct err *err)
{
    static const char *const kinds[DIST_KINDS] = {"constant", "table", "weights", "lognormal",
                                                  "gamma"};
    struct jobj o;
    struct dist read = {.min = 0, .max = limit};
    int kind;
    if (jobj_open(&o, up, key, true, err) < 0 ||
        jobj_enum(&o, "kind", true, kinds, DIST_KINDS, &kind, err) < 0)
        return -1;
    read.kind = (enum dist_kind)kind;
    if (parse_shape(&read, &o, limit, err) < 0 ||
        jobj_f64(&o, "min", false, 0, limit, &read.min, err) < 0 ||
        jobj_f64(&o, "max", false, read.min, limit, &read.max, err) < 0 ||
        preset_source(&o, err) < 0 || jobj_done(&o, err) < 0)
        return -1;
    *d = read;
    return 0;
}

static double cut(const struct dist *d, double x)
{
    return fmin(fmax(x, d->min), d->max);
}

static double quantile(const struct dist *d, double p)
{
    int low = 0, high = d->n - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(d->p[middle] <= p ? &low : &high) = middle;
    }
    double part = (p - d->p[low]) / (d->p[high] - d->p[low]);
    return d->value[low] + part * (d->value[high] - d->value[low]);
}

static double weighted(const struct dist *d, double p)
{
    int i = 0;
    while (i < d->n - 1 && d->p[i] <= p)
        i++;
    return d->value[i];
}

double dist_draw(const struct dist *d, struct rng *r)
{
    switch (d->kind) {
    case DIST_CONSTANT: return cut(d, d->centre);
    case DIST_TABLE: return cut(d, quantile(d, rng_f64(r)));
    case DIST_WEIGHTS: return cut(d, weighted(d, rng_f64(r)));
    case DIST_LOGNORMAL: return dist_at(d, draw_normal(r));
    default: return cut(d, d->centre / d->shape * draw_gamma(r, d->shape));
    }
}

double dist_at(const struct dist *d, double score)
{
    assert(d->kind != DIST_GAMMA);
    switch (d->kind) {
    case DIST_CONSTANT: return cut(d, d->centre);
    case DIST_TABLE: return cut(d, quantile(d, erfc(-score / sqrt(2)) / 2));
    case DIST_WEIGHTS: return cut(d, weighted(d, erfc(-score / sqrt(2)) / 2));
    default: return cut(d, d->centre * exp(d->shape * score));
    }
}

int64_t dist_count(const struct dist *d, struct rng *r)
{
    return max_i64(llround(dist_draw(d, r)), 1);
}

int64_t dist_ps(const struct dist *d, struct rng *r)
{
    return llround(dist_draw(d, r) * (double)PS_PER_S);
}
