/* SPDX-License-Identifier: Apache-2.0
 *
 * Who runs: requests are admitted in order of arrival while their KV fits, each at an owner. Where
 * running requests grow out of the room, the youngest goes back to the head of the queue.
 */
#include "sim/base/mem.h"
#include "sim/engine/group.h"

static int64_t owner_load(const struct group *g, int owner)
{
    return g->engine->config->owners == OWNER_KV ? g->held_of_owner[owner] : g->n_of_owner[owner];
}

static bool is_better_owner(const struct group *g, uint32_t req, int a, int b)
{
    int64_t more = 0;
    if (g->engine->config->owners == OWNER_PREFIX)
        more = group_cached_tokens(g, req, a) - group_cached_tokens(g, req, b);
    return more != 0 ? more > 0 : owner_load(g, a) < owner_load(g, b);
}

/* Blocks that running requests use already take no room. */
static bool has_room(const struct group *g, uint32_t req, int owner, int64_t tokens)
{
    int place = kv_place(&g->kv, g->layout, owner);
    return kv_has_room(&g->kv, g->layout, owner, tokens) ||
           kv_has_room(&g->kv, g->layout, owner, tokens - group_used_tokens(g, req, place));
}

/* The best owner with room, ties going round; -1 when none has room. */
static int choose_owner(const struct group *g, uint32_t req, int64_t tokens, bool must_fit)
{
    int best = -1;
    for (int i = 1; i <= g->kv.ranks; i++) {
        int owner = (g->last_owner + i) % g->kv.ranks;
        if (must_fit && !has_room(g, req, owner, tokens))
            continue;
        if (best < 0 || is_better_owner(g, req, owner, best))
            best = owner;
    }
    return best;
}

static int64_t tokens_to_hold(const struct group *g, uint32_t req)
{
    const struct engine_request *r = &g->engine->request[req];
    const struct flight *f = &g->engine->flight[req];
    if (g->prompts_only)
        return r->input_tokens;
    if (g->engine->config->admission == ADMIT_RESERVE)
        return r->input_tokens + r->output_tokens;
    /* The prompt, what was made before a preemption, and the row of the first decode step. */
    return r->input_tokens + (f->kv_elsewhere ? 0 : f->made_tokens) + 1;
}

static void start_prefill(struct group *g, uint32_t req, int owner, int64_t tokens)
{
    struct flight *f = &g->engine->flight[req];
    f->kv_tokens = 0;
    f->prefill_tokens = g->engine->request[req].input_tokens + f->made_tokens;
    group_hold_kv(g, req, owner, tokens);
    group_note_left(g, req);
    g->remaining_tokens += group_output_goal(g, req) - f->made_tokens;
    g->prefill = xgrow(g->prefill, &g->cap_prefill, g->n_prefill + 1, sizeof *g->prefill);
    g->prefill[g->n_prefill++] = req;
    group_reuse(g, req);
}

static bool is_idle(const struct group *g)
{
    return group_running(g) == 0 && g->n_moving == 0;
}

/* Is no one admitted beside what the group has? */
static bool is_closed(const struct group *g)
{
    bool over = !kv_fits(&g->kv, g->layout); /* of one that fits elsewhere, and only alone */
    return (g->admission_held && group_running(g) > 0) ||
           ((g->pending >= 0 || over) && !is_idle(g));
}

static bool is_crowded(const struct group *g)
{
    int64_t most = g->engine->config->max_running, n = group_running(g) + (int64_t)g->n_moving;
    return n >= most || (g->admit_most > 0 && n >= g->admit_most);
}

void group_admit(struct group *g)
{
    for (size_t i = 0; i < g->n_prefill; i++)
        group_reuse(g, g->prefill[i]);
    while (g->waiting.n > 0 && !is_crowded(g) && !is_closed(g)) {
        uint32_t req = g->waiting.id[g->waiting.head];
        int64_t tokens = tokens_to_hold(g, req);
        int owner = choose_owner(g, req, tokens, true);
        /* Alone it fits some layout, or it would have been rejected: the policy has to go there. */
        if (owner < 0 && is_idle(g))
            owner = choose_owner(g, req, tokens, false);
        if (owner < 0)
            return;
        queue_pop_front(&g->waiting);
        if (g->engine->flight[req].kv_elsewhere)
            group_fetch(g, req, owner, tokens);
        else
            start_prefill(g, req, owner, tokens);
    }
}

static bool is_over(const struct group *g, int owner)
{
    return kv_used(&g->kv, g->layout, owner) > g->kv.pool[g->layout].pages;
}

static bool is_younger(const struct group *g, uint32_t req, int64_t than, int owner)
{
    const struct flight *f = &g->engine->flight[req];
    return f->admitted > than && (f->held.owner == owner || !g->kv.pool[g->layout].owned);
}

static void preempt(struct group *g, uint32_t req, int64_t made_tokens)
{
    struct flight *f = &g->engine->flight[req];
    f->made_tokens = made_tokens;
    group_drop_kv(g, req, &f->held);
    g->remaining_tokens -= group_output_goal(g, req) - made_tokens;
    f->queued_since_ps = g->now_ps;
    queue_push_front(&g->waiting, req);
    g->queued_tokens += group_work_tokens(g, req);
    g->engine->out->request[req].preemptions++;
    g->engine->out->preemptions++;
}

/* False when none runs there: the room is kept for KV on its way. */
static bool preempt_youngest(struct group *g, int owner)
{
    int64_t admitted = -1;
    size_t at = 0;
    bool decoding = false;
    for (size_t i = 0; i < g->n_decode; i++)
        if (is_younger(g, g->item_req[i], admitted, owner)) {
            admitted = g->engine->flight[g->item_req[i]].admitted;
            at = i;
            decoding = true;
        }
    for (size_t i = 0; i < g->n_prefill; i++)
        if (is_younger(g, g->prefill[i], admitted, owner)) {
            admitted = g->engine->flight[g->prefill[i]].admitted;
            at = i;
            decoding = false;
        }
    if (admitted < 0)
        return false;
    if (decoding) {
        uint32_t req = g->item_req[at];
        int64_t left = g->decode_end[at] - g->decode_steps;
        group_remove_decode(g, at);
        preempt(g, req, g->engine->request[req].output_tokens - left);
    } else {
        uint32_t req = g->prefill[at];
        group_remove_prefill(g, at);
        preempt(g, req, g->engine->flight[req].made_tokens);
    }
    return true;
}

/* One that is alone fits another layout, or it would have been rejected. */
static bool may_preempt(const struct group *g)
{
    return g->pending >= 0 || group_running(g) + (int64_t)g->n_moving > 1;
}

void group_make_room(struct group *g)
{
    int pools = g->kv.pool[g->layout].owned ? g->kv.ranks : 1;
    for (int owner = 0; owner < pools; owner++)
        while (is_over(g, owner) && may_preempt(g) && preempt_youngest(g, owner))
            ;
}
