/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that end without their output: rejected on arrival, cancelled by a client that waits no
 * longer, or cancelled with their session. A client leaves in the middle of a step, which goes on;
 * the request is taken out where it ends.
 */
#include <assert.h>

#include "sim/base/mem.h"
#include "sim/engine/group.h"

const char *const request_state_names[REQ_COUNT] = {
    [REQ_PENDING] = "pending",
    [REQ_COMPLETED] = "completed",
    [REQ_REJECTED] = "rejected",
    [REQ_CANCELLED] = "cancelled",
};

const char *const end_reason_names[REASON_COUNT] = {
    [REASON_NONE] = "",
    [REJECT_TOO_LONG] = "longer than the model's context",
    [REJECT_KV] = "its KV fits no layout",
    [CANCEL_DEADLINE] = "not finished by its deadline",
    [CANCEL_SESSION] = "waited for one that was rejected or cancelled",
};

void request_fail(struct engine *e, uint32_t req, enum end_reason reason, int64_t now_ps)
{
    struct request_result *r = &e->out->request[req];
    assert(r->state == REQ_PENDING);
    if (reason != CANCEL_DEADLINE)
        r->arrival_ps = now_ps;
    if (e->flight[req].made_tokens == 0)
        r->first_token_ps = now_ps;
    r->finish_ps = now_ps;
    r->reason = (uint8_t)reason;
    e->out->ended_by[reason]++;
    if (reason == REJECT_TOO_LONG || reason == REJECT_KV) {
        r->state = REQ_REJECTED;
        e->out->rejected++;
    } else {
        r->state = REQ_CANCELLED;
        e->out->cancelled++;
    }
    waits_end(e->waits, req, e->config->failed_session == SESSION_END, now_ps, e->events);
}

bool request_is_late(const struct engine *e, uint32_t req, int64_t now_ps)
{
    return e->config->deadline_ps > 0 &&
           now_ps - e->out->request[req].arrival_ps > e->config->deadline_ps;
}

void group_expire(struct group *g, uint32_t req, int64_t now_ps)
{
    g->due = xgrow(g->due, &g->cap_due, g->n_due + 1, sizeof *g->due);
    g->due[g->n_due++] = req;
    group_notify(g, now_ps, now_ps);
}

static size_t place_of(const uint32_t *id, size_t n, uint32_t req)
{
    size_t i = 0;
    while (i < n && id[i] != req)
        i++;
    return i;
}

static void drop(struct group *g, uint32_t req, int64_t left_tokens)
{
    group_drop_kv(g, req, &g->engine->flight[req].held);
    g->remaining_tokens -= left_tokens;
}

/* Wherever the request is, it is there no longer; false where its KV is on its way. */
static bool take_out(struct group *g, uint32_t req)
{
    const struct flight *f = &g->engine->flight[req];
    size_t i = place_of(g->item_req, g->n_decode, req);
    if (i < g->n_decode) {
        int64_t left_tokens = g->decode_end[i] - g->decode_steps;
        group_remove_decode(g, i);
        drop(g, req, left_tokens);
        return true;
    }
    i = place_of(g->prefill, g->n_prefill, req);
    if (i < g->n_prefill) {
        group_remove_prefill(g, i);
        drop(g, req, group_output_goal(g, req) - f->made_tokens);
        return true;
    }
    bool waited = queue_remove(&g->waiting, req);
    assert(waited || f->kv_elsewhere);
    if (waited)
        group_note_left(g, req);
    return waited;
}

static void cancel(struct group *g, uint32_t req)
{
    struct flight *f = &g->engine->flight[req];
    if (!take_out(g, req))
        f->is_due = true;
    else if (f->kv_elsewhere)
        group_cancel_moving(g->engine, req, g->now_ps);
    else
        request_fail(g->engine, req, CANCEL_DEADLINE, g->now_ps);
}

void group_cancel_due(struct group *g)
{
    for (size_t i = 0; i < g->n_due; i++)
        if (g->engine->out->request[g->due[i]].state == REQ_PENDING)
            cancel(g, g->due[i]);
    g->n_due = 0;
}
