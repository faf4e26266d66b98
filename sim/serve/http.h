/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP around the routes, by libevent: limits, headers that every answer has, and the refusal of
 * requests that another site's page sends through a user's browser.
 */
#ifndef SIM_SERVE_HTTP_H
#define SIM_SERVE_HTTP_H

#include "sim/serve/dispatch.h"

struct event_base;

struct http;
/* Listens as the config says. `site` and `events` are borrowed. NULL with a message. */
struct http *http_new(struct event_base *base, struct site *site, struct events *events,
                      struct err *err);
void http_free(struct http *h);
/* The port that it listens on. */
int http_port(const struct http *h);

#endif
