/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the engine: a tiny model on a few ranks of a shipped cluster, the requests that come
 * to it, and runs of them. A world is zeroed but for its config, which world_init sets.
 */
#ifndef TESTS_ENGINE_WORLD_H
#define TESTS_ENGINE_WORLD_H

#include <string.h>

#include <criterion/criterion.h>

#include "sim/engine/engine.h"

enum { REQUESTS_MAX = 200, HASHES_MAX = 20000, GROUPS_MAX = 8 };

struct world {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
    struct engine_config config;
    struct engine_request request[REQUESTS_MAX];
    uint32_t after[2 * REQUESTS_MAX];
    uint64_t hash[HASHES_MAX];
    int64_t n, block_tokens;
    struct engine_observer observer; /* of exact runs */
};

static inline void world_init(struct world *w, const char *model, const char *layouts, int ranks)
{
    struct err err = ERR_NONE;
    memset(w, 0, sizeof *w);
    model_load(&w->model, model, &err);
    cluster_load(&w->cluster, "h200x8", &err);
    profile_load(&w->profile, w->cluster.profile, &err);
    w->cluster.ranks = ranks;
    w->n_layouts = layout_parse_list(w->layout, layouts, &w->model, ranks, &err);
    cr_assert_not(err.set, "%s", err.text);
    w->config = (struct engine_config){.token_budget = 8192,
                                       .max_running = 64,
                                       .page_tokens = 16,
                                       .replicas = 1,
                                       .affinity_factor = 2,
                                       .kv_link_gb_per_s = 50};
}

/* The cost model, of what was changed since world_init; all of so much memory on each rank is for
 * weights, activations and KV (0: what the cluster has). */
static inline void world_compile(struct world *w, double memory_bytes)
{
    if (memory_bytes > 0) {
        w->cluster.memory_frac = 1;
        w->cluster.reserve_bytes = 0;
        w->cluster.device.memory_bytes = memory_bytes;
    }
    w->cost = cost_new(&w->model, &w->cluster, &w->profile, w->layout, w->n_layouts,
                       (int)w->config.page_tokens);
}

/* The same with about so many pages beside the heaviest weights. */
static inline void world_compile_pages(struct world *w, int64_t pages)
{
    double most = 0;
    struct capacity c = {0};
    for (int l = 0; l < w->n_layouts; l++) {
        c = capacity_of(&w->model, &w->cluster, &w->layout[l], (int)w->config.page_tokens, 0);
        most = c.weights_bytes > most ? c.weights_bytes : most;
    }
    world_compile(w, c.common_bytes + 1.5 * most + (double)pages * c.page_bytes);
}

static inline void world_release(struct world *w)
{
    cost_free(w->cost);
    profile_release(&w->profile);
}

/* One more request, which the caller may say more of. */
static inline struct engine_request *world_ask(struct world *w, int64_t arrival_ps,
                                               int64_t input_tokens, int64_t output_tokens)
{
    cr_assert_lt(w->n, REQUESTS_MAX);
    struct engine_request *r = &w->request[w->n++];
    *r = (struct engine_request){
        .arrival_ps = arrival_ps, .input_tokens = input_tokens, .output_tokens = output_tokens};
    return r;
}

/* The world's requests, under its config; without policies. */
static inline struct engine_input world_input(const struct world *w)
{
    return (struct engine_input){.cost = w->cost,
                                 .request = w->request,
                                 .n_requests = w->n,
                                 .after = w->after,
                                 .hash = w->hash,
                                 .block_tokens = w->block_tokens,
                                 .config = &w->config};
}

/* A policy of this text for each group; how many. */
static inline int world_policies(const struct world *w, const char *text,
                                 struct policy policy[GROUPS_MAX])
{
    struct err err = ERR_NONE;
    int groups = (int)(w->config.replicas + w->config.prefill_replicas);
    cr_assert_leq(groups, GROUPS_MAX);
    for (int i = 0; i < groups; i++)
        cr_assert_eq(policy_new(&policy[i], text, w->layout, w->n_layouts, &err), 0, "%s",
                     err.text);
    return groups;
}

/* Under policies of this text. */
static inline void world_run_input(const struct world *w, struct engine_input in, const char *text,
                                   struct run_result *out)
{
    struct err err = ERR_NONE;
    struct policy policy[GROUPS_MAX];
    int groups = world_policies(w, text, policy);
    in.policy = policy;
    cr_assert_eq(engine_run(&in, out, &err), 0, "%s", err.text);
    for (int i = 0; i < groups; i++)
        policy_release(&policy[i]);
}

static inline void world_run(const struct world *w, const char *policy, bool exact,
                             struct run_result *out)
{
    struct engine_config config = w->config;
    struct engine_input in = world_input(w);
    config.exact = exact;
    in.config = &config;
    if (exact && w->observer.step != NULL)
        in.observer = &w->observer;
    world_run_input(w, in, policy, out);
}

/* A step of n requests alike under the first layout: their prompts when q > 1, else their next
 * tokens. */
static inline int64_t world_step_ps(const struct world *w, int n, int64_t ctx_tokens, int q)
{
    struct batch_item item[REQUESTS_MAX];
    struct batch batch = {.n_decode = q > 1 ? 0 : n, .n = n, .item = item};
    struct step_cost cost;
    for (int i = 0; i < n; i++)
        item[i] = (struct batch_item){ctx_tokens, q, 0};
    cost_step(w->cost, 0, &batch, &cost);
    return cost.step.a_ps;
}

#endif
