/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

static int launch_layout(const struct group *g, int wish)
{
    if (!g->policy->may_switch || g->kv.pool[wish].pages > 0)
        return wish;
    for (int l = 0; l < g->kv.n_layouts; l++)
        if (g->kv.pool[l].pages > 0)
            return l;
    return wish;
}

void group_init(struct group *g, struct engine *e, int id, struct policy *policy,
                enum pool_kind pool)
{
    *g = (struct group){.id = id, .engine = e, .policy = policy, .pending = -1, .wanted = -1};
    g->result = &e->out->pool[pool];
    g->result->replicas++;
    g->prompts_only = pool == POOL_PREFILL;
    kv_init(&g->kv, e->cost, e->config->page_tokens);
    if (engine_config_pages(e->config) > 0)
        kv_set_capacity(&g->kv, engine_config_pages(e->config));
    if (e->config->prefix_cache)
        prefix_init(&g->prefix, &g->kv, kv_block_tokens(&g->kv, e->block_tokens));
    e->out->cache_block_tokens = g->prefix.block_tokens;
    g->layout = launch_layout(g, policy->start);
    g->owed_from = -1;
    g->last_owner = g->kv.ranks - 1;
}

/* Everything has left, and every page and token that was counted is no longer. */
static bool is_empty(const struct group *g)
{
    int64_t left = g->queued_tokens | g->remaining_tokens;
    for (int l = 0; l < g->kv.n_layouts; l++)
        left |= kv_busiest(&g->kv, l);
    for (int r = 0; r < g->kv.ranks; r++)
        left |= g->n_of_owner[r] | g->held_of_owner[r] | g->leaving_tokens[r];
    return left == 0 && group_running(g) == 0 && g->waiting.n == 0 && g->n_moving == 0 &&
           g->landed.n == 0 && g->n_due == 0;
}

void group_release(struct group *g)
{
    assert(g->engine->err->set || is_empty(g));
    g->engine->out->cache_evictions += g->prefix.evicted;
    prefix_release(&g->prefix);
    queue_release(&g->waiting);
    queue_release(&g->landed);
    free(g->prefill);
    free(g->item);
    free(g->item_req);
    free(g->decode_end);
    free(g->chunk);
    free(g->due);
}

void group_copy(struct group *to, const struct group *from, struct engine *e, struct policy *policy)
{
    *to = *from;
    to->engine = e;
    to->result = &e->out->pool[from->result - from->engine->out->pool];
    to->policy = policy;
    queue_copy(&to->waiting, &from->waiting);
    queue_copy(&to->landed, &from->landed);
    to->prefill = xmemdup(from->prefill, from->cap_prefill, sizeof *from->prefill);
    to->item = xmemdup(from->item, from->cap_item, sizeof *from->item);
    to->item_req = xmemdup(from->item_req, from->cap_item_req, sizeof *from->item_req);
    to->decode_end = xmemdup(from->decode_end, from->cap_end, sizeof *from->decode_end);
    to->chunk = xmemdup(from->chunk, from->cap_chunk, sizeof *from->chunk);
    to->due = xmemdup(from->due, from->cap_due, sizeof *from->due);
    prefix_copy(&to->prefix, &from->prefix, &to->kv);
}

int64_t group_running(const struct group *g)
{
    return (int64_t)(g->n_prefill + g->n_decode);
}

void group_clock(struct group *g, int64_t now_ps)
{
    int64_t passed_ps = now_ps - g->now_ps;
    struct engine *e = g->engine;
    assert(passed_ps >= 0);
    e->queued_area_ps += (__int128)passed_ps * (__int128)g->waiting.n;
    e->running_area_ps += (__int128)passed_ps * group_running(g);
    if (!g->prompts_only) /* what leaves those counts where it goes */
        e->moving_area_ps += (__int128)passed_ps * (__int128)g->n_moving;
    g->now_ps = now_ps;
}

void group_wake(struct group *g, int64_t now_ps)
{
    if (g->wake_due)
        return;
    g->wake_due = true;
    eventq_push(g->engine->events,
                (struct event){.time_ps = now_ps, .kind = EV_WAKE, .sequence = g->id});
}

int64_t group_output_goal(const struct group *g, uint32_t req)
{
    return g->prompts_only ? 1 : g->engine->request[req].output_tokens;
}

int64_t group_work_tokens(const struct group *g, uint32_t req)
{
    const struct flight *f = &g->engine->flight[req];
    if (f->kv_elsewhere)
        return group_output_goal(g, req) - f->made_tokens;
    return g->engine->request[req].input_tokens + group_output_goal(g, req);
}

