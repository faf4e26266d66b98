/* SPDX-License-Identifier: Apache-2.0
 *
 * Which replica of a pool a request goes to. Round robin goes by the request's number; least loaded
 * takes the smallest load, ties to the first. Prefix affinity takes the replica that was last sent
 * the longest run of the prompt's blocks, from the front (where there are no hashes: its session's
 * replica), unless its load is over affinity_factor times the least one: then the least loaded.
 */
#ifndef SIM_ENGINE_ROUTER_H
#define SIM_ENGINE_ROUTER_H

#include "sim/engine/engine.h"

struct router {
    int rule; /* enum router_rule */
    int64_t n;
    double affinity_factor;
    const struct engine_request *request; /* borrowed */
    const uint64_t *hash;
    struct route *route; /* a hash table: where prefixes were sent last */
    size_t n_routes, cap_routes;
    int32_t *session; /* the same of sessions, from 1; 0: nowhere yet */
    size_t n_sessions;
};

/* For n replicas. Of the input the requests and hashes are borrowed. */
void router_init(struct router *r, const struct engine_input *in, int rule, int64_t n);
void router_release(struct router *r);
void router_copy(struct router *to, const struct router *from);

/* The replica of a request. `load` has for each the tokens, prompt and output, that it would still
 * have to compute with this request; round robin does not read it. */
int64_t router_choose(struct router *r, uint32_t req, const int64_t *load);

#endif
