/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine with several groups: prefill and decode pools, the link between them, and routers.
 */
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "tests/engine_world.h"

/* What the steps of a run said of one request. */
struct seen {
    int group[2];         /* of the last chunk, of the first step in decode; -1: none */
    int64_t prefilled_ps; /* end of the last chunk */
    int64_t decode_ps;    /* start of that step */
    int64_t chunk_rows;   /* of its prompt, over all groups */
};

static struct seen seen[REQUESTS_MAX];

static void see(void *context, const struct step_record *r)
{
    (void)context;
    for (int i = 0; i < r->batch->n; i++) {
        struct seen *s = &seen[r->req[i]];
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

/* Two ranks with about `pages` pages beside the weights, and watched. */
static void make(struct world *w, int64_t pages)
{
    world_init(w, "tiny-mla", "tp,cp,dp,dop", 2);
    w->config.token_budget = 512;
    w->observer.step = see;
    struct capacity c = capacity_of(&w->model, &w->cluster, &w->layout[0], 16, 0);
    world_compile(w, c.common_bytes + 2.5 * c.weights_bytes + (double)pages * c.page_bytes);
}

static void run(const struct world *w, const char *policy, struct run_result *out)
{
    for (int64_t i = 0; i < w->n; i++)
        seen[i] = (struct seen){.group = {-1, -1}};
    world_run(w, policy, true, out);
}

/* 640 bytes a token (4 layers of 160) at 0.1 GB/s, 10,000 ps a byte: 1.92 ms for 300 tokens and
 * 1.28 ms for 200. The second prompt is done while the first one's KV is on the link; the first
 * request has made its three tokens before the second one's KV is there. */
Test(pools, two_requests_take_the_steps_and_transfers_worked_out_by_hand)
{
    struct world w;
    struct run_result r;
    make(&w, 1000);
    w.config.prefill_replicas = 1;
    w.config.kv_link_gb_per_s = 0.1;
    w.config.kv_link_latency_ps = 5 * PS_PER_US;
    world_ask(&w, 0, 300, 3);
    world_ask(&w, 1, 200, 2);
    run(&w, "fixed:tp", &r);

    const struct request_result *a = &r.request[0], *b = &r.request[1];
    int64_t first = world_step_ps(&w, 1, 300, 300), second = first + world_step_ps(&w, 1, 200, 200);
    cr_expect_eq(a->first_token_ps, first);
    cr_expect_eq(a->transfer_start_ps, first);
    cr_expect_eq(a->transfer_end_ps, first + 1920 * PS_PER_US + 5 * PS_PER_US);
    cr_expect_eq(a->finish_ps,
                 a->transfer_end_ps + world_step_ps(&w, 1, 301, 1) + world_step_ps(&w, 1, 302, 1));
    cr_expect_eq(b->first_token_ps, second);
    cr_expect_eq(b->transfer_start_ps, first + 1920 * PS_PER_US);
    cr_expect_eq(b->transfer_end_ps, first + 3200 * PS_PER_US + 5 * PS_PER_US);
    cr_assert_lt(a->finish_ps, b->transfer_end_ps);
    cr_expect_eq(b->finish_ps, b->transfer_end_ps + world_step_ps(&w, 1, 201, 1));

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
    for (int64_t n = rng_range(rng, 1, 80); n > 0; n--) {
        at += rng_range(rng, 0, gap);
        int64_t input_tokens = rng_range(rng, 1, 600);
        world_ask(w, at, input_tokens, rng_range(rng, 1, 60));
    }
}

static void expect_in_order(const struct world *w, const struct run_result *r, int64_t i)
{
    const struct request_result *q = &r->request[i];
    const struct seen *s = &seen[i];
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
    const int *from = seen[i].group, *to = seen[k].group;
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
        make(&w, rng_range(&rng, 100, 1000));
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
    make(&w, 0);
    int64_t pages = cost_capacity(w.cost, 0)->pages, prompt_tokens = pages / 4 * 16;
    cr_assert_gt(pages, 8);
    w.config.prefill_replicas = 2;
    for (int i = 0; i < 30; i++)
        world_ask(&w, 0, prompt_tokens, prompt_tokens);
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

/* The decode group is launched in tp, which has room for 320 tokens, and cp for 640: alone there,
 * the request of 400 has it go to cp as soon as its KV has come, and computes nothing again. */
Test(pools, kv_that_fits_only_another_layout_takes_the_decode_group_there)
{
    struct world w;
    struct run_result r;
    make(&w, 0);
    w.config.prefill_replicas = 1;
    w.config.kv_blocks = 20;
    world_ask(&w, 0, 300, 100);
    run(&w, "splash:margin=1", &r);
    cr_expect_eq(r.completed, 1);
    cr_expect_eq(r.preemptions, 0);
    cr_expect_eq(seen[0].chunk_rows, 300);
    cr_expect_eq(seen[0].decode_ps, r.request[0].transfer_end_ps);
    cr_expect_eq(r.pool[POOL_DECODE].layout_ps[1], r.pool[POOL_DECODE].busy_ps);
    run_result_release(&r);
    world_release(&w);
}

/* The first prompt fills the prefill group, whose KV is 1.92 ms on the link; no step runs as both
 * clients leave. The second request goes at once, the first when its KV is there. */
Test(pools, a_request_in_the_queue_of_an_idle_group_is_cancelled_at_its_deadline)
{
    struct world w;
    struct run_result r;
    make(&w, 0);
    w.config.prefill_replicas = 1;
    w.config.kv_blocks = 20;
    w.config.kv_link_gb_per_s = 0.1;
    w.config.deadline_ps = world_step_ps(&w, 1, 300, 300) + PS_PER_MS;
    world_ask(&w, 0, 300, 20);
    world_ask(&w, 0, 300, 20);
    run(&w, "fixed:tp", &r);
    cr_expect_eq(r.cancelled, 2);
    cr_expect_eq(r.request[0].finish_ps, r.request[0].transfer_end_ps);
    cr_expect_eq(r.request[1].finish_ps, w.config.deadline_ps);
    run_result_release(&r);
    world_release(&w);
}

/* In cp the first prompt has the prefill group want tp, for which its KV is too large, and hold
 * admission. While that KV is on the link nothing runs that could want anything. */
Test(pools, a_wish_ends_with_the_batch_that_had_it)
{
    struct world w;
    struct run_result r;
    world_init(&w, "tiny-mla", "cp,tp", 2);
    world_compile(&w, 0);
    w.config.prefill_replicas = 1;
    w.config.kv_blocks = 20;
    w.config.kv_link_gb_per_s = 0.1;
    world_ask(&w, 0, 400, 20);
    world_ask(&w, 1, 20, 20);
    world_run(&w, "splash:margin=0,on_full=hold", true, &r);
    cr_expect_geq(r.switches_refused, 1);
    cr_expect_lt(r.request[1].first_token_ps, r.request[0].transfer_end_ps);
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
    make(&w, 0);
    w.config.prefill_replicas = 1;
    w.config.admission = ADMIT_ON_DEMAND;
    for (int i = 0; i < 12; i++)
        world_ask(&w, 0, 60, cost_capacity(w.cost, 0)->pages * 16 / 4);
    run(&w, "fixed:tp", &r);
    cr_expect_eq(r.completed, w.n);
    cr_expect_gt(r.preemptions, 0);
    cr_expect_eq(r.link.transfers, w.n);
    for (int64_t i = 0; i < w.n; i++) {
        cr_expect_eq(seen[i].group[0], 1);
        cr_expect_eq(r.request[i].preemptions > 0, seen[i].chunk_rows > 60);
        again_rows += seen[i].chunk_rows - 60;
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
        make(&w, 2000);
        w.config.replicas = 2;
        w.config.prefill_replicas = prefill;
        w.config.max_running = 4;
        for (int i = 0; i < 40; i++)
            world_ask(&w, i * 100 * PS_PER_US, i % 2 ? 10 : 500, i % 2 ? 5 : 100);
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
        make(&w, 2000);
        w.config.replicas = w.config.prefill_replicas = 2;
        w.config.router = ROUTE_PREFIX_AFFINITY;
        for (uint32_t i = 0; i < 40; i++) {
            struct engine_request *q = world_ask(&w, i * 200 * PS_PER_US, 300, 10);
            w.hash[2 * i] = i % 4;
            w.hash[2 * i + 1] = 1000 + i;
            q->hash_at = 2 * i;
            q->n_hashes = hashed ? 2 : 0;
            q->session = hashed ? 0 : 1 + i % 4;
        }
        run(&w, "fixed:tp", &r);
        for (int64_t i = 4; i < w.n; i++)
            cr_expect_eq(seen[i].group[0], seen[i % 4].group[0], "%d", (int)i);
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
    make(&w, 1000);
    w.config.replicas = 2;
    world_ask(&w, 0, 100, 90);
    world_ask(&w, 0, 100, 20);
    world_ask(&w, 0, 100, 2)->n_after = 1;
    w.after[0] = 1;
    int64_t end_ps = world_step_ps(&w, 1, 100, 100), next_ps;
    for (int64_t i = 1; i < 20; i++)
        end_ps += world_step_ps(&w, 1, 100 + i, 1);
    next_ps = end_ps + world_step_ps(&w, 1, 120, 1);
    struct batch_item item[] = {{121, 1, 0}, {100, 100, 0}};
    struct batch both = {.n_decode = 1, .n = 2, .item = item};
    struct step_cost cost;
    cost_step(w.cost, 0, &both, &cost);
    for (int exact = 0; exact <= 1; exact++) {
        world_run(&w, "fixed:tp", exact, &r);
        cr_expect_eq(r.request[1].finish_ps, end_ps);
        cr_expect_eq(r.request[2].first_token_ps, next_ps + cost.step.a_ps, "exact %d", exact);
        run_result_release(&r);
    }
    world_release(&w);
}
