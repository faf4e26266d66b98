/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/order.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { NOT_YET = 0 };
static const uint32_t under_way = UINT32_MAX;

/* Depth first: what a request waits for gets its time and rank before it does. */
struct walk {
    struct trace *t;
    uint32_t *rank; /* NOT_YET, under_way, or from 1 in the order of the walk */
    uint32_t *done; /* of each request's list, so many have a rank */
    uint32_t *stack;
    uint32_t n_stack, n_ranked;
};

static void push(struct walk *w, uint32_t i)
{
    w->rank[i] = under_way;
    w->stack[w->n_stack++] = i;
}

static bool has_rank(const struct walk *w, uint32_t i)
{
    return w->rank[i] != NOT_YET && w->rank[i] != under_way;
}

/* Then all that they wait for has a rank and a time. */
static bool has_time_of_one_before(const struct walk *w, uint32_t i)
{
    return trace_waits_alike(w->t, i) && has_rank(w, i - 1);
}

/* The next that a request waits for and that has no rank, or itself. */
static uint32_t next_open(struct walk *w, uint32_t i)
{
    const struct trace_request *r = &w->t->request[i];
    if (has_time_of_one_before(w, i))
        return i;
    for (; w->done[i] < r->n_after; w->done[i]++) {
        uint32_t other = w->t->after[r->after_at + w->done[i]];
        assert(other < w->t->n);
        if (!has_rank(w, other))
            return other;
    }
    return i;
}

/* The last arrival of those that a request waits for. */
static int64_t waited_until_ps(const struct walk *w, uint32_t i)
{
    const struct trace *t = w->t;
    const struct trace_request *r = &t->request[i];
    int64_t ended_ps = t->first_ps;
    if (has_time_of_one_before(w, i))
        return r[-1].arrival_ps - r[-1].delay_ps;
    for (uint32_t k = 0; k < r->n_after; k++)
        ended_ps = max_i64(ended_ps, t->request[t->after[r->after_at + k]].arrival_ps);
    return ended_ps;
}

static int set_time(const struct walk *w, uint32_t i, struct err *err)
{
    struct trace *t = w->t;
    struct trace_request *r = &t->request[i];
    if (r->n_after == 0)
        return 0;
    int64_t ended_ps = waited_until_ps(w, i);
    if (ended_ps - t->first_ps >= TRACE_SPAN_MAX_PS - r->delay_ps)
        return err_at(err, t->path, r->line, "comes 100 days or more after another request");
    r->arrival_ps = ended_ps + r->delay_ps;
    return 0;
}

static int rank_from(struct walk *w, uint32_t first, struct err *err)
{
    push(w, first);
    while (w->n_stack > 0) {
        uint32_t i = w->stack[w->n_stack - 1], other = next_open(w, i);
        if (other == i) {
            if (set_time(w, i, err) < 0)
                return -1;
            w->rank[i] = ++w->n_ranked;
            w->n_stack--;
        } else if (w->rank[other] == under_way) {
            return err_at(err, w->t->path, w->t->request[i].line,
                          "waits for itself, by way of what it waits for");
        } else {
            push(w, other);
        }
    }
    return 0;
}

static int rank_all(struct walk *w, struct err *err)
{
    for (uint32_t i = 0; i < w->t->n; i++)
        if (w->rank[i] == NOT_YET && rank_from(w, i, err) < 0)
            return -1;
    return 0;
}

struct place {
    int64_t arrival_ps;
    uint32_t rank, at;
};

static int by_time(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->arrival_ps != y->arrival_ps)
        return x->arrival_ps < y->arrival_ps ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Requests to their new places; what they wait for is named by these. */
static void permute(struct trace *t, const struct place *place, uint32_t *new_at)
{
    struct trace_request *sorted = xcalloc(t->n, sizeof *sorted);
    for (size_t i = 0; i < t->n; i++) {
        sorted[i] = t->request[place[i].at];
        new_at[place[i].at] = (uint32_t)i;
    }
    free(t->request);
    t->request = sorted;
    t->cap = t->n;
    trace_rename_waits(t, new_at);
}

static void rebase(struct trace *t)
{
    int64_t first_ps = t->request[0].arrival_ps;
    for (size_t i = 0; i < t->n; i++)
        t->request[i].arrival_ps -= first_ps;
    t->origin_ps += first_ps;
    t->first_ps = 0;
    t->last_ps = t->request[t->n - 1].arrival_ps;
}

int order_requests(struct trace *t, struct err *err)
{
    struct walk w = {.t = t,
                     .rank = xcalloc(t->n, sizeof *w.rank),
                     .done = xcalloc(t->n, sizeof *w.done),
                     .stack = xcalloc(t->n, sizeof *w.stack)};
    int rc = rank_all(&w, err);
    if (rc == 0) {
        struct place *place = xcalloc(t->n, sizeof *place);
        for (uint32_t i = 0; i < t->n; i++)
            place[i] = (struct place){t->request[i].arrival_ps, w.rank[i], i};
        qsort(place, t->n, sizeof *place, by_time);
        permute(t, place, w.done);
        rebase(t);
        free(place);
    }
    free(w.rank);
    free(w.done);
    free(w.stack);
    return rc;
}
