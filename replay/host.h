/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of a replay on the CPU, in double: it computes from nothing but what its store holds and
 * what other ranks sent. Small shapes; the oracle for layouts, exchanges and switches. Calls are
 * collective unless they say otherwise.
 */
#ifndef REPLAY_HOST_H
#define REPLAY_HOST_H

#include "replay/comm.h"
#include "replay/store.h"
#include "sim/plan/plan.h"

struct host;

/* A rank with its weights and no requests. Slice and comm are borrowed. The model has neither a
 * sparse indexer nor linear-attention layers. Not collective. */
struct host *host_new(const struct slice *s, const struct layout *l, struct comm *c);
void host_free(struct host *h);

/* Run a step under the layout in force: each plan row is q positions that end its context. A new
 * request's earlier context is history. A request's last rows may run once more, in place of
 * themselves; otherwise fails when a context does not continue what ran before.
 * Writes the hidden rows after the last layer, [sum of q][hidden]; where hidden rows live with
 * their owner, the others' are NaN. */
int host_step(struct host *h, const struct plan_row *row, int n_rows, double *out, struct err *err);

/* Change the layout: move what the new one places elsewhere, retire the rest. */
int host_switch(struct host *h, const struct layout *to, struct err *err);

/* Drop a request, on every rank alike; nothing when there is none. Sends nothing. */
void host_forget(struct host *h, int64_t req);

/* What the rank holds, for checks. */
const struct store *host_store(const struct host *h);

#endif
