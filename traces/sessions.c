/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/trace.h"

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void count_turns(const struct trace *t, struct trace_sessions *s)
{
    int64_t *turns = xcalloc(t->session.n + 1, sizeof *turns);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].session != TRACE_NO_SESSION)
            turns[t->request[i].session]++;
    for (size_t i = 0; i < t->session.n; i++)
        if (turns[i] > 0)
            turns[n++] = turns[i];
    qsort(turns, n, sizeof *turns, by_value);
    s->sessions = (int64_t)n;
    if (n > 0) {
        s->turns_p50 = turns[(n - 1) / 2];
        s->turns_max = turns[n - 1];
    }
    free(turns);
}

/* What a request waits for stands before it. */
static void count_waits(const struct trace *t, struct trace_sessions *s)
{
    int64_t *chain = xcalloc(t->n, sizeof *chain);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        bool alike = trace_waits_alike(t, i);
        if (alike)
            chain[i] = chain[i - 1] - 1;
        for (uint32_t k = 0; k < r->n_after && !alike; k++)
            chain[i] = max_i64(chain[i], chain[t->after[r->after_at + k]]);
        chain[i]++;
        s->waiting += r->n_after > 0;
        s->chain_max = r->n_after > 0 ? max_i64(s->chain_max, chain[i]) : s->chain_max;
    }
    free(chain);
}

struct trace_sessions trace_sessions(const struct trace *t)
{
    struct trace_sessions s = {0};
    count_turns(t, &s);
    count_waits(t, &s);
    return s;
}