int64_t group_load_with(const struct group *g, uint32_t req, int64_t before_ps)
{
    int64_t tokens = group_work_tokens(g, req) + g->queued_tokens + g->remaining_tokens;
    for (size_t i = 0; i < g->n_prefill; i++) {
        const struct flight *f = &g->engine->flight[g->prefill[i]];
        tokens += f->prefill_tokens - f->kv_tokens;
    }
    const struct step *s = &g->step;
    if (s->running && s->n > 1)
        tokens -= (int64_t)g->n_decode * (seg_steps_to_reach(s->cost, before_ps - s->start_ps) - 1);
    return tokens;
}

/* Could the request run alone in some layout that this group may use? */
static bool could_hold(const struct group *g, const struct engine_request *r)
{
    int64_t tokens = r->input_tokens + (g->prompts_only ? 0 : r->output_tokens);
    if (!g->policy->may_switch)
        return kv_could_hold(&g->kv, g->layout, tokens);
    for (int l = 0; l < g->kv.n_layouts; l++)
        if (kv_could_hold(&g->kv, l, tokens))
            return true;
    return false;
}

bool group_arrive(struct group *g, uint32_t req, int64_t now_ps)
{
    const struct engine_request *r = &g->engine->request[req];
    int64_t tokens = r->input_tokens + r->output_tokens;
    if (tokens > cost_model(g->engine->cost)->max_context_tokens) {
        request_fail(g->engine, req, REJECT_TOO_LONG, now_ps);
        return false;
    }
    bool moves = g->prompts_only && r->output_tokens > 1;
    if (!could_hold(g, r) || (moves && !could_hold(g->engine->group, r))) {
        request_fail(g->engine, req, REJECT_KV, now_ps);
        return false;
    }
    g->engine->out->request[req].arrival_ps = now_ps;
    group_enqueue(g, req, now_ps);
    return true;
}

void group_enqueue(struct group *g, uint32_t req, int64_t now_ps)
{
    struct flight *f = &g->engine->flight[req];
    group_clock(g, now_ps);
    f->group = g->id;
    f->queued_since_ps = now_ps;
    queue_push_back(&g->waiting, req);
    g->queued_tokens += group_work_tokens(g, req);
}

void group_note_left(struct group *g, uint32_t req)
{
    const struct flight *f = &g->engine->flight[req];
    struct request_result *result = &g->engine->out->request[req];
    g->queued_tokens -= group_work_tokens(g, req);
    result->queued_ps += g->now_ps - f->queued_since_ps;
    if (f->made_tokens == 0 && result->preemptions == 0)
        result->admitted_ps = g->now_ps;
}

void group_hold_kv(struct group *g, uint32_t req, int owner, int64_t tokens)
{
    struct flight *f = &g->engine->flight[req];
    f->admitted = g->admissions++;
    f->held = (struct held){.owner = owner, .tokens = tokens};
    kv_add(&g->kv, owner, tokens);
    g->n_of_owner[owner]++;
    g->held_of_owner[owner] += tokens;
    g->last_owner = owner;
}

void group_drop_kv(struct group *g, uint32_t req, struct held *h)
{
    kv_remove(&g->kv, h->owner, h->tokens - h->shared_tokens);
    group_unshare(g, req, h);
    g->n_of_owner[h->owner]--;
    g->held_of_owner[h->owner] -= h->tokens;
}

void group_remove_decode(struct group *g, size_t i)
{
    size_t behind = --g->n_decode - i;
    memmove(&g->item[i], &g->item[i + 1], behind * sizeof *g->item);
    memmove(&g->item_req[i], &g->item_req[i + 1], behind * sizeof *g->item_req);
    memmove(&g->decode_end[i], &g->decode_end[i + 1], behind * sizeof *g->decode_end);
}

void group_remove_prefill(struct group *g, size_t i)
{
    size_t behind = --g->n_prefill - i;
    memmove(&g->prefill[i], &g->prefill[i + 1], behind * sizeof *g->prefill);
}

void group_note_peak(struct group *g)
{
    int64_t pages = g->kv.pool[g->layout].pages;
    double frac = pages > 0 ? (double)kv_busiest(&g->kv, g->layout) / (double)pages : 0;
    if (frac > g->engine->out->kv_peak_frac)
        g->engine->out->kv_peak_frac = frac;
    if (g->prefix.block_tokens > 0)
        prefix_trim(&g->prefix, g->layout);
}

static void record_times(struct run_result *out, const struct engine_config *config,
                         const struct engine_request *r, const struct request_result *t)
{
    int64_t ttft_ps = t->first_token_ps - t->arrival_ps, tpot_ps = 0;
    int64_t e2e_ps = t->finish_ps - t->arrival_ps;
    hist_add(&out->queued_ps, t->queued_ps, 1);
    hist_add(&out->ttft_ps, ttft_ps, 1);
    hist_add(&out->e2e_ps, e2e_ps, 1);
    if (r->output_tokens > 1) {
        tpot_ps = (t->finish_ps - t->first_token_ps) / (r->output_tokens - 1);
        hist_add(&out->tpot_ps, tpot_ps, 1);
    }
    if ((config->slo_ttft_ps == 0 || ttft_ps <= config->slo_ttft_ps) &&
        (config->slo_tpot_ps == 0 || tpot_ps <= config->slo_tpot_ps) &&
        (config->slo_e2e_ps == 0 || e2e_ps <= config->slo_e2e_ps)) {
        out->slo_met++;
        out->slo_output_tokens += r->output_tokens;
    }
}

