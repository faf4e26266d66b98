/* SPDX-License-Identifier: Apache-2.0
 *
 * The event heap. Events are values, ordered by (time, kind, sequence): the order of the kinds is
 * the tie rule, and the sequence is the index of what the event is about, not a counter of
 * insertions, so that ties fall alike however many events were ever pushed.
 */
#ifndef SIM_ENGINE_EVENTQ_H
#define SIM_ENGINE_EVENTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EV_ARRIVAL,      /* sequence = request: a step that starts now sees all that arrives now */
    EV_TRANSFER_END, /* sequence = request: its KV is there for a step that starts now */
    EV_DEADLINE,     /* sequence = request: it is cancelled at a step end that comes now */
    EV_STEP_END,     /* sequence = group */
    EV_HANDOVER,     /* sequence = request whose prompt is done: no step that starts now sees it */
    EV_FOLLOW,       /* sequence = request that came as another ended: likewise */
    EV_WAKE,         /* sequence = group: an idle group has work */
    EV_COUNT
};

struct event {
    int64_t time_ps;
    enum event_kind kind;
    int64_t sequence;
    int64_t generation; /* of the group's step; an old one is dropped */
};

struct eventq {
    struct event *heap;
    size_t n, cap;
};

void eventq_release(struct eventq *q);
void eventq_copy(struct eventq *to, const struct eventq *from);
void eventq_push(struct eventq *q, struct event e);
/* Take the first event; false when there is none. */
bool eventq_pop(struct eventq *q, struct event *out);

#endif
