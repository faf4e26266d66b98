/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/waits.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"

/* Lists of what waits for each, from the lists of what each waits for. */
static void turn_around(struct waits *w, const struct engine_input *in, size_t n_waits)
{
    size_t n = (size_t)in->n_requests;
    size_t *next = xcalloc(n + 1, sizeof *next);
    w->first = xcalloc(n + 1, sizeof *w->first);
    w->left = xcalloc(n, sizeof *w->left);
    w->dependent = xcalloc(n_waits, sizeof *w->dependent);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < in->request[i].n_after; k++)
            w->first[in->after[in->request[i].after_at + k] + 1]++;
    for (size_t i = 0; i < n; i++)
        next[i + 1] = w->first[i + 1] += w->first[i];
    for (size_t i = 0; i < n; i++) {
        const struct engine_request *r = &in->request[i];
        w->left[i] = r->n_after;
        for (uint32_t k = 0; k < r->n_after; k++) {
            uint32_t before = in->after[r->after_at + k];
            assert(before < i);
            w->dependent[next[before]++] = (uint32_t)i;
        }
    }
    free(next);
}

void waits_init(struct waits *w, const struct engine_input *in)
{
    size_t n_waits = 0;
    *w = (struct waits){.request = in->request};
    for (int64_t i = 0; i < in->n_requests; i++)
        n_waits += in->request[i].n_after;
    if (n_waits > 0)
        turn_around(w, in, n_waits);
}

void waits_release(struct waits *w)
{
    free(w->left);
    free(w->first);
    free(w->dependent);
    *w = (struct waits){0};
}

void waits_end(struct waits *w, uint32_t req, int64_t now_ps, struct eventq *events)
{
    if (w->dependent == NULL)
        return;
    for (size_t i = w->first[req]; i < w->first[req + 1]; i++) {
        uint32_t other = w->dependent[i];
        int64_t delay_ps = w->request[other].delay_ps;
        if (--w->left[other] == 0)
            eventq_push(events, (struct event){.time_ps = now_ps + delay_ps,
                                               .kind = delay_ps > 0 ? EV_ARRIVAL : EV_FOLLOW,
                                               .sequence = other});
    }
}
