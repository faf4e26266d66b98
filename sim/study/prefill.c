/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/prefill.h"

#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

/* The prompts of one queue: request, request + stride, ... below `batch`. */
struct queue {
    int request;
    int64_t done; /* tokens of it */
};

/* Take the queue's next chunks; returns how many items were added. */
static int take(struct queue *q, int64_t room, int stride, int batch, int64_t tokens,
                struct batch_item *item)
{
    int n = 0, owner = q->request % stride;
    while (room > 0 && q->request < batch) {
        int64_t rows = min_i64(room, tokens - q->done);
        q->done += rows;
        room -= rows;
        item[n++] = (struct batch_item){q->done, (int32_t)rows, owner};
        if (q->done == tokens)
            *q = (struct queue){q->request + stride, 0};
    }
    return n;
}

void prefill_steps(const struct cost *c, int layout, int batch, int64_t tokens, prefill_fn *tell,
                   void *state)
{
    bool owned = cost_layout(c, layout)->kv_owned;
    int queues = owned ? cost_ranks(c) : 1;
    struct queue queue[RANKS_MAX] = {{0}};
    struct batch_item *item = xcalloc((size_t)batch, sizeof *item);
    for (int i = 0; i < queues; i++)
        queue[i].request = i;
    for (;;) {
        struct batch b = {.item = item};
        struct step_cost step;
        for (int i = 0; i < queues; i++)
            b.n +=
                take(&queue[i], PREFILL_CHUNK_TOKENS / queues, queues, batch, tokens, item + b.n);
        if (b.n == 0)
            break;
        cost_step(c, layout, &b, &step);
        tell(state, &step);
    }
    free(item);
}

static void add_step(void *s, const struct step_cost *step)
{
    *(double *)s += ps_to_s(step->step.a_ps);
}

double prefill_s(const struct cost *c, int layout, int batch, int64_t tokens)
{
    double s = 0;
    prefill_steps(c, layout, batch, tokens, add_step, &s);
    return s;
}
