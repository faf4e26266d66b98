/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/conns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "sim/base/mem.h"
#include "sim/base/progress.h"
#include "sim/serve/config.h"

enum { LOOK_US = 100000, READ_BYTES_MAX = SERVE_PART_BYTES + (64 << 10) };

struct conn {
    struct bufferevent *bev;
    uint64_t since_ns; /* it may ask from this time on; 0: it has asked */
};

struct conns {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *look;
    struct conn *conn;
    int64_t n, max;
    size_t cap;
    uint64_t request_ns;
    int64_t *dropped;
};

/* evhttp takes its callbacks off a connection that it is done with. */
static bool is_closed(struct bufferevent *bev)
{
    bufferevent_event_cb event_cb;
    bufferevent_getcb(bev, NULL, NULL, &event_cb, NULL);
    return event_cb == NULL;
}

static void drop_if_late(struct conns *c, struct conn *conn, uint64_t now_ns)
{
    if (conn->since_ns == 0 || now_ns - conn->since_ns < c->request_ns)
        return;
    conn->since_ns = 0;
    ++*c->dropped;
    shutdown(bufferevent_getfd(conn->bev), SHUT_RDWR);
}

static void on_look(evutil_socket_t fd, short what, void *conns)
{
    (void)fd, (void)what;
    struct conns *c = conns;
    uint64_t now_ns = wall_ns();
    int64_t kept = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (is_closed(c->conn[i].bev)) {
            bufferevent_decref(c->conn[i].bev);
            continue;
        }
        drop_if_late(c, &c->conn[i], now_ns);
        c->conn[kept++] = c->conn[i];
    }
    c->n = kept;
    if (c->n < c->max)
        evconnlistener_enable(c->listener);
}

static struct bufferevent *on_accept(struct event_base *base, void *conns)
{
    struct conns *c = conns;
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
    /* evhttp would read without end from one that sends while it is being answered */
    bufferevent_setwatermark(bev, EV_READ, 0, READ_BYTES_MAX);
    bufferevent_incref(bev);
    c->conn = xgrow(c->conn, &c->cap, (size_t)c->n + 1, sizeof *c->conn);
    c->conn[c->n++] = (struct conn){.bev = bev, .since_ns = wall_ns()};
    if (c->n >= c->max)
        evconnlistener_disable(c->listener);
    return bev;
}

struct conns *conns_new(struct event_base *base, struct evhttp *http,
                        struct evhttp_bound_socket *socket, int64_t max, int64_t request_s,
                        int64_t *dropped)
{
    struct conns *c = xcalloc(1, sizeof *c);
    struct timeval every = {.tv_usec = LOOK_US};
    *c = (struct conns){.base = base,
                        .listener = evhttp_bound_socket_get_listener(socket),
                        .max = max,
                        .request_ns = (uint64_t)request_s * 1000000000u,
                        .dropped = dropped};
    c->look = event_new(base, -1, EV_PERSIST, on_look, c);
    event_add(c->look, &every);
    evhttp_set_bevcb(http, on_accept, c);
    return c;
}

void conns_free(struct conns *c)
{
    if (c == NULL)
        return;
    for (int64_t i = 0; i < c->n; i++)
        bufferevent_decref(c->conn[i].bev);
    event_free(c->look);
    free(c->conn);
    free(c);
}

static struct conn *find(struct conns *c, const struct evhttp_request *req)
{
    struct evhttp_connection *of = evhttp_request_get_connection((struct evhttp_request *)req);
    struct bufferevent *bev = of != NULL ? evhttp_connection_get_bufferevent(of) : NULL;
    for (int64_t i = 0; i < c->n; i++)
        if (c->conn[i].bev == bev)
            return &c->conn[i];
    return NULL;
}

static void on_answered(struct evhttp_request *req, void *conns)
{
    struct conn *conn = find(conns, req);
    if (conn != NULL)
        conn->since_ns = wall_ns();
}

void conns_asked(struct conns *c, struct evhttp_request *req)
{
    struct conn *conn = find(c, req);
    if (conn == NULL)
        return;
    struct timeval stuck = {.tv_sec = (time_t)(c->request_ns / 1000000000u)};
    conn->since_ns = 0;
    /* who waits for events, or reads a long file, has nothing to say meanwhile */
    bufferevent_set_timeouts(conn->bev, NULL, &stuck);
    evhttp_request_set_on_complete_cb(req, on_answered, c);
}

int64_t conns_count(const struct conns *c)
{
    return c->n;
}
