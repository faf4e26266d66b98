/* SPDX-License-Identifier: Apache-2.0
 *
 * The Pareto frontier of interactivity (tokens/s/user = 1 / TTL) and throughput (tokens/s/GPU), and
 * one frontier over another as functions. A frontier is a set: whatever the order in which points
 * are added, and however partial frontiers are merged, it comes out the same.
 */
#ifndef SIM_PARETO_FRONTIER_H
#define SIM_PARETO_FRONTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/pareto/mapping.h"

struct pareto_point {
    struct mapping mapping;
    int64_t batch;   /* concurrent requests */
    uint64_t number; /* of the configuration: of two with equal results, the lower stays */
    double tok_s_user, tok_s_gpu;
};

/* Zeroed is empty. Points descend in tok_s_user and rise in tok_s_gpu, both strictly. */
struct frontier {
    struct pareto_point *point;
    size_t n, cap;
};

void frontier_release(struct frontier *f);
/* Whether a point has both values at least as large. */
bool frontier_covers(const struct frontier *f, double tok_s_user, double tok_s_gpu);
/* Keep p unless another has both values at least as large; what p beats goes. */
void frontier_add(struct frontier *f, const struct pareto_point *p);
void frontier_merge(struct frontier *into, const struct frontier *from);

/* The most tokens/s/user at so many tokens/s/GPU at least, and the other way; 0 when out of reach.
 */
double frontier_user_at(const struct frontier *f, double tok_s_gpu);
double frontier_gpu_at(const struct frontier *f, double tok_s_user);

/* One frontier over another where both have values. */
struct ratio_point {
    double at, ratio; /* at: tokens/s/GPU of interactivity, tokens/s/user of concurrency */
};

struct ratio_curve {
    struct ratio_point *point; /* ascending */
    size_t n;
};

/* Of tokens/s/user at equal throughput; a point for each step of either frontier. */
void ratio_interactivity(struct ratio_curve *c, const struct frontier *f,
                         const struct frontier *base);
/* Of tokens/s/GPU at equal TTL, which is that of concurrent users. */
void ratio_concurrency(struct ratio_curve *c, const struct frontier *f,
                       const struct frontier *base);
void ratio_release(struct ratio_curve *c);

/* The largest ratio (the first of equal ones) and the median over the points; {0, 0} without any.
 */
struct ratio_point ratio_max(const struct ratio_curve *c);
double ratio_median(const struct ratio_curve *c);

#endif
