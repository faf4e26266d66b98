/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"
#include "sim/engine/simulation.h"
#include "sim/report/result_json.h"
#include "tests/engine_policies.h"
#include "tests/engine_world.h"

static void make(struct world *w, const char *layouts, int ranks)
{
    world_init(w, "tiny-mla", layouts, ranks);
    w->config.token_budget = 512;
}

/* The JSON of a run without its wall time, as text. */
static char *run_text(const struct world *w, const char *policy, const struct run_result *r)
{
    json_t *json = result_json(policy, r, w->layout, w->n_layouts);
    json_object_del(json, "sim_wall_s");
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static const char *const any_model[] = {"tiny-mla", "tiny-gqa", "tiny-moe"};

static void random_requests(struct world *w, struct rng *rng)
{
    int64_t at = 0, gap = rng_range(rng, 0, 4) * PS_PER_MS;
    int64_t longest = rng_range(rng, 0, 1) ? 300 : 3000;
    w->n = rng_range(rng, 1, 60);
    for (int64_t i = 0; i < w->n; i++) {
        if (rng_range(rng, 0, 3) > 0)
            at += rng_range(rng, 0, gap);
        w->request[i] = (struct engine_request){
            .arrival_ps = at,
            .input_tokens = rng_range(rng, 1, longest),
            .output_tokens = rng_range(rng, 1, rng_range(rng, 0, 2) ? 40 : 400)};
    }
}

/* Some requests wait for one or two before them, some for what the request before waits for. */
static void random_waits(struct world *w, struct rng *rng)
{
    size_t n = 0;
    int64_t longest_ps = rng_range(rng, 0, 2) * 3 * PS_PER_MS;
    for (int64_t i = 1; i < w->n; i++) {
        struct engine_request *r = &w->request[i];
        if (r[-1].n_after > 0 && rng_range(rng, 0, 1)) {
            r->after_at = r[-1].after_at;
            r->n_after = r[-1].n_after;
            r->delay_ps = r[-1].delay_ps;
            continue;
        }
        r->after_at = n;
        r->n_after = (uint32_t)max_i64(rng_range(rng, -2, 2), 0);
        r->delay_ps = r->n_after > 0 ? rng_range(rng, 0, longest_ps) : 0;
        for (uint32_t k = 0; k < r->n_after; k++)
            w->after[n++] = (uint32_t)rng_range(rng, 0, i - 1);
    }
}

/* Routers, and half the time a pool for prompts; requests of few prefixes and sessions. */
static void random_pools(struct world *w, struct rng *rng)
{
    size_t n = 0;
    w->config.router = (int)rng_range(rng, 0, 2);
    w->config.affinity_factor = rng_range(rng, 0, 1) ? 1 : 3;
    w->config.prefill_replicas = rng_range(rng, 0, 1) ? 0 : rng_range(rng, 1, 3);
    w->config.kv_link_gb_per_s = rng_range(rng, 0, 1) ? 0.1 : 50;
    w->config.kv_link_latency_ps = rng_range(rng, 0, 2) * PS_PER_MS;
    for (int64_t i = 0; i < w->n; i++) {
        struct engine_request *r = &w->request[i];
        r->hash_at = n;
        r->n_hashes = (uint32_t)max_i64(rng_range(rng, -2, 4), 0);
        r->session = (uint32_t)rng_range(rng, 0, 3);
        for (uint32_t k = 0; k < r->n_hashes; k++)
            w->hash[n++] = (uint64_t)rng_range(rng, 0, 2);
    }
}

static void random_limits(struct world *w, struct rng *rng)
{
    if (rng_range(rng, 0, 1))
        w->config.deadline_ps = rng_range(rng, 1, 60) * rng_range(rng, 1, PS_PER_MS);
    w->config.failed_session = (int)rng_range(rng, 0, 1);
    w->config.slo_e2e_ps = rng_range(rng, 0, 20) * PS_PER_MS;
    if (rng_range(rng, 0, 3) == 0)
        w->config.kv_blocks = rng_range(rng, 4, 4000) * 64 / w->config.page_tokens;
}

/* Most prompts begin as one before them does, for some blocks or all. */
static void random_prefixes(struct world *w, struct rng *rng)
{
    size_t n = 0;
    w->config.prefix_cache = true;
    w->config.owners = (int)rng_range(rng, OWNER_COUNT, OWNER_PREFIX);
    w->block_tokens = 16 * rng_range(rng, 1, 3);
    for (int64_t i = 0; i < w->n; i++) {
        struct engine_request *r = &w->request[i];
        const struct engine_request *like = &w->request[rng_range(rng, 0, max_i64(i - 1, 0))];
        r->hash_at = n;
        r->n_hashes = (uint32_t)(r->input_tokens / w->block_tokens);
        int64_t shared = rng_range(rng, 0, 3) ? min_i64(like->n_hashes, r->n_hashes) : 0;
        shared = rng_range(rng, 0, 1) ? shared : rng_range(rng, 0, shared);
        cr_assert_leq(n + r->n_hashes, HASHES_MAX);
        for (int64_t k = 0; k < r->n_hashes; k++, n++)
            w->hash[n] = i > 0 && k < shared ? w->hash[like->hash_at + (size_t)k] : n;
    }
}

static void random_world(struct world *w, struct rng *rng)
{
    static const int any_ranks[] = {1, 2, 4, 8};
    const char *model = any_model[rng_range(rng, 0, 2)];
    char layouts[80] = "tp,cp,dp,dop";
    int ranks = any_ranks[rng_range(rng, 0, 3)], parts = (int)rng_range(rng, 2, SUB_BATCHES_MAX);
    if (ranks > 1)
        snprintf(layouts, sizeof layouts,
                 "tp,cp,dp,dop,helix:kvp=%d,tpa=1,helix:kvp=%d,tpa=1,hopb=%d", ranks, ranks, parts);
    world_init(w, model, layouts, ranks);
    w->config.token_budget = rng_range(rng, 16, 2048);
    w->config.max_running = rng_range(rng, 1, 40);
    w->config.page_tokens = 1 << rng_range(rng, 0, 6);
    w->config.admission = (int)rng_range(rng, 0, 1);
    w->config.owners = (int)rng_range(rng, 0, 1);
    w->config.replicas = rng_range(rng, 0, 2) ? 1 : rng_range(rng, 2, 4);
    random_limits(w, rng);
    w->profile.overlap_frac = rng_range(rng, 0, 2) ? 0 : 0.3;
    int64_t most = rng_range(rng, 0, 1) ? 4000 : 80; /* with few, growing requests run out */
    world_compile_pages(w, rng_range(rng, 4, most) * 64 / w->config.page_tokens);
    random_requests(w, rng);
    if (rng_range(rng, 0, 1))
        random_waits(w, rng);
    random_pools(w, rng);
    if (rng_range(rng, 0, 1))
        random_prefixes(w, rng);
}

/* What scenarios went through, so that none of it is missing. */
struct seen {
    int64_t preemptions, cached_tokens, evictions, switches_with_cache;
};

static void note(struct seen *seen, const struct run_result *r)
{
    seen->preemptions += r->preemptions;
    seen->cached_tokens += r->cached_tokens;
    seen->evictions += r->cache_evictions;
    seen->switches_with_cache += r->cached_tokens > 0 ? r->switches : 0;
}

/* By every number and every request's times. */
static void expect_same(const struct world *w, const char *policy, const struct run_result *x,
                        const struct run_result *y, int scenario)
{
    char *a = run_text(w, policy, x), *b = run_text(w, policy, y);
    cr_assert_str_eq(a, b, "scenario %d, %s", scenario, policy);
    cr_assert_arr_eq(x->request, y->request, (size_t)w->n * sizeof *x->request, "scenario %d, %s",
                     scenario, policy);
    free(a);
    free(b);
}

static void check_equal(const struct world *w, const char *policy, int scenario, struct seen *seen)
{
    struct run_result exact, jumped;
    world_run(w, policy, true, &exact);
    world_run(w, policy, false, &jumped);
    expect_same(w, policy, &exact, &jumped, scenario);
    if (w->config.admission == ADMIT_RESERVE)
        cr_assert_eq(exact.preemptions, 0, "scenario %d, %s", scenario, policy);
    note(seen, &exact);
    run_result_release(&exact);
    run_result_release(&jumped);
}

Test(engine, jumping_gives_the_bytes_of_single_steps, .timeout = 600)
{
    struct rng rng;
    struct seen seen = {0};
    rng_init(&rng, 20261130);
    for (int scenario = 0; scenario < 500; scenario++) {
        struct world w;
        random_world(&w, &rng);
        check_equal(&w, any_policy[scenario % N_POLICIES], scenario, &seen);
        check_equal(&w, any_policy[rng_range(&rng, 0, N_POLICIES - 1)], scenario, &seen);
        check_equal(&w, w.layout[w.n_layouts - 1].name, scenario, &seen); /* HOP-B */
        world_release(&w);
    }
    cr_expect_gt(seen.preemptions, 0);
    cr_expect_gt(seen.cached_tokens, 0);
    cr_expect_gt(seen.evictions, 0);
    cr_expect_gt(seen.switches_with_cache, 0);
    cr_log_info("%lld preemptions, %lld cached tokens, %lld evictions, %lld switches",
                (long long)seen.preemptions, (long long)seen.cached_tokens,
                (long long)seen.evictions, (long long)seen.switches_with_cache);
}

/* Origin and fork take turns after so many events, so that what they shared would show. */
static void check_fork(const struct world *w, const char *text, int64_t events, int scenario)
{
    struct policy policy[GROUPS_MAX];
    struct simulation origin, fork;
    struct run_result result[3]; /* of neither, of the origin, of the fork */
    struct err err = ERR_NONE, fork_err;
    struct engine_input in = world_input(w);
    world_run(w, text, false, &result[0]);
    int groups = world_policies(w, text, policy);
    in.policy = policy;
    simulation_init(&origin, &in, &result[1], &err);
    while (events-- > 0 && simulation_step(&origin))
        ;
    simulation_fork(&fork, &origin, &result[2], &fork_err);
    while (simulation_step(&fork) + simulation_step(&origin) > 0)
        ;
    cr_assert_eq(simulation_end(&fork) | simulation_end(&origin), 0);
    expect_same(w, text, &result[0], &result[1], scenario);
    expect_same(w, text, &result[0], &result[2], scenario);
    for (int i = 0; i < groups; i++)
        policy_release(&policy[i]);
    for (int i = 0; i < 3; i++)
        run_result_release(&result[i]);
}

Test(engine, a_fork_and_its_origin_end_alike_whenever_it_was_made, .timeout = 300)
{
    struct rng rng;
    rng_init(&rng, 8);
    for (int scenario = 0; scenario < 300; scenario++) {
        struct world w;
        random_world(&w, &rng);
        const char *policy = any_policy[scenario % (N_POLICIES - N_UNFORKED)];
        check_fork(&w, policy, rng_range(&rng, 0, rng_range(&rng, 0, 1) ? 30 : 600), scenario);
        world_release(&w);
    }
}

/* It came at its time, or its delay after the last that it waited for. */
static void expect_waited(const struct world *w, const struct run_result *r, int64_t i)
{
    const struct engine_request *q = &w->request[i];
    int64_t ended_ps = 0;
    for (uint32_t k = 0; k < q->n_after; k++)
        ended_ps = max_i64(ended_ps, r->request[w->after[q->after_at + k]].finish_ps);
    cr_expect_eq(r->request[i].arrival_ps, q->n_after > 0 ? ended_ps + q->delay_ps : q->arrival_ps);
}

/* Its KV was moved after its first token and before its second, if there was anywhere to go. */
static void expect_moved(const struct world *w, const struct request_result *q, int64_t i)
{
    bool moves = w->config.prefill_replicas > 0 && w->request[i].output_tokens > 1;
    bool moved = q->transfer_end_ps > 0; /* a client may leave before, meanwhile or behind */
    cr_expect(q->state == REQ_COMPLETED ? moved == moves : moved <= moves);
    if (!moved)
        return;
    cr_expect_leq(q->first_token_ps, q->transfer_start_ps);
    cr_expect_lt(q->transfer_start_ps, q->transfer_end_ps);
    cr_expect_leq(q->transfer_end_ps + (q->state == REQ_COMPLETED), q->finish_ps);
}

Test(engine, every_request_ends_once_with_a_reason, .timeout = 300)
{
    struct rng rng;
    rng_init(&rng, 5);
    for (int scenario = 0; scenario < 60; scenario++) {
        struct world w;
        struct run_result r;
        random_world(&w, &rng);
        world_run(&w, any_policy[scenario % N_POLICIES], false, &r);
        int64_t rejected = 0, cancelled = 0;
        for (int64_t i = 0; i < w.n; i++) {
            const struct request_result *q = &r.request[i];
            rejected += q->state == REQ_REJECTED;
            cancelled += q->state == REQ_CANCELLED;
            cr_expect_neq(q->state, REQ_PENDING);
            cr_expect_eq(q->state == REQ_COMPLETED, q->reason == REASON_NONE);
            cr_expect_geq(q->first_token_ps, q->arrival_ps);
            expect_waited(&w, &r, i);
            expect_moved(&w, q, i);
            cr_expect_geq(q->finish_ps, q->first_token_ps);
        }
        cr_expect_eq(rejected, r.rejected);
        cr_expect_eq(cancelled, r.cancelled);
        cr_expect_eq(r.completed + rejected + cancelled, w.n);
        cr_expect_leq(r.kv_peak_frac, 1);
        run_result_release(&r);
        world_release(&w);
    }
}

static int64_t makespan(struct world *w, const char *policy)
{
    struct run_result r;
    world_run(w, policy, false, &r);
    int64_t ps = r.makespan_ps;
    cr_assert_eq(r.completed, w->n);
    run_result_release(&r);
    return ps;
}

static void all_at_once(struct world *w, int64_t n, int64_t input_tokens, int64_t output_tokens)
{
    for (int64_t i = 0; i < n; i++)
        world_ask(w, 0, input_tokens, output_tokens);
}

Test(engine, makespan_falls_when_bandwidth_rises)
{
    for (int p = 0; p < 4; p++) {
        int64_t before = INT64_MAX;
        for (int doubling = 0; doubling < 4; doubling++) {
            struct world w;
            world_init(&w, "tiny-moe", "tp,cp,dp,dop", 8);
            w.config.token_budget = 512;
            w.cluster.device.hbm_gb_per_s *= 1 << doubling;
            world_compile_pages(&w, 100000);
            all_at_once(&w, 40, 700, 50);
            int64_t now = makespan(&w, any_policy[p]);
            cr_expect_leq(now, before, "%s at %d", any_policy[p], doubling);
            before = now;
            world_release(&w);
        }
    }
}

/* A lone request on idle ranks: its prefill is one step, each later token one more. */
Test(engine, times_of_one_request_are_its_steps)
{
    struct world w;
    struct run_result r;
    make(&w, "tp,cp,dp,dop", 8);
    world_compile_pages(&w, 100000);
    all_at_once(&w, 1, 300, 3);
    world_run(&w, "fixed:tp", true, &r);

    int64_t at = world_step_ps(&w, 1, 300, 300);
    cr_expect_eq(r.request[0].first_token_ps, at);
    at += world_step_ps(&w, 1, 301, 1) + world_step_ps(&w, 1, 302, 1);
    cr_expect_eq(r.request[0].finish_ps, at);
    cr_expect_eq(r.steps, 3);
    run_result_release(&r);
    world_release(&w);
}

/* With nothing to pay and the same batch under every layout, following the best layout loses at
 * most one step against the best fixed one. */
Test(engine, free_switching_is_never_slower_than_the_best_fixed_layout)
{
    static const int64_t inputs[] = {50, 500, 4000};
    for (int i = 0; i < 3; i++) {
        struct world w;
        struct run_result longest;
        make(&w, "tp,cp,dp,dop", 8);
        w.config.token_budget = 1 << 20;
        world_compile_pages(&w, 1000000);
        all_at_once(&w, 32, inputs[i], 200);
        int64_t best = INT64_MAX;
        for (int p = 0; p < 4; p++) {
            int64_t ps = makespan(&w, any_policy[p]);
            best = ps < best ? ps : best;
        }
        world_run(&w, "splash:margin=0,mechanism=free", false, &longest);
        cr_expect_leq(longest.makespan_ps, best + best / longest.steps, "input %d", (int)inputs[i]);
        run_result_release(&longest);
        world_release(&w);
    }
}

Test(engine, a_request_that_can_never_fit_is_rejected_and_the_run_goes_on)
{
    struct world w;
    struct run_result r;
    make(&w, "tp,cp,dp,dop", 8);
    w.model.max_context_tokens = 8192;
    world_compile_pages(&w, 20);
    world_ask(&w, 0, 100, 10);
    world_ask(&w, 1, 8183, 10);
    world_ask(&w, 2, 5000, 10);
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.completed, 1);
    cr_expect_eq(r.ended_by[REJECT_TOO_LONG], 1);
    cr_expect_eq(r.ended_by[REJECT_KV], 1);
    cr_expect_eq(r.request[2].reason, REJECT_KV);
    run_result_release(&r);
    world_release(&w);
}

