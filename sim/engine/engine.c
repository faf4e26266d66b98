/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/engine/simulation.h"

/* The first from `req` on that comes at its own time. */
static void push_arrival(struct simulation *s, int64_t req)
{
    while (req < s->n_requests && s->engine.request[req].n_after > 0)
        req++;
    if (req < s->n_requests)
        eventq_push(&s->events, (struct event){.time_ps = s->engine.request[req].arrival_ps,
                                               .kind = EV_ARRIVAL,
                                               .sequence = req});
}

static void push_deadline(struct simulation *s, int64_t req)
{
    if (s->engine.config->deadline_ps > 0)
        eventq_push(&s->events, (struct event){.time_ps = s->now_ps + s->engine.config->deadline_ps,
                                               .kind = EV_DEADLINE,
                                               .sequence = req});
}

/* One more waits in the group: the first boundary not before from_ps sees it. */
static void announce(struct simulation *s, struct group *g, int64_t from_ps)
{
    /* Behind others it waits for what they wait for; but a policy from outside sees the queue. */
    if (!g->step.running || g->waiting.n == 1 || g->policy->kind->is_external)
        group_notify(g, s->now_ps, from_ps);
}

/* Loads are those that steps which ended before from_ps have left. */
static struct group *route(struct pool *p, uint32_t req, int64_t from_ps)
{
    for (int64_t i = 0; p->router.rule != ROUTE_ROUND_ROBIN && i < p->n; i++)
        p->load[i] = group_load_with(&p->group[i], req, from_ps);
    return &p->group[router_choose(&p->router, req, p->load)];
}

static void arrive(struct simulation *s, uint32_t req, int64_t from_ps)
{
    enum pool_kind first = s->pool[POOL_PREFILL].n > 0 ? POOL_PREFILL : POOL_DECODE;
    s->engine.out->events++;
    if (waits_failed(&s->waits, req)) {
        request_fail(&s->engine, req, CANCEL_SESSION, s->now_ps);
        return;
    }
    struct group *g = route(&s->pool[first], req, from_ps);
    if (!group_arrive(g, req, s->now_ps))
        return;
    push_deadline(s, req);
    announce(s, g, from_ps);
}

static void on_arrival(struct simulation *s, const struct event *e)
{
    if (s->now_ps > s->last_arrival_ps)
        return;
    if (s->engine.request[e->sequence].n_after == 0)
        push_arrival(s, e->sequence + 1);
    arrive(s, (uint32_t)e->sequence, s->now_ps);
}

/* Steps that end now have ended, and those that follow them have begun. */
static void on_follow(struct simulation *s, const struct event *e)
{
    if (s->now_ps <= s->last_arrival_ps)
        arrive(s, (uint32_t)e->sequence, s->now_ps + 1);
}

static void on_handover(struct simulation *s, const struct event *e)
{
    uint32_t req = (uint32_t)e->sequence;
    if (s->engine.flight[req].is_due) {
        group_cancel_moving(&s->engine, req, s->now_ps);
        return;
    }
    struct group *g = route(&s->pool[POOL_DECODE], req, s->now_ps + 1);
    group_enqueue(g, req, s->now_ps);
    announce(s, g, s->now_ps + 1);
}

static void on_transfer_end(struct simulation *s, const struct event *e)
{
    const struct flight *f = &s->engine.flight[e->sequence];
    struct group *to = &s->group[f->group];
    s->engine.out->events++;
    group_land(to, (uint32_t)e->sequence, s->now_ps);
    group_notify(to, s->now_ps, s->now_ps);
}

static void on_deadline(struct simulation *s, const struct event *e)
{
    if (s->engine.out->request[e->sequence].state != REQ_PENDING)
        return;
    s->engine.out->events++;
    group_expire(&s->group[s->engine.flight[e->sequence].group], (uint32_t)e->sequence, s->now_ps);
}

static void on_step_end(struct simulation *s, const struct event *e)
{
    struct group *g = &s->group[e->sequence];
    if (e->generation == g->step.generation)
        group_step_end(g, s->now_ps);
}

