/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that wait for others to end: the next turn of a session, the work that sub-agents were
 * sent for, the samples behind a rollout's barrier. Those that wait for the same share one list, so
 * that a barrier between P requests and P others costs 2 P and not P^2.
 */
#ifndef SIM_ENGINE_WAITS_H
#define SIM_ENGINE_WAITS_H

#include "sim/engine/engine.h"
#include "sim/engine/eventq.h"

/* What some requests wait for. */
struct wait_list {
    uint32_t left;       /* of these, not ended yet */
    bool failed;         /* one of them has ended without its output */
    size_t dependent_at; /* first of those that wait, in waits.dependent, up to the next list's */
};

struct waits {
    const struct engine_request *request; /* borrowed */
    size_t n_requests;
    struct wait_list *list; /* and one behind the last */
    size_t n_lists;
    uint32_t *list_of;   /* of each request that waits; NULL when nothing does */
    uint32_t *dependent; /* requests, by list */
    size_t *member_at;   /* request i is in the lists member[member_at[i]] up to [i + 1] */
    uint32_t *member;
};

void waits_init(struct waits *w, const struct engine_input *in);
void waits_release(struct waits *w);
void waits_copy(struct waits *to, const struct waits *from);
/* A request ends now, with or without its output: those that wait for nothing else will arrive
 * after their delay. */
void waits_end(struct waits *w, uint32_t req, bool failed, int64_t now_ps, struct eventq *events);
/* Did a request that this one waited for end without its output? */
bool waits_failed(const struct waits *w, uint32_t req);

#endif
