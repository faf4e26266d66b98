/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine with several groups: prefill and decode pools, the link between them, and routers.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/engine/engine.h"

enum { REQUESTS_MAX = 80, GROUPS_MAX = 8 };

/* What the steps of a run said of one request. */
struct seen {
    int group[2];         /* of the last chunk, of the first step in decode; -1: none */
    int64_t prefilled_ps; /* end of the last chunk */
    int64_t decode_ps;    /* start of that step */
    int64_t chunk_rows;   /* of its prompt, over all groups */
};

/* A tiny model on two ranks. */
struct world {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
    struct engine_config config;
    struct engine_request request[REQUESTS_MAX];
    uint64_t hash[4 * REQUESTS_MAX];
    int64_t n;
    struct seen seen[REQUESTS_MAX];
};

/* With about `pages` pages beside the weights. */
static void world_init(struct world *w, int64_t pages)
{
    struct err err = ERR_NONE;
    memset(w, 0, sizeof *w);
    model_load(&w->model, "tiny-mla", &err);
    cluster_load(&w->cluster, "h200x8", &err);
    profile_load(&w->profile, w->cluster.profile, &err);
    w->cluster.ranks = 2;
    w->n_layouts = layout_parse_list(w->layout, "tp,cp,dp,dop", &w->model, 2, &err);
    cr_assert_not(err.set, "%s", err.text);
    w->config = (struct engine_config){.token_budget = 512,
                                       .max_running = 64,
                                       .page_tokens = 16,
                                       .replicas = 1,
                                       .affinity_factor = 2,
                                       .kv_link_gb_per_s = 50};
    struct capacity c = capacity_of(&w->model, &w->cluster, &w->layout[0], 16, 0);
    w->cluster.memory_frac = 1;
    w->cluster.reserve_bytes = 0;
    w->cluster.device.memory_bytes =
        c.common_bytes + 2.5 * c.weights_bytes + (double)pages * c.page_bytes;
    w->cost = cost_new(&w->model, &w->cluster, &w->profile, w->layout, w->n_layouts, 16);
}

static void world_release(struct world *w)
{
    cost_free(w->cost);
    profile_release(&w->profile);
}

static void see(void *context, const struct step_record *r)
{
    struct world *w = context;
    for (int i = 0; i < r->batch->n; i++) {
        struct seen *s = &w->seen[r->req[i]];
        bool decodes = i < r->batch->n_decode;
        if (!decodes)
            s->chunk_rows += r->batch->item[i].q;
        if (!decodes && s->decode_ps == 0) {
            s->group[0] = r->group;
            s->prefilled_ps = r->at_ps + r->step_ps;
        }
        if (decodes && s->decode_ps == 0) {
            s->group[1] = r->group;
            s->decode_ps = r->at_ps;
        }
    }
}

/* Step by step, and watched. */
static void run(struct world *w, const char *text, struct run_result *out)
{
    struct err err = ERR_NONE;
    struct policy policy[GROUPS_MAX];
    struct engine_observer observer = {.step = see, .context = w};
    int groups = (int)(w->config.replicas + w->config.prefill_replicas);
    w->config.exact = true;
    for (int64_t i = 0; i < w->n; i++)
        w->seen[i] = (struct seen){.group = {-1, -1}};
    for (int i = 0; i < groups; i++)
        cr_assert_eq(policy_new(&policy[i], text, w->layout, w->n_layouts, &err), 0, "%s",
                     err.text);
    struct engine_input in = {.cost = w->cost,
                              .request = w->request,
                              .n_requests = w->n,
                              .hash = w->hash,
                              .policy = policy,
                              .config = &w->config,
                              .observer = &observer};
    cr_assert_eq(engine_run(&in, out, &err), 0, "%s", err.text);
    for (int i = 0; i < groups; i++)
        policy_release(&policy[i]);
}

static int64_t step_ps(const struct world *w, int64_t ctx_tokens, int32_t q)
{
    struct batch_item item = {ctx_tokens, q, 0};
    struct batch batch = {.n_decode = q == 1, .n = 1, .item = &item};
    struct step_cost cost;
    cost_step(w->cost, 0, &batch, &cost);
    return cost.step.a_ps;
}

/* 640 bytes a token (4 layers of 160) at 0.1 GB/s, 10,000 ps a byte: 1.92 ms for 300 tokens and
 * 1.28 ms for 200. The second prompt is done while the first one's KV is on the link; the first
 * request has made its three tokens before the second one's KV is there. */
