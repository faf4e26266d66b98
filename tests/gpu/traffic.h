/* SPDX-License-Identifier: Apache-2.0
 *
 * Random exchanges that every rank works out alike: which boxes travel, what the bytes are, and
 * what therefore is in a receiver's memory afterwards.
 */
#ifndef TESTS_GPU_TRAFFIC_H
#define TESTS_GPU_TRAFFIC_H

#include "replay/box.h"
#include "sim/base/rng.h"

enum { TRAFFIC_MAX = 400 };

struct traffic {
    int n;
    int64_t from_bytes, to_bytes; /* that boxes reach into */
    struct {
        int sender, receiver;
        struct link_box box;
    } item[TRAFFIC_MAX];
};

/* Rows are up to `grow` times 640 bytes. Some boxes are empty, some ranks silent or deaf, sizes and
 * places may be odd, and what is written never overlaps. */
void traffic_make(struct traffic *t, struct rng *rng, int ranks, int64_t grow);

/* What concerns one rank, for link_exchange_new(): room for TRAFFIC_MAX each. */
void traffic_boxes(const struct traffic *t, int rank, struct link_box *out, int *n_out,
                   struct link_box *in, int *n_in);
int64_t traffic_sent_bytes(const struct traffic *t, int rank);
int64_t traffic_received_bytes(const struct traffic *t, int rank);

/* What rank sends from in the round with this seed; n a multiple of 8. */
void traffic_source(unsigned char *to, int64_t n, uint64_t seed, int rank);

/* Write what rank receives over what is at `to`; room: from_bytes, rounded up to 8. */
void traffic_deliver(const struct traffic *t, uint64_t seed, int rank, unsigned char *to,
                     unsigned char *room);

#endif
