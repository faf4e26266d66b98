/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of sim/cost: a shipped model on a shipped cluster, its cost model, and steps of it.
 */
#ifndef TESTS_COST_BENCH_H
#define TESTS_COST_BENCH_H

#include <criterion/criterion.h>

#include "sim/cost/cost.h"

enum { ITEMS_MAX = 300 };

struct bench {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
};

static inline void bench_load(struct bench *b, const char *model, const char *cluster)
{
    struct err err = ERR_NONE;
    model_load(&b->model, model, &err);
    cluster_load(&b->cluster, cluster, &err);
    profile_load(&b->profile, b->cluster.profile, &err);
    cr_assert_not(err.set, "%s", err.text);
}

static inline void bench_compile(struct bench *b, const char *layouts)
{
    struct err err = ERR_NONE;
    b->n_layouts = layout_parse_list(b->layout, layouts, &b->model, b->cluster.ranks, &err);
    cr_assert_gt(b->n_layouts, 0, "%s", err.text);
    b->cost = cost_new(&b->model, &b->cluster, &b->profile, b->layout, b->n_layouts, 64);
}

static inline void bench_init(struct bench *b, const char *model, const char *cluster,
                              const char *layouts)
{
    bench_load(b, model, cluster);
    bench_compile(b, layouts);
}

static inline void bench_release(struct bench *b)
{
    cost_free(b->cost);
    profile_release(&b->profile);
}

/* n equal requests, owners round robin. */
static inline struct step_cost step_of(const struct bench *b, int layout, int n, int64_t ctx,
                                       int32_t q)
{
    struct batch_item item[ITEMS_MAX];
    for (int i = 0; i < n; i++)
        item[i] = (struct batch_item){ctx, q, i % b->cluster.ranks};
    struct batch batch = {.n_decode = q == 1 ? n : 0, .n = n, .item = item};
    struct step_cost cost;
    cost_step(b->cost, layout, &batch, &cost);
    return cost;
}

#endif