static void on_wake(struct simulation *s, const struct event *e)
{
    struct group *g = &s->group[e->sequence];
    s->engine.out->events++;
    g->wake_due = false;
    if (!g->step.running)
        group_boundary(g, s->now_ps);
}

typedef void handler_fn(struct simulation *s, const struct event *e);

static handler_fn *const handler[EV_COUNT] = {
    [EV_ARRIVAL] = on_arrival,   [EV_TRANSFER_END] = on_transfer_end, [EV_DEADLINE] = on_deadline,
    [EV_STEP_END] = on_step_end, [EV_HANDOVER] = on_handover,         [EV_FOLLOW] = on_follow,
    [EV_WAKE] = on_wake,
};

static int64_t count_ended(const struct run_result *r)
{
    return r->completed + r->rejected + r->cancelled;
}

bool simulation_step(struct simulation *s)
{
    struct event e;
    if (s->engine.err->set || !eventq_pop(&s->events, &e))
        return false;
    assert(e.time_ps >= s->now_ps);
    s->now_ps = e.time_ps;
    handler[e.kind](s, &e);
    return true;
}

static void result_init(struct run_result *r, int64_t n)
{
    *r = (struct run_result){.requests = n};
    hist_init(&r->queued_ps);
    hist_init(&r->ttft_ps);
    hist_init(&r->tpot_ps);
    hist_init(&r->e2e_ps);
    hist_init(&r->link.wait_ps);
    r->request = xcalloc((size_t)n, sizeof *r->request);
}

void run_result_release(struct run_result *r)
{
    hist_release(&r->queued_ps);
    hist_release(&r->ttft_ps);
    hist_release(&r->tpot_ps);
    hist_release(&r->e2e_ps);
    hist_release(&r->link.wait_ps);
    free(r->request);
    r->request = NULL;
}

void run_result_copy(struct run_result *to, const struct run_result *from)
{
    *to = *from;
    hist_copy(&to->queued_ps, &from->queued_ps);
    hist_copy(&to->ttft_ps, &from->ttft_ps);
    hist_copy(&to->tpot_ps, &from->tpot_ps);
    hist_copy(&to->e2e_ps, &from->e2e_ps);
    hist_copy(&to->link.wait_ps, &from->link.wait_ps);
    to->request = xmemdup(from->request, (size_t)from->requests, sizeof *from->request);
}

/* Groups first .. first + n - 1. */
static void start_pool(struct simulation *s, const struct engine_input *in, enum pool_kind kind,
                       int64_t first, int64_t n)
{
    struct pool *p = &s->pool[kind];
    int rule = in->config->router;
    /* No KV is found again where it is sent to: prefixes matter where prompts are run. */
    if (kind == POOL_DECODE && in->config->prefill_replicas > 0 && rule == ROUTE_PREFIX_AFFINITY)
        rule = ROUTE_LEAST_LOADED;
    *p = (struct pool){.group = s->group + first, .n = n};
    p->load = xcalloc((size_t)n, sizeof *p->load);
    router_init(&p->router, in, rule, n);
    for (int64_t i = 0; i < n; i++)
        group_init(&p->group[i], &s->engine, (int)(first + i), &in->policy[first + i], kind);
}

int64_t simulation_groups(const struct simulation *s)
{
    return s->pool[POOL_DECODE].n + s->pool[POOL_PREFILL].n;
}

void simulation_connect(struct simulation *s)
{
    s->engine.events = &s->events;
    s->engine.waits = &s->waits;
    s->engine.link = &s->link;
    s->engine.group = s->group;
}

static void start(struct simulation *s, const struct engine_input *in)
{
    const struct engine_config *config = in->config;
    const struct model *model = cost_model(in->cost);
    int64_t n = config->replicas, n_prefill = config->prefill_replicas;
    s->group = xcalloc((size_t)(n + n_prefill), sizeof *s->group);
    s->engine.flight = xcalloc((size_t)s->n_requests, sizeof *s->engine.flight);
    simulation_connect(s);
    s->engine.simulation = s;
    s->engine.token_bytes = model_kv_bytes_per_token(model);
    s->engine.state_bytes = model->linear.layers * (double)model->linear.state_bytes_per_layer;
    waits_init(&s->waits, in);
    kv_link_init(&s->link, config->kv_link_gb_per_s, config->kv_link_latency_ps, n + n_prefill);
    start_pool(s, in, POOL_DECODE, 0, n);
    if (n_prefill > 0)
        start_pool(s, in, POOL_PREFILL, n, n_prefill);
    push_arrival(s, 0);
}

