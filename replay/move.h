/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing what a rank holds from one layout to another, by the algebra of ownership alone: a cell
 * that a rank lacks comes from one of its holders, the one that has sent least so far. No function
 * knows a pair of layouts. Calls are collective.
 */
#ifndef REPLAY_MOVE_H
#define REPLAY_MOVE_H

#include "replay/comm.h"
#include "replay/store.h"

/* Send every listed cell to the ranks that hold it under `to` but not under `from`: one
 * comm_all_to_all. What they held stays. */
int move_fetch(const struct store *s, struct comm *c, const struct store_cells *cells,
               const struct layout pair[2], struct err *err);

/* Poison the listed cells that this rank does not hold under `l`. */
void move_retire(const struct store *s, const struct store_cells *cells, const struct layout *l);

/* Switch layouts, layer by layer: fetch projections and all requests' KV, then retire the rest. */
int move_switch(const struct store *s, struct comm *c, const struct layout *from,
                const struct layout *to, struct err *err);

#endif
