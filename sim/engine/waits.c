/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/waits.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"

/* A list is known by where it stands. Returns how many requests wait. */
static size_t find_lists(struct waits *w, const struct engine_input *in, size_t n_after)
{
    const struct engine_request **first = xcalloc(n_after, sizeof *first);
    uint32_t *list_at = xcalloc(n_after, sizeof *list_at);
    size_t cap = 0, n_waiting = 0;
    for (int64_t i = 0; i < in->n_requests; i++) {
        const struct engine_request *r = &in->request[i];
        if (r->n_after == 0)
            continue;
        n_waiting++;
        if (first[r->after_at] == NULL || first[r->after_at]->n_after != r->n_after) {
            first[r->after_at] = r;
            list_at[r->after_at] = (uint32_t)w->n_lists++;
            w->list = xgrow(w->list, &cap, w->n_lists + 1, sizeof *w->list);
            w->list[w->n_lists - 1] = (struct wait_list){.left = r->n_after};
        }
        w->list_of[i] = list_at[r->after_at];
    }
    w->list[w->n_lists] = (struct wait_list){0};
    free(first);
    free(list_at);
    return n_waiting;
}

static void add_dependents(struct waits *w, const struct engine_input *in, size_t n_waiting)
{
    size_t n = (size_t)in->n_requests, at = 0;
    w->dependent = xcalloc(n_waiting, sizeof *w->dependent);
    for (size_t i = 0; i < n; i++)
        if (in->request[i].n_after > 0)
            w->list[w->list_of[i]].dependent_at++;
    for (size_t l = 0; l <= w->n_lists; l++)
        w->list[l].dependent_at = at += w->list[l].dependent_at;
    for (size_t i = n; i-- > 0;)
        if (in->request[i].n_after > 0)
            w->dependent[--w->list[w->list_of[i]].dependent_at] = (uint32_t)i;
}

static const struct engine_request *first_dependent(const struct waits *w, size_t list)
{
    return &w->request[w->dependent[w->list[list].dependent_at]];
}

static void add_members(struct waits *w, const struct engine_input *in)
{
    size_t n = (size_t)in->n_requests, at = 0;
    w->member_at = xcalloc(n + 1, sizeof *w->member_at);
    for (size_t l = 0; l < w->n_lists; l++) {
        const struct engine_request *r = first_dependent(w, l);
        for (uint32_t k = 0; k < r->n_after; k++) {
            assert(in->after[r->after_at + k] < r - in->request);
            w->member_at[in->after[r->after_at + k]]++;
        }
    }
    for (size_t i = 0; i <= n; i++)
        w->member_at[i] = at += w->member_at[i];
    w->member = xcalloc(at, sizeof *w->member);
    for (size_t l = w->n_lists; l-- > 0;) {
        const struct engine_request *r = first_dependent(w, l);
        for (uint32_t k = 0; k < r->n_after; k++)
            w->member[--w->member_at[in->after[r->after_at + k]]] = (uint32_t)l;
    }
}

void waits_init(struct waits *w, const struct engine_input *in)
{
    size_t n_after = 0;
    *w = (struct waits){.request = in->request, .n_requests = (size_t)in->n_requests};
    for (int64_t i = 0; i < in->n_requests; i++) {
        const struct engine_request *r = &in->request[i];
        if (r->n_after > 0 && r->after_at + r->n_after > n_after)
            n_after = r->after_at + r->n_after;
    }
    if (n_after == 0)
        return;
    w->list_of = xcalloc((size_t)in->n_requests, sizeof *w->list_of);
    add_dependents(w, in, find_lists(w, in, n_after));
    add_members(w, in);
}

void waits_release(struct waits *w)
{
    free(w->list);
    free(w->list_of);
    free(w->dependent);
    free(w->member_at);
    free(w->member);
    *w = (struct waits){0};
}

void waits_copy(struct waits *to, const struct waits *from)
{
    *to = *from;
    if (from->list == NULL)
        return;
    to->list = xmemdup(from->list, from->n_lists + 1, sizeof *from->list);
    to->list_of = xmemdup(from->list_of, from->n_requests, sizeof *from->list_of);
    to->dependent =
        xmemdup(from->dependent, from->list[from->n_lists].dependent_at, sizeof *from->dependent);
    to->member_at = xmemdup(from->member_at, from->n_requests + 1, sizeof *from->member_at);
    to->member = xmemdup(from->member, from->member_at[from->n_requests], sizeof *from->member);
}

static void let_go(struct waits *w, const struct wait_list *list, int64_t now_ps,
                   struct eventq *events)
{
    for (size_t i = list->dependent_at; i < list[1].dependent_at; i++) {
        uint32_t req = w->dependent[i];
        int64_t delay_ps = w->request[req].delay_ps;
        eventq_push(events, (struct event){.time_ps = now_ps + delay_ps,
                                           .kind = delay_ps > 0 ? EV_ARRIVAL : EV_FOLLOW,
                                           .sequence = req});
    }
}

void waits_end(struct waits *w, uint32_t req, bool failed, int64_t now_ps, struct eventq *events)
{
    if (w->list_of == NULL)
        return;
    for (size_t i = w->member_at[req]; i < w->member_at[req + 1]; i++) {
        struct wait_list *list = &w->list[w->member[i]];
        list->failed = list->failed || failed;
        if (--list->left == 0)
            let_go(w, list, now_ps, events);
    }
}

bool waits_failed(const struct waits *w, uint32_t req)
{
    return w->request[req].n_after > 0 && w->list[w->list_of[req]].failed;
}
