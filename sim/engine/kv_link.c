/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/kv_link.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

struct port {
    int64_t free_ps; /* when all that was asked of it has gone through */
    int64_t busy_ps;
};

static const double ps_per_byte_at_1_gb_per_s = 1000;

void kv_link_init(struct kv_link *l, double gb_per_s, int64_t latency_ps, int64_t n_ports)
{
    *l = (struct kv_link){.gb_per_s = gb_per_s, .latency_ps = latency_ps, .n = n_ports};
    l->port = xcalloc((size_t)n_ports, sizeof *l->port);
}

void kv_link_release(struct kv_link *l)
{
    free(l->port);
    *l = (struct kv_link){0};
}

void kv_link_copy(struct kv_link *to, const struct kv_link *from)
{
    *to = *from;
    to->port = xmemdup(from->port, (size_t)from->n, sizeof *from->port);
}

static void occupy(struct port *p, int64_t start_ps, int64_t time_ps)
{
    p->free_ps = start_ps + time_ps;
    p->busy_ps += time_ps;
}

struct kv_transfer kv_link_send(struct kv_link *l, int64_t from, int64_t to, double bytes,
                                int64_t now_ps)
{
    struct port *out = &l->port[from], *in = &l->port[to];
    int64_t start_ps = max_i64(now_ps, max_i64(out->free_ps, in->free_ps));
    int64_t time_ps = (int64_t)ceil(bytes * ps_per_byte_at_1_gb_per_s / l->gb_per_s);
    occupy(out, start_ps, time_ps);
    occupy(in, start_ps, time_ps);
    return (struct kv_transfer){start_ps, start_ps + time_ps + l->latency_ps};
}

int64_t kv_link_busiest_ps(const struct kv_link *l)
{
    int64_t most = 0;
    for (int64_t i = 0; i < l->n; i++)
        most = max_i64(most, l->port[i].busy_ps);
    return most;
}