Test(pools, two_requests_take_the_steps_and_transfers_worked_out_by_hand)
{
    struct world w;
    struct run_result r;
    world_init(&w, 1000);
    w.config.prefill_replicas = 1;
    w.config.kv_link_gb_per_s = 0.1;
    w.config.kv_link_latency_ps = 5 * PS_PER_US;
    w.n = 2;
    w.request[0] = (struct engine_request){.input_tokens = 300, .output_tokens = 3};
    w.request[1] =
        (struct engine_request){.arrival_ps = 1, .input_tokens = 200, .output_tokens = 2};
    run(&w, "fixed:tp", &r);

    const struct request_result *a = &r.request[0], *b = &r.request[1];
    int64_t first = step_ps(&w, 300, 300), second = first + step_ps(&w, 200, 200);
    cr_expect_eq(a->first_token_ps, first);
    cr_expect_eq(a->transfer_start_ps, first);
    cr_expect_eq(a->transfer_end_ps, first + 1920 * PS_PER_US + 5 * PS_PER_US);
    cr_expect_eq(a->finish_ps, a->transfer_end_ps + step_ps(&w, 301, 1) + step_ps(&w, 302, 1));
    cr_expect_eq(b->first_token_ps, second);
    cr_expect_eq(b->transfer_start_ps, first + 1920 * PS_PER_US);
    cr_expect_eq(b->transfer_end_ps, first + 3200 * PS_PER_US + 5 * PS_PER_US);
    cr_assert_lt(a->finish_ps, b->transfer_end_ps);
    cr_expect_eq(b->finish_ps, b->transfer_end_ps + step_ps(&w, 201, 1));

    cr_expect_eq(r.link.transfers, 2);
    cr_expect_eq(r.link.bytes, 640 * 500);
    cr_expect_eq(r.link.busiest_ps, 3200 * PS_PER_US);
    cr_expect_eq(r.link.wait_ps.max, first + 1920 * PS_PER_US - second);
    cr_expect_eq(r.pool[POOL_PREFILL].busy_ps, second);
    cr_expect_eq(r.pool[POOL_DECODE].busy_ps, r.busy_ps - second);
    run_result_release(&r);
    world_release(&w);
}

static void random_requests(struct world *w, struct rng *rng)
{
    int64_t at = 0, gap = rng_range(rng, 0, 2) * PS_PER_MS;
    w->n = rng_range(rng, 1, REQUESTS_MAX);
    for (int64_t i = 0; i < w->n; i++) {
        at += rng_range(rng, 0, gap);
        w->request[i] = (struct engine_request){.arrival_ps = at,
                                                .input_tokens = rng_range(rng, 1, 600),
                                                .output_tokens = rng_range(rng, 1, 60)};
    }
}

static void expect_in_order(const struct world *w, const struct run_result *r, int64_t i)
{
    const struct request_result *q = &r->request[i];
    const struct seen *s = &w->seen[i];
    cr_expect_geq(s->group[0], w->config.replicas, "prompts run in their own pool");
    cr_expect_eq(q->first_token_ps, s->prefilled_ps);
    cr_expect_eq(s->group[1] >= 0, q->transfer_end_ps > 0);
    if (s->group[1] < 0)
        return;
    cr_expect_lt(s->group[1], w->config.replicas);
    cr_expect_leq(s->prefilled_ps, q->transfer_start_ps);
    cr_expect_leq(q->transfer_end_ps, s->decode_ps);
}

/* When transfer i has its ports: 640 bytes a token, at 1 GB/s 1000 ps a byte. */
static int64_t port_time_ps(const struct world *w, int64_t i)
{
    return (int64_t)(640 * (double)w->request[i].input_tokens * 1000 / w->config.kv_link_gb_per_s);
}

/* Two transfers that share a port do not overlap: over any window a port is within its bandwidth.
 */
static void expect_apart(const struct world *w, const struct run_result *r, int64_t i, int64_t k)
{
    const struct request_result *a = &r->request[i], *b = &r->request[k];
    const int *from = w->seen[i].group, *to = w->seen[k].group;
    bool meet = from[0] == to[0] || from[1] == to[1];
    if (!meet || a->transfer_end_ps == 0 || b->transfer_end_ps == 0)
        return;
    cr_expect(a->transfer_start_ps + port_time_ps(w, i) <= b->transfer_start_ps ||
                  b->transfer_start_ps + port_time_ps(w, k) <= a->transfer_start_ps,
              "%d and %d", (int)i, (int)k);
}

