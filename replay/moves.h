/* SPDX-License-Identifier: Apache-2.0
 *
 * What a switch moves between the ranks' GPUs, as boxes, by the algebra of ownership alone: what a
 * rank lacks comes from one of its holders, the one that has sent least so far. No function knows a
 * pair of layouts. Every rank works out all that travels and keeps what concerns it.
 */
#ifndef REPLAY_MOVES_H
#define REPLAY_MOVES_H

#include <stdbool.h>

#include "replay/box.h"
#include "replay/slice.h"
#include "sim/layout/layout.h"

/* How a rank's pages hold the KV of a request with this owner (kernels/kv_pages.h). */
struct kv_shard {
    bool holds;
    int first_head, heads; /* KV heads side by side in a row */
    int shard, shards;     /* of positions */
    int64_t row_bytes;
};
struct kv_shard kv_shard_of(const struct slice *s, const struct layout *l, int rank, int owner);

/* One request: where its pages begin on each rank, bytes from the start of a layer's region. */
struct move_request {
    int owner;
    int64_t tokens;
    const int64_t *from, *to; /* [ranks]; not read where a rank holds nothing */
};

/* KV of one layer, the same in all: from[] and to[] of the requests are within the regions that the
 * layer leaves and enters. Where both layouts cut KV alike only what a rank lacks moves, else
 * everything that it holds afterwards goes to new pages, its own part too. */
void moves_kv(struct boxes *b, const struct slice *s, const struct layout pair[2], int rank,
              const struct move_request *request, int n);

/* A matrix that is cut by head, lying by head (replay/cuda/weights.h): bytes of one, and where the
 * first one is. */
struct move_matrix {
    int layer;
    enum matrix which;
    int64_t head_bytes, at;
};

/* Under the layouts of its layer. */
void moves_weights(struct boxes *b, const struct slice *s, const struct layout pair[2], int rank,
                   const struct move_matrix *m);

#endif
