/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that wait for others by name, in any order in the file: a graph that is tied to the trace's
 * requests once all are read. What waits for a skipped row waits for what that one waited for.
 */
#ifndef TRACES_NAMED_WAITS_H
#define TRACES_NAMED_WAITS_H

#include "traces/trace.h"

/* Zero-initialise. */
struct named_waits {
    struct names names;
    uint32_t *node_of; /* of each name: a row plus one; 0: of none */
    size_t cap_names;
    struct named_waits_node *node;
    size_t n, cap;
    uint32_t *edge; /* names */
    size_t n_edges, cap_edges;
};

/* Of one row, after the trace was given it. */
struct named_waits_node {
    int64_t request; /* by number of addition; -1: skipped */
    bool timed;      /* it has a time of its own */
    long line;
    size_t edge_at;
    size_t n_edges;
};

/* One more row under its name; what it waits for follows. Refuses a name that is there. */
int named_waits_begin(struct named_waits *w, const struct trace *t, const char *name,
                      const struct named_waits_node *row, struct err *err);
/* The last row waits for the one of this name. */
void named_waits_add(struct named_waits *w, const char *name);
/* Tie all that waits to what it waits for. Where nothing of that is in the file, it comes at its
 * own time, which is noted, and refused where it has none. */
int named_waits_resolve(struct named_waits *w, struct trace *t, struct err *err);
void named_waits_release(struct named_waits *w);

#endif
