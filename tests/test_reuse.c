/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "tests/engine_world.h"
#include "traces/trace.h"

/* Two ranks of a tiny model with more memory than is needed; a block is a page of 16 tokens, a
 * request's prompt "ab" blocks a and b and some tokens more. */
enum { PAGE = 16 };

static void make(struct world *w, const char *layouts)
{
    world_init(w, "tiny-mla", layouts, 2);
    w->model.max_context_tokens = 1 << 20;
    w->config.prefix_cache = true;
    w->block_tokens = PAGE;
    world_compile(w, 1e12);
}

static void ask(struct world *w, int64_t at_ps, const char *blocks, int64_t more_tokens,
                int64_t output_tokens)
{
    size_t n = strlen(blocks);
    struct engine_request *r = world_ask(w, at_ps, (int64_t)n * PAGE + more_tokens, output_tokens);
    if (w->n > 1)
        r->hash_at = r[-1].hash_at + r[-1].n_hashes;
    r->n_hashes = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        w->hash[r->hash_at + i] = (uint64_t)blocks[i];
}

/* A policy that runs the layouts of a list, one a decision, the last one from then on. */
struct script {
    const int *layout;
    int n, at;
};

static struct decision follow(void *state, const struct policy_view *view)
{
    struct script *s = state;
    int layout = s->layout[s->at < s->n ? s->at++ : s->n - 1];
    (void)view;
    return (struct decision){.layout = layout, .wanted = layout, .hold = 1};
}

static const struct policy_kind scripted = {
    .name = "scripted", .may_switch = true, .decide = follow};

/* What a switch charges at a step that decodes one request. */
static int64_t blocking_ps(const struct world *w, int from, int to, int64_t ctx_tokens, int owner,
                           const int64_t *moved_tokens)
{
    struct batch_item item = {ctx_tokens, 1, owner};
    struct batch batch = {.n_decode = 1, .n = 1, .item = &item};
    struct step_cost step;
    struct transition t;
    cost_step(w->cost, to, &batch, &step);
    transition_cost(w->cost, from, to, moved_tokens, &step, &t);
    return transition_charge_ps(w->cost, to, &t, MECH_BLOCKING);
}

Test(reuse, two_owners_go_from_dp_to_tp_and_back)
{
    enum { TP, DP };
    static const int layouts[] = {DP, DP, TP, TP, DP};
    struct world w;
    struct run_result r;
    struct err err = ERR_NONE;
    struct script script = {layouts, 5, 0};
    struct policy policy = {.name = "scripted",
                            .kind = &scripted,
                            .common = {.mechanism = MECH_BLOCKING},
                            .may_switch = true,
                            .start = DP,
                            .state = &script};
    static const int64_t cached[] = {0, 0, 2, 2, 3, 3, 2};
    /* To tp: a and b of owner 0; c of owner 1, whose a is another copy, and a token of no block.
     * To dp: a, b, c, d and a token to owner 0, a and c to owner 1. */
    static const int64_t to_tp[RANKS_MAX] = {2 * PAGE, PAGE + 1};
    static const int64_t to_dp[RANKS_MAX] = {4 * PAGE + 1, 2 * PAGE};
    make(&w, "tp,dp");
    ask(&w, 0, "ab", 1, 1);              /* owner 0 */
    ask(&w, PS_PER_S, "ac", 1, 2);       /* owner 1: its a is its own; then tp */
    ask(&w, 2 * PS_PER_S, "acd", 1, 2);  /* owner 0, under tp: finds owner 1's c; then dp */
    ask(&w, 3 * PS_PER_S, "acd", 1, 1);  /* owner 1 has no d */
    ask(&w, 4 * PS_PER_S, "acd", 1, 1);  /* owner 0 has */
    ask(&w, 5 * PS_PER_S, "acd", 1, 1);  /* owner 1 now too */
    ask(&w, 6 * PS_PER_S, "abxy", 1, 1); /* owner 0 kept its b all along */
    struct engine_input in = world_input(&w);
    in.policy = &policy;
    cr_assert_eq(engine_run(&in, &r, &err), 0, "%s", err.text);
    cr_assert_eq(r.switches, 2);
    for (int i = 0; i < 7; i++)
        cr_expect_eq(r.request[i].cached_tokens, cached[i] * PAGE, "request %d", i);
    cr_expect_eq(r.cached_tokens, 12 * PAGE);
    cr_expect_eq(r.switch_exposed_ps, blocking_ps(&w, DP, TP, 2 * PAGE + 2, 1, to_tp) +
                                          blocking_ps(&w, TP, DP, 3 * PAGE + 2, 0, to_dp));
    cr_expect_eq(r.cache_evictions, 0);
    run_result_release(&r);
    world_release(&w);
}

