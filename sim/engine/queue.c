/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"

void queue_release(struct queue *q)
{
    free(q->id);
    *q = (struct queue){0};
}

void queue_copy(struct queue *to, const struct queue *from)
{
    *to = *from;
    to->id = xmemdup(from->id, from->cap, sizeof *from->id);
}

static void reserve(struct queue *q)
{
    if (q->n < q->cap)
        return;
    assert(q->n == q->cap);
    size_t cap = q->cap ? q->cap * 2 : 64;
    uint32_t *id = xcalloc(cap, sizeof *id);
    for (size_t i = 0; i < q->n; i++)
        id[i] = q->id[(q->head + i) % q->cap];
    free(q->id);
    *q = (struct queue){.id = id, .cap = cap, .n = q->n};
}

void queue_push_back(struct queue *q, uint32_t id)
{
    reserve(q);
    q->id[(q->head + q->n++) % q->cap] = id;
}

void queue_push_front(struct queue *q, uint32_t id)
{
    reserve(q);
    q->head = (q->head + q->cap - 1) % q->cap;
    q->id[q->head] = id;
    q->n++;
}

uint32_t queue_pop_front(struct queue *q)
{
    assert(q->n > 0);
    uint32_t id = q->id[q->head];
    q->head = (q->head + 1) % q->cap;
    q->n--;
    return id;
}

bool queue_remove(struct queue *q, uint32_t id)
{
    size_t at = 0;
    while (at < q->n && q->id[(q->head + at) % q->cap] != id)
        at++;
    if (at == q->n)
        return false;
    for (; at > 0; at--)
        q->id[(q->head + at) % q->cap] = q->id[(q->head + at - 1) % q->cap];
    queue_pop_front(q);
    return true;
}