Test(pools, kv_moves_between_prefill_and_decode_and_no_port_is_over_its_bandwidth, .timeout = 300)
{
    static const char *const policies[] = {"fixed:tp", "fixed:dp", "splash:margin=0",
                                           "splash:margin=0,mechanism=drain"};
    struct rng rng;
    rng_init(&rng, 11);
    for (int scenario = 0; scenario < 60; scenario++) {
        struct world w;
        struct run_result r;
        world_init(&w, rng_range(&rng, 100, 1000));
        w.config.replicas = rng_range(&rng, 1, 3);
        w.config.prefill_replicas = rng_range(&rng, 1, 3);
        w.config.router = (int)rng_range(&rng, 0, 1);
        w.config.kv_link_gb_per_s = rng_range(&rng, 0, 1) ? 0.1 : 2;
        random_requests(&w, &rng);
        run(&w, policies[scenario % 4], &r);
        cr_expect_eq(r.completed, w.n, "scenario %d", scenario);
        for (int64_t i = 0; i < w.n; i++) {
            expect_in_order(&w, &r, i);
            for (int64_t k = 0; k < i; k++)
                expect_apart(&w, &r, i, k);
        }
        run_result_release(&r);
        world_release(&w);
    }
}

/* The decode group has room for about two requests, each prefill group for the prompts of four. */
Test(pools, an_overloaded_decode_pool_backs_up_and_everything_ends)
{
    struct world w;
    struct run_result r;
    world_init(&w, 0);
    int64_t pages = cost_capacity(w.cost, 0)->pages, prompt_tokens = pages / 4 * 16;
    cr_assert_gt(pages, 8);
    w.config.prefill_replicas = 2;
    w.n = 30;
    for (int64_t i = 0; i < w.n; i++)
        w.request[i] =
            (struct engine_request){.input_tokens = prompt_tokens, .output_tokens = prompt_tokens};
    run(&w, "fixed:tp", &r);
    cr_expect_eq(r.completed, w.n);
    cr_expect_eq(r.link.transfers, w.n);
    /* Prompts 0 to 7 fill the prefill pool: the ninth waits until the first have been moved, and
     * the last until most others have been decoded. */
    cr_expect_lt(r.request[7].first_token_ps, r.request[0].finish_ps);
    cr_expect_gt(r.request[29].first_token_ps, r.request[17].finish_ps);
    run_result_release(&r);
    world_release(&w);
}

/* Page by page, twelve requests outgrow the decode group: what they lose is computed again there.
 */
Test(pools, what_the_decode_pool_preempts_it_computes_again)
{
    struct world w;
    struct run_result r;
    int64_t again_rows = 0;
    world_init(&w, 0);
    w.config.prefill_replicas = 1;
    w.config.admission = ADMIT_ON_DEMAND;
    w.n = 12;
    int64_t tokens = cost_capacity(w.cost, 0)->pages * 16 / 4;
    for (int64_t i = 0; i < w.n; i++)
        w.request[i] = (struct engine_request){.input_tokens = 60, .output_tokens = tokens};
    run(&w, "fixed:tp", &r);
    cr_expect_eq(r.completed, w.n);
    cr_expect_gt(r.preemptions, 0);
    cr_expect_eq(r.link.transfers, w.n);
    for (int64_t i = 0; i < w.n; i++) {
        cr_expect_eq(w.seen[i].group[0], 1);
        cr_expect_eq(r.request[i].preemptions > 0, w.seen[i].chunk_rows > 60);
        again_rows += w.seen[i].chunk_rows - 60;
    }
    cr_expect_gt(again_rows, 0);
    run_result_release(&r);
    world_release(&w);
}

static struct run_result run_router(struct world *w, int router)
{
    struct run_result r;
    w->config.router = router;
    run(w, "fixed:tp", &r);
    cr_assert_eq(r.completed, w->n);
    return r;
}

