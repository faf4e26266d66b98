/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as the load of an engine, and what options and traces must not say together.
 */
#ifndef SIM_CMD_LOAD_H
#define SIM_CMD_LOAD_H

#include "hw/model.h"
#include "sim/engine/engine.h"
#include "traces/trace.h"

/* One per request of the trace, to be freed. */
struct engine_request *load_requests(const struct trace *t);
/* These requests, and what they refer to, as an engine's input; all borrowed. */
struct engine_input load_input(const struct trace *t, const struct engine_request *request);

/* Refuses a router or a prefix cache that goes by what the trace does not have, or that the model
 * cannot have. */
int load_check(const struct trace *t, const struct engine_config *c, const struct model *m,
               struct err *err);

/* The limits of --slo. */
int load_slo(struct engine_config *c, const char *text, struct err *err);

#endif