static void finish(struct group *g, uint32_t req, int64_t now_ps)
{
    struct run_result *out = g->engine->out;
    const struct engine_request *r = &g->engine->request[req];
    group_drop_kv(g, req, &g->engine->flight[req].held);
    if (request_is_late(g->engine, req, now_ps)) {
        request_fail(g->engine, req, CANCEL_DEADLINE, now_ps);
        return;
    }
    out->request[req].finish_ps = now_ps;
    out->request[req].state = REQ_COMPLETED;
    out->completed++;
    out->input_tokens += r->input_tokens;
    out->output_tokens += r->output_tokens;
    out->cached_tokens += out->request[req].cached_tokens;
    out->makespan_ps = now_ps > out->makespan_ps ? now_ps : out->makespan_ps;
    record_times(out, g->engine->config, r, &out->request[req]);
    waits_end(g->engine->waits, req, false, now_ps, g->engine->events);
}

static void grow_held(struct group *g, int64_t n)
{
    for (size_t i = 0; i < g->n_decode; i++) {
        struct flight *f = &g->engine->flight[g->item_req[i]];
        if (g->decode_end[i] <= g->decode_steps)
            continue;
        kv_grow(&g->kv, f->held.owner, f->held.tokens, f->held.tokens + n);
        f->held.tokens += n;
        g->held_of_owner[f->held.owner] += n;
    }
}

static void decode(struct group *g, int64_t n)
{
    g->decode_steps += n;
    g->remaining_tokens -= n * (int64_t)g->n_decode;
    for (size_t i = 0; i < g->n_decode; i++)
        g->item[i].ctx_tokens += n;
    if (g->engine->config->admission == ADMIT_ON_DEMAND)
        grow_held(g, n);
}

static void finish_decoded(struct group *g, int64_t now_ps)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_decode; i++) {
        if (g->decode_end[i] <= g->decode_steps) {
            finish(g, g->item_req[i], now_ps);
            continue;
        }
        if (kept != i) {
            g->item[kept] = g->item[i];
            g->item_req[kept] = g->item_req[i];
            g->decode_end[kept] = g->decode_end[i];
        }
        kept++;
    }
    g->n_decode = kept;
}

void group_start_decode(struct group *g, uint32_t req)
{
    const struct flight *f = &g->engine->flight[req];
    size_t i = g->n_decode++;
    g->item = xgrow(g->item, &g->cap_item, i + 1, sizeof *g->item);
    g->item_req = xgrow(g->item_req, &g->cap_item_req, i + 1, sizeof *g->item_req);
    g->decode_end = xgrow(g->decode_end, &g->cap_end, i + 1, sizeof *g->decode_end);
    g->item[i] = (struct batch_item){f->prefill_tokens + 1, 1, f->held.owner};
    g->item_req[i] = req;
    g->decode_end[i] = g->decode_steps + g->engine->request[req].output_tokens - f->made_tokens;
}

/* The last chunk of a prompt makes the next token. */
static void land_chunk(struct group *g, const struct chunk *c, int64_t now_ps)
{
    struct flight *f = &g->engine->flight[c->req];
    f->kv_tokens += c->q;
    group_share(g, c->req);
    if (f->kv_tokens < f->prefill_tokens)
        return;
    if (f->made_tokens++ == 0)
        g->engine->out->request[c->req].first_token_ps = now_ps;
    g->remaining_tokens--;
    if (f->made_tokens == g->engine->request[c->req].output_tokens)
        finish(g, c->req, now_ps);
    else if (g->prompts_only)
        group_hand_over(g, c->req, now_ps);
    else
        group_start_decode(g, c->req);
}

static void drop_prefilled(struct group *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_prefill; i++) {
        const struct flight *f = &g->engine->flight[g->prefill[i]];
        if (f->kv_tokens < f->prefill_tokens)
            g->prefill[kept++] = g->prefill[i];
    }
    g->n_prefill = kept;
}

void group_advance(struct group *g, int64_t n, int64_t now_ps)
{
    if (n > 1) {
        /* KV is fullest before the last step, when those that end with it still hold theirs. */
        decode(g, n - 1);
        group_note_peak(g);
    }
    decode(g, 1);
    finish_decoded(g, now_ps);
    for (size_t i = 0; i < g->n_chunks; i++)
        land_chunk(g, &g->chunk[i], now_ps);
    if (g->n_chunks > 0)
        drop_prefilled(g);
    g->n_chunks = 0;
}