/* Every other request is long: by their numbers all of those go to one replica. */
Test(pools, least_loaded_beats_round_robin_on_a_skew)
{
    for (int prefill = 0; prefill <= 2; prefill += 2) {
        struct world w;
        world_init(&w, 2000);
        w.config.replicas = 2;
        w.config.prefill_replicas = prefill;
        w.config.max_running = 4;
        w.n = 40;
        for (int64_t i = 0; i < w.n; i++)
            w.request[i] = (struct engine_request){.arrival_ps = i * 100 * PS_PER_US,
                                                   .input_tokens = i % 2 ? 10 : 500,
                                                   .output_tokens = i % 2 ? 5 : 100};
        struct run_result even = run_router(&w, ROUTE_ROUND_ROBIN);
        struct run_result least = run_router(&w, ROUTE_LEAST_LOADED);
        cr_expect_lt(hist_mean(&least.e2e_ps), hist_mean(&even.e2e_ps), "%d", prefill);
        cr_expect_lt(least.makespan_ps, 7 * even.makespan_ps / 10, "%d", prefill);
        run_result_release(&even);
        run_result_release(&least);
        world_release(&w);
    }
}

/* Requests of four prefixes, or four sessions without hashes, in turn; two replicas run prompts. */
Test(pools, prefix_affinity_keeps_a_prefix_at_one_replica)
{
    for (int hashed = 0; hashed <= 1; hashed++) {
        struct world w;
        struct run_result r;
        world_init(&w, 2000);
        w.config.replicas = w.config.prefill_replicas = 2;
        w.config.router = ROUTE_PREFIX_AFFINITY;
        w.n = 40;
        for (int64_t i = 0; i < w.n; i++) {
            w.hash[2 * i] = (uint64_t)(i % 4);
            w.hash[2 * i + 1] = (uint64_t)(1000 + i);
            w.request[i] = (struct engine_request){.arrival_ps = i * 200 * PS_PER_US,
                                                   .input_tokens = 300,
                                                   .output_tokens = 10,
                                                   .n_hashes = hashed ? 2 : 0,
                                                   .hash_at = (size_t)(2 * i),
                                                   .session = hashed ? 0 : 1 + (uint32_t)i % 4};
        }
        run(&w, "fixed:tp", &r);
        for (int64_t i = 4; i < w.n; i++)
            cr_expect_eq(w.seen[i].group[0], w.seen[i % 4].group[0], "%d", (int)i);
        run_result_release(&r);
        world_release(&w);
    }
}

/* Two replicas decode in lockstep. As request 1 ends, request 2 comes to the replica of request 0,
 * whose step ends at that very time: it is in the step after the one that begins then. */
Test(pools, one_that_follows_at_once_misses_the_step_that_begins)
{
    struct world w;
    struct run_result r;
    static const uint32_t after[] = {1};
    world_init(&w, 1000);
    w.config.replicas = 2;
    w.n = 3;
    w.request[0] = (struct engine_request){.input_tokens = 100, .output_tokens = 90};
    w.request[1] = (struct engine_request){.input_tokens = 100, .output_tokens = 20};
    w.request[2] = (struct engine_request){.input_tokens = 100, .output_tokens = 2, .n_after = 1};
    int64_t end_ps = step_ps(&w, 100, 100), next_ps;
    for (int64_t i = 1; i < 20; i++)
        end_ps += step_ps(&w, 100 + i, 1);
    next_ps = end_ps + step_ps(&w, 120, 1);
    struct batch_item item[] = {{121, 1, 0}, {100, 100, 0}};
    struct batch both = {.n_decode = 1, .n = 2, .item = item};
    struct step_cost cost;
    cost_step(w.cost, 0, &both, &cost);
    for (int exact = 0; exact <= 1; exact++) {
        struct err err = ERR_NONE;
        struct policy policy[2];
        struct engine_config config = w.config;
        config.exact = exact;
        for (int i = 0; i < 2; i++)
            policy_new(&policy[i], "fixed:tp", w.layout, w.n_layouts, &err);
        struct engine_input in = {.cost = w.cost,
                                  .request = w.request,
                                  .n_requests = w.n,
                                  .after = after,
                                  .policy = policy,
                                  .config = &config};
        cr_assert_eq(engine_run(&in, &r, &err), 0);
        cr_expect_eq(r.request[1].finish_ps, end_ps);
        cr_expect_eq(r.request[2].first_token_ps, next_ps + cost.step.a_ps, "exact %d", exact);
        for (int i = 0; i < 2; i++)
            policy_release(&policy[i]);
        run_result_release(&r);
    }
    world_release(&w);
}