/* Of a prompt of two blocks that are both there, the second is computed again for its last row. */
Test(reuse, a_found_prefix_is_attended_to_but_not_computed)
{
    struct world w;
    struct run_result r;
    make(&w, "tp");
    ask(&w, 0, "ab", 0, 1);
    ask(&w, PS_PER_S, "ab", 0, 1);
    world_run(&w, "tp", false, &r);
    cr_expect_eq(r.request[1].cached_tokens, PAGE);
    cr_expect_eq(r.request[1].first_token_ps, PS_PER_S + world_step_ps(&w, 1, 2 * PAGE, PAGE));
    run_result_release(&r);
    world_release(&w);
}

/* 16 rows a step: the second request waits, and then needs what the first has computed. */
Test(reuse, what_lands_meanwhile_is_not_computed_twice)
{
    struct world w;
    struct run_result r;
    make(&w, "tp");
    w.config.token_budget = PAGE;
    ask(&w, 0, "abcd", 1, 1);
    ask(&w, 0, "abcd", 1, 1);
    world_run(&w, "tp", false, &r);
    cr_expect_eq(r.request[0].cached_tokens, 0);
    cr_expect_eq(r.request[1].cached_tokens, 4 * PAGE);
    cr_expect_eq(r.steps, 5); /* the fifth takes the last token of both */
    run_result_release(&r);
    world_release(&w);
}

/* Memory for one request and a page: two fit when they share all but their last page. */
Test(reuse, running_requests_share_pages)
{
    enum { PAGES = 100 };
    for (int cache = 0; cache <= 1; cache++) {
        struct world w;
        struct run_result r;
        char blocks[PAGES] = "";
        make(&w, "tp");
        w.config.kv_blocks = PAGES;
        w.config.prefix_cache = cache;
        for (int i = 0; i < PAGES - 2; i++)
            blocks[i] = (char)(1 + i);
        ask(&w, 0, blocks, 1, PAGE - 1);
        ask(&w, 0, blocks, 1, PAGE - 1);
        world_run(&w, "tp", false, &r);
        cr_expect_eq(r.completed, 2);
        cr_expect_eq(r.request[1].first_token_ps < r.request[0].finish_ps, cache == 1);
        cr_expect_eq(r.request[1].cached_tokens, cache * (PAGES - 2) * PAGE);
        cr_expect_eq(r.kv_peak_frac, cache ? 1 : (double)(PAGES - 1) / PAGES);
        run_result_release(&r);
        world_release(&w);
    }
}

Test(reuse, owners_by_prefix_go_where_the_blocks_are)
{
    struct world w;
    struct run_result r;
    static const int64_t cached[] = {0, 0, 1, 2, 0};
    make(&w, "dp");
    w.config.owners = OWNER_PREFIX;
    ask(&w, 0, "ab", 1, 1);              /* owner 0 */
    ask(&w, PS_PER_S, "xy", 1, 1);       /* owner 1 by turns */
    ask(&w, 2 * PS_PER_S, "xz", 1, 1);   /* owner 0's turn, but 1 has x */
    ask(&w, 3 * PS_PER_S, "abcd", 1, 1); /* owner 0 has two blocks */
    ask(&w, 4 * PS_PER_S, "q", 1, 1);
    world_run(&w, "dp", false, &r);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(r.request[i].cached_tokens, cached[i] * PAGE, "request %d", i);
    run_result_release(&r);
    world_release(&w);
}

/* A trace, and what a cache without end would find of each prompt, from the hashes alone: whole
 * blocks that stood in a prompt before, from the first on, short of the last token. */
struct replay {
    struct trace trace;
    struct engine_request *request;
    uint32_t *after;
    int64_t *ideal_tokens, all_ideal_tokens;
};

static int64_t ideal(const struct trace *t, const struct trace_request *r, bool *seen,
                     uint64_t n_seen)
{
    int64_t whole = r->input_tokens / t->block_tokens, n = 0;
    int64_t last = min_i64(whole, (r->input_tokens - 1) / t->block_tokens);
    while (n < last && seen[t->hash[r->hash_at + (size_t)n]])
        n++;
    for (int64_t k = 0; k < whole; k++) {
        uint64_t hash = t->hash[r->hash_at + (size_t)k];
        cr_assert_lt(hash, n_seen);
        seen[hash] = true;
    }
    return n * t->block_tokens;
}

