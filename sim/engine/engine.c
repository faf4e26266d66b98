/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/engine/group.h"

const char *const reject_reason_names[REJECT_COUNT] = {
    [REJECT_NONE] = "",
    [REJECT_TOO_LONG] = "longer than the model's context",
    [REJECT_KV] = "its KV fits no layout",
};

struct simulation {
    struct engine engine;
    struct eventq events;
    struct waits waits;
    struct group *group;
    int64_t n_requests;
    int64_t now_ps;
    struct progress *progress;
};

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

/* An idle group wakes once everything that arrives now has arrived. */
static void wake(struct simulation *s, struct group *g)
{
    if (g->wake_due)
        return;
    g->wake_due = true;
    eventq_push(&s->events,
                (struct event){.time_ps = s->now_ps, .kind = EV_WAKE, .sequence = g->id});
}

static void on_arrival(struct simulation *s, const struct event *e)
{
    struct group *g = &s->group[e->sequence % s->engine.config->replicas];
    s->engine.out->events++;
    if (s->engine.request[e->sequence].n_after == 0)
        push_arrival(s, e->sequence + 1);
    if (!group_arrive(g, (uint32_t)e->sequence, s->now_ps))
        return;
    if (!g->step.running)
        wake(s, g);
    else if (g->waiting.n == 1) /* behind others it waits for what they wait for */
        group_interrupt(g, s->now_ps);
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
    [EV_ARRIVAL] = on_arrival,
    [EV_STEP_END] = on_step_end,
    [EV_WAKE] = on_wake,
};

static void loop(struct simulation *s)
{
    struct event e;
    while (!s->engine.err->set && eventq_pop(&s->events, &e)) {
        assert(e.time_ps >= s->now_ps);
        s->now_ps = e.time_ps;
        handler[e.kind](s, &e);
        if (s->progress != NULL)
            progress_update(s->progress, s->engine.out->completed + s->engine.out->rejected);
    }
}

static void result_init(struct run_result *r, int64_t n)
{
    *r = (struct run_result){.requests = n};
    hist_init(&r->ttft_ps);
    hist_init(&r->tpot_ps);
    hist_init(&r->e2e_ps);
    r->request = xcalloc((size_t)n, sizeof *r->request);
}

void run_result_release(struct run_result *r)
{
    hist_release(&r->ttft_ps);
    hist_release(&r->tpot_ps);
    hist_release(&r->e2e_ps);
    free(r->request);
    r->request = NULL;
}

static void start(struct simulation *s, const struct engine_input *in)
{
    int64_t replicas = in->config->replicas;
    s->group = xcalloc((size_t)replicas, sizeof *s->group);
    s->engine.flight = xcalloc((size_t)s->n_requests, sizeof *s->engine.flight);
    s->engine.events = &s->events;
    s->engine.waits = &s->waits;
    waits_init(&s->waits, in);
    for (int64_t i = 0; i < replicas; i++)
        group_init(&s->group[i], &s->engine, (int)i, &in->policy[i]);
    push_arrival(s, 0);
}

static void stop(struct simulation *s)
{
    for (int64_t i = 0; i < s->engine.config->replicas; i++)
        group_release(&s->group[i]);
    free(s->group);
    free(s->engine.flight);
    eventq_release(&s->events);
    waits_release(&s->waits);
}

int engine_run(const struct engine_input *in, struct run_result *out, struct err *err)
{
    uint64_t began_ns = wall_ns();
    struct simulation s = {.n_requests = in->n_requests, .progress = in->progress};
    assert(in->observer == NULL || in->config->exact);
    result_init(out, in->n_requests);
    s.engine = (struct engine){.cost = in->cost,
                               .request = in->request,
                               .config = in->config,
                               .observer = in->observer,
                               .out = out,
                               .err = err};
    start(&s, in);
    loop(&s);
    stop(&s);
    if (out->completed > 0)
        out->makespan_ps -= in->request[0].arrival_ps;
    out->wall_ns = wall_ns() - began_ns;
    if (err->set) {
        run_result_release(out);
        return -1;
    }
    assert(out->completed + out->rejected == in->n_requests);
    return 0;
}
