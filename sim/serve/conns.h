/* SPDX-License-Identifier: Apache-2.0
 *
 * The open connections: no more than so many, and none that takes longer than so many seconds to
 * ask. evhttp has neither limit (its timeout starts anew with every byte), and tells nobody when it
 * closes a connection; so this file holds a reference on each and looks through them every now and
 * then.
 */
#ifndef SIM_SERVE_CONNS_H
#define SIM_SERVE_CONNS_H

#include <stdint.h>

struct evhttp;
struct evhttp_bound_socket;
struct evhttp_request;
struct event_base;

struct conns;
/* Looks after what is accepted on the socket. `dropped` counts. */
struct conns *conns_new(struct event_base *base, struct evhttp *http,
                        struct evhttp_bound_socket *socket, int64_t max, int64_t request_s,
                        int64_t *dropped);
/* After the evhttp is freed. */
void conns_free(struct conns *c);

/* A request is there: its connection has all the time until the answer is sent. */
void conns_asked(struct conns *c, struct evhttp_request *req);
int64_t conns_count(const struct conns *c);

#endif
