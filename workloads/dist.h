/* SPDX-License-Identifier: Apache-2.0
 *
 * How a length, a count or a time is distributed, as a preset says it: a constant, a table of
 * quantiles, weights of small counts, a log-normal or a gamma, each cut to [min, max].
 */
#ifndef WORKLOADS_DIST_H
#define WORKLOADS_DIST_H

#include "sim/base/json.h"
#include "sim/base/rng.h"

enum dist_kind { DIST_CONSTANT, DIST_TABLE, DIST_WEIGHTS, DIST_LOGNORMAL, DIST_GAMMA, DIST_KINDS };

enum { DIST_POINTS_MAX = 32 };

struct dist {
    enum dist_kind kind;
    double centre; /* the constant; a log-normal's median; a gamma's mean */
    double shape;  /* a log-normal's sigma; of a gamma 1 / cv^2 */
    int n;         /* points: `value` at probability `p`, linear between; of weights up to it */
    double p[DIST_POINTS_MAX], value[DIST_POINTS_MAX];
    double min, max;
};

/* Read the object under `key`: {"kind":"constant","value":V}, {"kind":"table","quantiles":[[P,V],
 * ...]} from P = 0 to 1, {"kind":"weights","weights":[W1,W2,...]} of 1, 2, ...,
 * {"kind":"lognormal", "median":M,"sigma":S} or {"kind":"gamma","mean":M,"cv":C}, with "source"
 * and, if wanted, "min" and "max". No value is negative or above `limit`. */
int dist_parse(struct dist *d, struct jobj *up, const char *key, double limit, struct err *err);
double dist_draw(const struct dist *d, struct rng *r);
/* The value that stands where `score` does in the standard normal distribution: draws from
 * correlated scores are correlated. Of all but a gamma. */
double dist_at(const struct dist *d, double score);
/* A draw, rounded; at least 1. */
int64_t dist_count(const struct dist *d, struct rng *r);
/* A draw of seconds. */
int64_t dist_ps(const struct dist *d, struct rng *r);

#endif
