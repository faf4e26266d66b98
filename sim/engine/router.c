/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/router.h"

#include <stdlib.h>

#include "sim/base/mem.h"

/* A prefix is known by a digest of its blocks' hashes: 64 bits, never 0. */
struct route {
    uint64_t prefix; /* 0: free */
    int32_t replica;
};

/* A finalizer of good avalanche (splitmix64's constants, public domain). */
static uint64_t extend(uint64_t prefix, uint64_t hash)
{
    uint64_t x = (prefix + 0x9e3779b97f4a7c15u) ^ hash;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x + (x == 0);
}

/* The prefix's entry, or the free one where it belongs. */
static struct route *find(const struct router *r, uint64_t prefix)
{
    size_t at = (size_t)prefix & (r->cap_routes - 1);
    while (r->route[at].prefix != 0 && r->route[at].prefix != prefix)
        at = (at + 1) & (r->cap_routes - 1);
    return &r->route[at];
}

static void grow(struct router *r)
{
    struct route *old = r->route;
    size_t n = r->cap_routes;
    r->cap_routes = n > 0 ? 2 * n : 1024;
    r->route = xcalloc(r->cap_routes, sizeof *r->route);
    for (size_t i = 0; i < n; i++)
        if (old[i].prefix != 0)
            *find(r, old[i].prefix) = old[i];
    free(old);
}

static void send_prefix(struct router *r, uint64_t prefix, int64_t replica)
{
    if (2 * r->n_routes >= r->cap_routes)
        grow(r);
    struct route *route = find(r, prefix);
    r->n_routes += route->prefix == 0;
    *route = (struct route){prefix, (int32_t)replica};
}

void router_init(struct router *r, const struct engine_input *in, int rule, int64_t n)
{
    uint32_t sessions = 0;
    *r = (struct router){.rule = rule,
                         .n = n,
                         .affinity_factor = in->config->affinity_factor,
                         .request = in->request,
                         .hash = in->hash};
    if (rule != ROUTE_PREFIX_AFFINITY)
        return;
    grow(r);
    for (int64_t i = 0; i < in->n_requests; i++)
        sessions = in->request[i].session > sessions ? in->request[i].session : sessions;
    r->n_sessions = (size_t)sessions + 1;
    r->session = xcalloc(r->n_sessions, sizeof *r->session);
}

void router_release(struct router *r)
{
    free(r->route);
    free(r->session);
    *r = (struct router){0};
}

void router_copy(struct router *to, const struct router *from)
{
    *to = *from;
    to->route = xmemdup(from->route, from->cap_routes, sizeof *from->route);
    to->session = xmemdup(from->session, from->n_sessions, sizeof *from->session);
}

static int64_t least_loaded(const int64_t *load, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = load[i] < load[best] ? i : best;
    return best;
}

/* Where most of the prompt was sent last, or -1. */
static int64_t familiar(const struct router *r, const struct engine_request *q)
{
    int64_t replica = q->n_hashes == 0 ? r->session[q->session] - 1 : -1;
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < q->n_hashes; i++) {
        prefix = extend(prefix, r->hash[q->hash_at + i]);
        const struct route *route = find(r, prefix);
        if (route->prefix == 0)
            break;
        replica = route->replica;
    }
    return replica;
}

static void remember(struct router *r, const struct engine_request *q, int64_t replica)
{
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < q->n_hashes; i++) {
        prefix = extend(prefix, r->hash[q->hash_at + i]);
        send_prefix(r, prefix, replica);
    }
    if (q->session > 0)
        r->session[q->session] = (int32_t)replica + 1;
}

int64_t router_choose(struct router *r, uint32_t req, const int64_t *load)
{
    const struct engine_request *q = &r->request[req];
    if (r->rule == ROUTE_ROUND_ROBIN)
        return req % r->n;
    int64_t least = least_loaded(load, r->n);
    if (r->rule == ROUTE_LEAST_LOADED)
        return least;
    int64_t replica = familiar(r, q);
    if (replica < 0 || (double)load[replica] > r->affinity_factor * (double)load[least])
        replica = least;
    remember(r, q, replica);
    return replica;
}
