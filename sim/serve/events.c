/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/events.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include "sim/base/mem.h"
#include "sim/serve/jobs.h"

enum { WAITING_BYTES_MAX = 64 << 10, HEARTBEAT_S = 15 };

struct watcher {
    struct events *owner;
    struct watcher *next;
    struct evhttp_request *req;
    char id[ID_SIZE];
};

struct events {
    struct watcher *first;
    struct event *heartbeat;
    int n;
};

static void remove_watcher(struct watcher *w)
{
    struct watcher **at = &w->owner->first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->owner->n--;
    free(w);
}

static void on_gone(struct evhttp_connection *conn, void *watcher)
{
    (void)conn;
    remove_watcher(watcher);
}

static void end(struct watcher *w)
{
    struct evhttp_request *req = w->req;
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
    remove_watcher(w);
    evhttp_send_reply_end(req);
}

/* One that has not read what it was sent is cut off; evhttp then says that it is gone. */
static void send_text(struct watcher *w, const char *text, size_t len)
{
    struct bufferevent *bev =
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(w->req));
    if (evbuffer_get_length(bufferevent_get_output(bev)) > WAITING_BYTES_MAX) {
        shutdown(bufferevent_getfd(bev), SHUT_RDWR);
        return;
    }
    struct evbuffer *chunk = evbuffer_new();
    evbuffer_add(chunk, text, len);
    evhttp_send_reply_chunk(w->req, chunk);
    evbuffer_free(chunk);
}

static void send_to(struct events *e, const char *id, const char *text)
{
    for (struct watcher *w = e->first, *next; w != NULL; w = next) {
        next = w->next;
        if (id == NULL || strcmp(w->id, id) == 0)
            send_text(w, text, strlen(text));
    }
}

/* So that watchers who left without a word are noticed, and nobody's proxy thinks us dead. */
static void on_heartbeat(evutil_socket_t fd, short what, void *events)
{
    (void)fd, (void)what;
    send_to(events, NULL, ":\n\n");
}

struct events *events_new(struct event_base *base)
{
    struct events *e = xcalloc(1, sizeof *e);
    struct timeval every = {.tv_sec = HEARTBEAT_S};
    e->heartbeat = event_new(base, -1, EV_PERSIST, on_heartbeat, e);
    event_add(e->heartbeat, &every);
    return e;
}

void events_free(struct events *e)
{
    if (e == NULL)
        return;
    while (e->first != NULL)
        end(e->first);
    event_free(e->heartbeat);
    free(e);
}

void events_watch(struct events *e, const char *id, struct evhttp_request *req)
{
    struct watcher *w = xcalloc(1, sizeof *w);
    *w = (struct watcher){.owner = e, .next = e->first, .req = req};
    memcpy(w->id, id, sizeof w->id);
    e->first = w;
    e->n++;
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_gone, w);
    evhttp_send_reply_start(req, HTTP_OK, "OK");
}

void events_publish(struct events *e, const char *id, const char *event, const json_t *data)
{
    if (e->first == NULL)
        return;
    char *json = json_dumps(data, JSON_COMPACT);
    char *text = xasprintf("event: %s\ndata: %s\n\n", event, json != NULL ? json : "null");
    send_to(e, id, text);
    free(text);
    free(json);
}

void events_end(struct events *e, const char *id)
{
    for (struct watcher *w = e->first, *next; w != NULL; w = next) {
        next = w->next;
        if (strcmp(w->id, id) == 0)
            end(w);
    }
}

int events_watchers(const struct events *e)
{
    return e->n;
}