void simulation_release(struct simulation *s)
{
    for (int k = 0; k < POOL_COUNT; k++) {
        for (int64_t i = 0; i < s->pool[k].n; i++)
            group_release(&s->pool[k].group[i]);
        router_release(&s->pool[k].router);
        free(s->pool[k].load);
    }
    for (int64_t i = 0; s->policy != NULL && i < simulation_groups(s); i++)
        policy_release(&s->policy[i]);
    free(s->policy);
    free(s->group);
    free(s->engine.flight);
    eventq_release(&s->events);
    waits_release(&s->waits);
    kv_link_release(&s->link);
}

static int64_t count_cut(const struct policy *p)
{
    return p->kind->count_cut != NULL ? p->kind->count_cut(p->state) : 0;
}

static void sum_up(struct simulation *s)
{
    struct run_result *out = s->engine.out;
    for (int64_t i = 0; i < simulation_groups(s); i++)
        out->searches_cut += count_cut(s->group[i].policy);
    for (int k = 0; k < POOL_COUNT; k++) {
        const struct pool_result *p = &out->pool[k];
        out->busy_ps += p->busy_ps;
        out->switches += p->switches;
        out->switch_exposed_ps += p->switch_exposed_ps;
        for (int l = 0; l < LAYOUT_MAX; l++)
            out->layout_ps[l] += p->layout_ps[l];
    }
}

/* What requests spent waiting and running is what queues and batches held over time (Little's law,
 * without a rounding). */
static void check_conservation(const struct engine *e)
{
    __int128 queued_ps = 0, moving_ps = 0, running_ps = 0;
    for (int64_t i = 0; i < e->out->requests; i++) {
        const struct request_result *r = &e->out->request[i];
        queued_ps += r->queued_ps;
        moving_ps += r->moving_ps;
        running_ps += r->finish_ps - r->arrival_ps - r->queued_ps - r->moving_ps;
    }
    assert(count_ended(e->out) == e->out->requests);
    assert(queued_ps == e->queued_area_ps && moving_ps == e->moving_area_ps &&
           running_ps == e->running_area_ps);
}

void simulation_init(struct simulation *s, const struct engine_input *in, struct run_result *out,
                     struct err *err)
{
    assert(in->observer == NULL || in->observer->step == NULL || in->config->exact);
    *s = (struct simulation){.n_requests = in->n_requests, .last_arrival_ps = INT64_MAX};
    result_init(out, in->n_requests);
    s->engine = (struct engine){.cost = in->cost,
                                .request = in->request,
                                .hash = in->hash,
                                .block_tokens = in->block_tokens,
                                .config = in->config,
                                .observer = in->observer,
                                .out = out,
                                .err = err};
    start(s, in);
}

int simulation_end(struct simulation *s)
{
    struct run_result *out = s->engine.out;
    out->link.busiest_ps = kv_link_busiest_ps(&s->link);
    sum_up(s);
    simulation_release(s);
    if (out->completed > 0)
        out->makespan_ps -= s->engine.request[0].arrival_ps;
    if (s->engine.err->set) {
        run_result_release(out);
        return -1;
    }
    check_conservation(&s->engine);
    return 0;
}

int engine_run(const struct engine_input *in, struct run_result *out, struct err *err)
{
    uint64_t began_ns = wall_ns();
    struct simulation s;
    simulation_init(&s, in, out, err);
    while (simulation_step(&s))
        if (in->progress != NULL)
            progress_update(in->progress, count_ended(out));
    int rc = simulation_end(&s);
    if (rc == 0)
        out->wall_ns = wall_ns() - began_ns;
    return rc;
}