static void replay_init(struct replay *p, const char *path)
{
    enum { N_SEEN = 1 << 20 };
    struct err err = ERR_NONE;
    bool *seen = xcalloc(N_SEEN, sizeof *seen);
    *p = (struct replay){0};
    cr_assert_eq(trace_load(&p->trace, path, &(struct trace_reading){0}, &err), 0, "%s", err.text);
    p->request = xcalloc(p->trace.n, sizeof *p->request);
    p->after = xcalloc(p->trace.n, sizeof *p->after);
    p->ideal_tokens = xcalloc(p->trace.n, sizeof *p->ideal_tokens);
    for (size_t i = 0; i < p->trace.n; i++) {
        const struct trace_request *r = &p->trace.request[i];
        p->request[i] = (struct engine_request){.arrival_ps = r->arrival_ps,
                                                .input_tokens = r->input_tokens,
                                                .output_tokens = r->output_tokens,
                                                .hash_at = r->hash_at,
                                                .n_hashes = r->n_hashes};
        p->ideal_tokens[i] = ideal(&p->trace, r, seen, N_SEEN);
        p->all_ideal_tokens += p->ideal_tokens[i];
    }
    free(seen);
}

static void replay_release(struct replay *p)
{
    trace_release(&p->trace);
    free(p->request);
    free(p->after);
    free(p->ideal_tokens);
}

/* Each request waits for the one before. */
static void one_after_another(struct replay *p)
{
    for (size_t i = 1; i < p->trace.n; i++) {
        p->after[i] = (uint32_t)i - 1;
        p->request[i].after_at = i;
        p->request[i].n_after = 1;
    }
}

static void replay_run(const struct replay *p, struct run_result *out)
{
    struct world w;
    world_init(&w, "tiny-mla", "tp", 2);
    w.model.max_context_tokens = 1 << 20;
    w.config.prefix_cache = true;
    w.config.page_tokens = 64;
    world_compile(&w, 1e18);
    struct engine_input in = world_input(&w);
    in.request = p->request;
    in.n_requests = (int64_t)p->trace.n;
    in.after = p->after;
    in.hash = p->trace.hash;
    in.block_tokens = p->trace.block_tokens;
    world_run_input(&w, in, "tp", out);
    cr_expect_eq(out->cache_evictions, 0);
    cr_expect_eq(out->completed, in.n_requests);
    world_release(&w);
}

/* Tokens of whole blocks are fewer than those of the trace's oracle, which counts started ones. */
static void expect_ideal(const char *path, int64_t oracle_tokens)
{
    struct replay p;
    struct run_result r;
    replay_init(&p, path);
    cr_expect_eq(trace_prefix_max(&p.trace).hit_tokens, oracle_tokens);
    cr_expect_leq(p.all_ideal_tokens, oracle_tokens);
    cr_expect_gt(p.all_ideal_tokens, oracle_tokens * 98 / 100);

    replay_run(&p, &r); /* side by side: what is not there yet when it is needed is not found */
    for (size_t i = 0; i < p.trace.n; i++)
        cr_assert_leq(r.request[i].cached_tokens, p.ideal_tokens[i], "request %zu", i);
    cr_expect_gt(r.cached_tokens, p.all_ideal_tokens / 2);
    run_result_release(&r);

    one_after_another(&p);
    replay_run(&p, &r);
    for (size_t i = 0; i < p.trace.n; i++)
        cr_assert_eq(r.request[i].cached_tokens, p.ideal_tokens[i], "request %zu", i);
    cr_expect_eq(r.cached_tokens, p.all_ideal_tokens);
    run_result_release(&r);
    replay_release(&p);
}

Test(reuse, an_endless_cache_finds_what_the_conversation_trace_has, .timeout = 120)
{
    expect_ideal("traces/samples/mooncake_conversation.jsonl.gz", 54098411);
}

Test(reuse, an_endless_cache_finds_what_the_synthetic_trace_has, .timeout = 120)
{
    const char *path = "../shared/traces/mooncake/synthetic_trace.jsonl";
    if (access(path, R_OK) != 0)
        cr_skip("no public traces beside the repository");
    expect_ideal(path, 39852661);
}
