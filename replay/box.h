/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels between two ranks' memories, as boxes: the same description at both ends, in bytes
 * from the sender's base and from the receiver's. Knows nothing of GPUs.
 */
#ifndef REPLAY_BOX_H
#define REPLAY_BOX_H

#include <stddef.h>
#include <stdint.h>

/* blocks x rows x bytes. */
struct link_box {
    int peer; /* the other rank; this one itself: a local copy, not counted */
    int64_t blocks, rows, bytes;
    int64_t from, from_block, from_row; /* first byte, distance of blocks, distance of rows */
    int64_t to, to_block, to_row;
};

/* What one rank sends and receives. Zero-initialise. */
struct boxes {
    struct link_box *out, *in;
    size_t n_out, n_in, cap_out, cap_in;
};

void boxes_release(struct boxes *b);

/* Enter a box that travels from sender to receiver where it concerns `rank`; no empty ones. Rows or
 * blocks that follow each other without a gap at both ends become one. box.peer is ignored. */
void boxes_add(struct boxes *b, int rank, int sender, int receiver, struct link_box box);

#endif
