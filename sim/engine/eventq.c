/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/eventq.h"

#include <stdlib.h>

#include "sim/base/mem.h"

void eventq_release(struct eventq *q)
{
    free(q->heap);
    *q = (struct eventq){0};
}

void eventq_copy(struct eventq *to, const struct eventq *from)
{
    *to = *from;
    to->heap = xmemdup(from->heap, from->cap, sizeof *from->heap);
}

static bool comes_before(const struct event *a, const struct event *b)
{
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->sequence < b->sequence;
}

void eventq_push(struct eventq *q, struct event e)
{
    q->heap = xgrow(q->heap, &q->cap, q->n + 1, sizeof *q->heap);
    size_t at = q->n++;
    for (; at > 0 && comes_before(&e, &q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        q->heap[at] = q->heap[(at - 1) / 2];
    q->heap[at] = e;
}

bool eventq_pop(struct eventq *q, struct event *out)
{
    if (q->n == 0)
        return false;
    *out = q->heap[0];
    struct event last = q->heap[--q->n];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < q->n && comes_before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (child >= q->n || !comes_before(&q->heap[child], &last))
            break;
        q->heap[at] = q->heap[child];
        at = child;
    }
    if (q->n > 0)
        q->heap[at] = last;
    return true;
}
