/* SPDX-License-Identifier: Apache-2.0
 *
 * From the group that ran a prompt to the one that decodes: the KV is held where it is until there
 * is room for it where it goes, and in both places while it moves.
 */
#include <assert.h>

#include "sim/engine/group.h"

void group_hand_over(struct group *g, uint32_t req, int64_t now_ps)
{
    struct flight *f = &g->engine->flight[req];
    f->kv_elsewhere = true;
    f->from_group = g->id;
    f->from = f->held;
    f->held = (struct held){0};
    g->n_moving++;
    g->leaving_tokens[f->from.owner] += f->from.tokens - f->from.shared_tokens;
    eventq_push(g->engine->events,
                (struct event){.time_ps = now_ps, .kind = EV_HANDOVER, .sequence = req});
}

void group_fetch(struct group *g, uint32_t req, int owner, int64_t tokens)
{
    const struct engine *e = g->engine;
    struct flight *f = &e->flight[req];
    struct request_result *result = &e->out->request[req];
    double bytes = e->token_bytes * (double)f->prefill_tokens + e->state_bytes;
    struct kv_transfer t = kv_link_send(e->link, f->from_group, g->id, bytes, g->now_ps);
    result->queued_ps += g->now_ps - f->queued_since_ps;
    f->moving_since_ps = g->now_ps;
    g->n_moving++;
    group_hold_kv(g, req, owner, tokens);
    result->transfer_start_ps = t.start_ps;
    result->transfer_end_ps = t.end_ps;
    e->out->link.transfers++;
    e->out->link.bytes += (int64_t)bytes;
    hist_add(&e->out->link.wait_ps, t.start_ps - g->now_ps, 1);
    eventq_push(e->events,
                (struct event){.time_ps = t.end_ps, .kind = EV_TRANSFER_END, .sequence = req});
}

/* Its KV is held where the prompt ran no longer. */
static void leave(struct engine *e, uint32_t req, int64_t now_ps)
{
    struct flight *f = &e->flight[req];
    struct group *from = &e->group[f->from_group];
    from->n_moving--;
    from->leaving_tokens[f->from.owner] -= f->from.tokens - f->from.shared_tokens;
    group_drop_kv(from, req, &f->from);
    if (!from->step.running && from->waiting.n > 0)
        group_wake(from, now_ps);
}

void group_land(struct group *to, uint32_t req, int64_t now_ps)
{
    leave(to->engine, req, now_ps);
    queue_push_back(&to->landed, req);
}

void group_cancel_moving(struct engine *e, uint32_t req, int64_t now_ps)
{
    leave(e, req, now_ps);
    request_fail(e, req, CANCEL_DEADLINE, now_ps);
}

void group_join(struct group *g)
{
    while (g->landed.n > 0) {
        uint32_t req = queue_pop_front(&g->landed);
        struct flight *f = &g->engine->flight[req];
        int64_t left_tokens = g->engine->request[req].output_tokens - f->made_tokens;
        assert(f->kv_elsewhere);
        f->kv_elsewhere = false;
        g->n_moving--;
        g->queued_tokens -= left_tokens;
        g->engine->out->request[req].moving_ps += g->now_ps - f->moving_since_ps;
        if (f->is_due) {
            group_drop_kv(g, req, &f->held);
            request_fail(g->engine, req, CANCEL_DEADLINE, g->now_ps);
            continue;
        }
        g->remaining_tokens += left_tokens;
        group_start_decode(g, req);
    }
}
