/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a trace's requests, by the earliest time that each can come. Not for anyone outside
 * traces/.
 */
#ifndef TRACES_ORDER_H
#define TRACES_ORDER_H

#include "traces/trace.h"

/* Times of requests that wait, from those that they wait for; then all sorted, ties as they were
 * but for those that wait, and re-based to the first. Refuses requests that wait for themselves by
 * way of others, and a span of TRACE_SPAN_MAX_PS. */
int order_requests(struct trace *t, struct err *err);

#endif
