/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/named_waits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

/* Walks through skipped rows are repeated by each that waits for them, so they are limited. */
enum { STEPS_MAX = 1 << 24 };

/* Depth first from one row through the skipped ones. */
struct search {
    struct named_waits *w;
    struct trace *t;
    uint32_t *seen; /* of each row: by which one last, plus one */
    uint32_t *stack;
    size_t depth;
    long steps;
};

static uint32_t number_of(struct named_waits *w, const char *name)
{
    uint32_t number = (uint32_t)names_number(&w->names, name);
    size_t before = w->cap_names;
    w->node_of = xgrow(w->node_of, &w->cap_names, number + 1, sizeof *w->node_of);
    memset(w->node_of + before, 0, (w->cap_names - before) * sizeof *w->node_of);
    return number;
}

int named_waits_begin(struct named_waits *w, const struct trace *t, const char *name,
                      const struct named_waits_node *row, struct err *err)
{
    uint32_t number = number_of(w, name);
    if (w->node_of[number] != 0)
        return err_at(err, t->path, row->line, "\"%.60s\" is the name of line %ld too", name,
                      w->node[w->node_of[number] - 1].line);
    assert(w->n < UINT32_MAX);
    w->node = xgrow(w->node, &w->cap, w->n + 1, sizeof *w->node);
    w->node[w->n++] = *row;
    w->node[w->n - 1].edge_at = w->n_edges;
    w->node[w->n - 1].n_edges = 0;
    w->node_of[number] = (uint32_t)w->n;
    return 0;
}

void named_waits_add(struct named_waits *w, const char *name)
{
    uint32_t number = number_of(w, name);
    w->edge = xgrow(w->edge, &w->cap_edges, w->n_edges + 1, sizeof *w->edge);
    w->edge[w->n_edges++] = number;
    w->node[w->n - 1].n_edges++;
}

/* One row that `waiting` waits for: a request to tie it to, or a skipped row to look behind. */
static int meet(struct search *s, const struct named_waits_node *waiting, uint32_t row,
                struct err *err)
{
    const struct named_waits_node *other = &s->w->node[row];
    uint32_t mark = (uint32_t)(waiting - s->w->node) + 1;
    if (other == waiting)
        return err_at(err, s->t->path, waiting->line, "waits for itself");
    if (s->seen[row] == mark)
        return 0;
    s->seen[row] = mark;
    if (other->request < 0)
        s->stack[s->depth++] = row;
    else
        trace_wait_later(s->t, (size_t)waiting->request, (size_t)other->request);
    return 0;
}

static int meet_all(struct search *s, const struct named_waits_node *waiting,
                    const struct named_waits_node *from, struct err *err)
{
    s->steps += (long)from->n_edges;
    if (s->steps > STEPS_MAX)
        return err_at(err, s->t->path, waiting->line,
                      "waits for too many rows by way of skipped ones");
    for (size_t i = 0; i < from->n_edges; i++) {
        uint32_t row = s->w->node_of[s->w->edge[from->edge_at + i]];
        if (row > 0 && meet(s, waiting, row - 1, err) < 0)
            return -1;
    }
    return 0;
}

static int tie(struct search *s, const struct named_waits_node *waiting, struct err *err)
{
    uint32_t before = s->t->request[waiting->request].n_after;
    if (meet_all(s, waiting, waiting, err) < 0)
        return -1;
    while (s->depth > 0)
        if (meet_all(s, waiting, &s->w->node[s->stack[--s->depth]], err) < 0)
            return -1;
    if (s->t->request[waiting->request].n_after > before)
        return 0;
    if (!waiting->timed)
        return err_at(err, s->t->path, waiting->line,
                      "nothing that it waits for is in the file, and it has no time of its own");
    s->t->noted[NOTE_NO_PARENT]++;
    s->t->request[waiting->request].delay_ps = 0;
    return 0;
}

int named_waits_resolve(struct named_waits *w, struct trace *t, struct err *err)
{
    struct search s = {.w = w,
                       .t = t,
                       .seen = xcalloc(w->n + 1, sizeof *s.seen),
                       .stack = xcalloc(w->n + 1, sizeof *s.stack)};
    int rc = 0;
    for (size_t i = 0; i < w->n && rc == 0; i++)
        if (w->node[i].request >= 0 && w->node[i].n_edges > 0)
            rc = tie(&s, &w->node[i], err);
    free(s.seen);
    free(s.stack);
    return rc;
}

void named_waits_release(struct named_waits *w)
{
    names_release(&w->names);
    free(w->node_of);
    free(w->node);
    free(w->edge);
    *w = (struct named_waits){0};
}
