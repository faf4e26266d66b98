/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that wait for others to end: the next turn of a session, the work that sub-agents were
 * sent for. One that was rejected has ended as well.
 */
#ifndef SIM_ENGINE_WAITS_H
#define SIM_ENGINE_WAITS_H

#include "sim/engine/engine.h"
#include "sim/engine/eventq.h"

struct waits {
    const struct engine_request *request; /* borrowed */
    uint32_t *left;                       /* of what each waits for, not ended yet */
    size_t *first;       /* request i lets dependent[first[i]] up to dependent[first[i + 1]] go */
    uint32_t *dependent; /* NULL when nothing waits */
};

void waits_init(struct waits *w, const struct engine_input *in);
void waits_release(struct waits *w);
/* A request ends now: those that wait for nothing else will arrive after their delay. */
void waits_end(struct waits *w, uint32_t req, int64_t now_ps, struct eventq *events);

#endif
