/* SPDX-License-Identifier: Apache-2.0
 *
 * Who watches which job, by server-sent events. A watcher that does not read is dropped: what waits
 * to be sent to it is bounded.
 */
#ifndef SIM_SERVE_EVENTS_H
#define SIM_SERVE_EVENTS_H

#include <jansson.h>

struct evhttp_request;
struct event_base;

struct events;
struct events *events_new(struct event_base *base);
/* Ends every stream. */
void events_free(struct events *e);

/* Answers the request with a stream of what is published of the job from now on. The reply's
 * headers must be set. */
void events_watch(struct events *e, const char *id, struct evhttp_request *req);
/* Borrows `data`. */
void events_publish(struct events *e, const char *id, const char *event, const json_t *data);
/* The job has ended: so do its streams. */
void events_end(struct events *e, const char *id);
/* Streams that are open. */
int events_watchers(const struct events *e);

#endif
