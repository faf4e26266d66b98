/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/mem.h"
#include "sim/engine/simulation.h"

static void copy_groups(struct simulation *fork, const struct simulation *s)
{
    size_t n = (size_t)simulation_groups(s);
    fork->group = xcalloc(n, sizeof *fork->group);
    fork->policy = xcalloc(n, sizeof *fork->policy);
    for (size_t i = 0; i < n; i++) {
        policy_copy(&fork->policy[i], s->group[i].policy);
        group_copy(&fork->group[i], &s->group[i], &fork->engine, &fork->policy[i]);
    }
}

static void copy_pool(struct simulation *fork, const struct simulation *s, enum pool_kind kind)
{
    const struct pool *from = &s->pool[kind];
    struct pool *to = &fork->pool[kind];
    if (from->n == 0)
        return;
    to->group = fork->group + (from->group - s->group);
    to->load = xcalloc((size_t)from->n, sizeof *to->load);
    router_copy(&to->router, &from->router);
}

void simulation_fork(struct simulation *fork, const struct simulation *s, struct run_result *out,
                     struct err *err)
{
    *fork = *s;
    run_result_copy(out, s->engine.out);
    *err = ERR_NONE;
    fork->config = *s->engine.config;
    fork->config.exact = false;
    fork->engine.config = &fork->config;
    fork->engine.observer = NULL;
    fork->engine.simulation = NULL;
    fork->engine.out = out;
    fork->engine.err = err;
    fork->engine.flight =
        xmemdup(s->engine.flight, (size_t)s->n_requests, sizeof *s->engine.flight);
    eventq_copy(&fork->events, &s->events);
    waits_copy(&fork->waits, &s->waits);
    kv_link_copy(&fork->link, &s->link);
    copy_groups(fork, s);
    for (int k = 0; k < POOL_COUNT; k++)
        copy_pool(fork, s, k);
    simulation_connect(fork);
}

void simulation_foresee(const struct simulation *s, int group, int64_t last_arrival_ps,
                        struct outlook *out)
{
    struct simulation fork;
    struct run_result result;
    struct err err;
    simulation_fork(&fork, s, &result, &err);
    fork.last_arrival_ps = last_arrival_ps;
    group_decide(&fork.group[group], fork.now_ps);
    while (simulation_step(&fork))
        ;
    *out = (struct outlook){.completed = result.completed,
                            .e2e_ps = result.e2e_ps.sum,
                            .ttft_ps = result.ttft_ps.sum,
                            .last_finish_ps = result.makespan_ps};
    simulation_release(&fork);
    run_result_release(&result);
}