Test(engine, a_switching_policy_goes_where_the_request_fits)
{
    struct world w;
    struct run_result r;
    make(&w, "tp,cp", 8);
    world_compile_pages(&w, 100);
    all_at_once(&w, 1, 6000, 10);
    world_run(&w, "fixed:tp", false, &r);
    cr_assert_eq(r.rejected, 1);
    run_result_release(&r);
    world_run(&w, "splash:margin=0.5,mechanism=drain", false, &r);
    cr_expect_eq(r.completed, 1);
    cr_expect_eq(r.switches, 1);
    cr_expect_eq(r.layout_ps[0], 0);
    run_result_release(&r);
    world_release(&w);
}

/* It grows out of tp while the switch to cp waits for it to end: then it goes there. */
Test(engine, a_request_that_outgrows_its_layout_alone_ends_the_drain)
{
    struct world w;
    struct run_result r;
    make(&w, "tp,cp", 8);
    w.config.admission = ADMIT_ON_DEMAND;
    world_compile_pages(&w, 100);
    int64_t tokens = cost_capacity(w.cost, 0)->pages * w.config.page_tokens;
    all_at_once(&w, 1, tokens - 100, 200);
    world_run(&w, "splash:margin=0,mechanism=drain", false, &r);
    cr_expect_eq(r.completed, 1);
    cr_expect_eq(r.preemptions, 1);
    cr_expect_eq(r.switches, 1);
    run_result_release(&r);
    world_release(&w);
}

