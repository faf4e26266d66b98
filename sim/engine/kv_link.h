/* SPDX-License-Identifier: Apache-2.0
 *
 * The network between prefill and decode groups. Every group has one port of the same bandwidth,
 * and a transfer has the ports of both its ends to itself: it starts once all that was asked of
 * either before has gone through (first come, first served), so that no port is ever over its
 * bandwidth.
 */
#ifndef SIM_ENGINE_KV_LINK_H
#define SIM_ENGINE_KV_LINK_H

#include <stdint.h>

struct kv_link {
    double gb_per_s;
    int64_t latency_ps;
    int64_t n;
    struct port *port;
};

struct kv_transfer {
    int64_t start_ps; /* the first byte leaves; both ports are busy for the bytes' time */
    int64_t end_ps;   /* the last byte is there, after the latency and that time */
};

void kv_link_init(struct kv_link *l, double gb_per_s, int64_t latency_ps, int64_t n_ports);
void kv_link_release(struct kv_link *l);
void kv_link_copy(struct kv_link *to, const struct kv_link *from);

/* Send so many bytes, more than none, asked for now; times never go back from call to call. */
struct kv_transfer kv_link_send(struct kv_link *l, int64_t from, int64_t to, double bytes,
                                int64_t now_ps);
/* For how long the busiest port was or will be busy. */
int64_t kv_link_busiest_ps(const struct kv_link *l);

#endif
