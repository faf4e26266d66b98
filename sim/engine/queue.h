/* SPDX-License-Identifier: Apache-2.0
 *
 * FIFO of request ids that also takes one back at the front (a preempted request). A ring.
 */
#ifndef SIM_ENGINE_QUEUE_H
#define SIM_ENGINE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue {
    uint32_t *id;
    size_t cap, head, n; /* first is id[head]; zeroed = empty */
};

void queue_push_back(struct queue *q, uint32_t id);
void queue_push_front(struct queue *q, uint32_t id);
/* Only when n > 0. */
uint32_t queue_pop_front(struct queue *q);
/* Take an id out, wherever it is; false when it is not there. Quick near the front. */
bool queue_remove(struct queue *q, uint32_t id);
void queue_release(struct queue *q);
void queue_copy(struct queue *to, const struct queue *from);

#endif