/* The second would fit beside the first where that cannot run, and not where it can. */
Test(engine, nothing_is_admitted_behind_a_request_that_needs_another_layout)
{
    struct world w;
    struct run_result r;
    make(&w, "dp,cp", 2);
    world_compile_pages(&w, 100);
    int64_t all_tokens = cost_capacity(w.cost, 1)->pages * w.config.page_tokens * 2;
    all_at_once(&w, 2, all_tokens - 16, 10);
    w.request[1].input_tokens = 100;
    world_run(&w, "splash", false, &r);
    cr_expect_eq(r.completed, 2);
    cr_expect_gt(r.layout_ps[1], 0);
    run_result_release(&r);
    world_release(&w);
}

Test(engine, on_demand_admission_preempts_and_still_finishes)
{
    struct world w;
    struct run_result r;
    make(&w, "tp,cp,dp,dop", 2);
    w.config.admission = ADMIT_ON_DEMAND;
    world_compile_pages(&w, 60);
    all_at_once(&w, 12, 60, 300);
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.completed, 12);
    cr_expect_gt(r.preemptions, 0);
    run_result_release(&r);
    world_release(&w);
}

/* One decoding request is fastest at an owner, but no owner has room for it. */
Test(engine, a_full_destination_is_refused_and_counted_once)
{
    struct world w;
    struct run_result r;
    make(&w, "cp,dp", 8);
    world_compile_pages(&w, 80);
    all_at_once(&w, 1, cost_capacity(w.cost, 1)->pages * w.config.page_tokens, 50);
    world_run(&w, "splash:margin=0,mechanism=free", false, &r);
    cr_expect_eq(r.completed, 1);
    cr_expect_eq(r.switches, 0);
    cr_expect_eq(r.switches_refused, 1);
    run_result_release(&r);
    world_release(&w);
}
