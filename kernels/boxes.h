/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of boxes of bytes, blocks x rows x bytes with any distances at either end, from a list on
 * the device: packing, unpacking, local copies, and stores into other ranks' memory. Boxes move 16
 * bytes at a time where all places, distances and sizes that matter are multiples of 16, else 2, or
 * 1. Boxes of one list must not overlap where they are written.
 */
#ifndef KERNELS_BOXES_H
#define KERNELS_BOXES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "kernels/peers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All numbers in bytes but `target`, `blocks` and `rows`. */
struct boxes_box {
    int target; /* whose base `to` counts from */
    int64_t blocks, rows, bytes;
    int64_t from, from_block, from_row; /* first byte, distance of blocks, distance of rows */
    int64_t to, to_block, to_row;
};

/* On the device, in the form that the kernels read. Zero-initialise; a zero list is empty. */
struct boxes_list {
    struct boxes_placed *placed;
    int64_t n, units;
    int loads; /* words of a thread in flight */
};

/* Empty boxes are left out. Waits for the copy, which is made on `stream`. */
cudaError_t boxes_list_make(struct boxes_list *list, const struct boxes_box *box, int n,
                            cudaStream_t stream);
void boxes_list_free(struct boxes_list *list);

/* Bases: multiples of 16. */
struct boxes_copy {
    struct boxes_list list;
    const void *from;
    void *to[PEERS_MAX]; /* by target */
};

/* By at most so many blocks of threads. */
cudaError_t boxes_copy(const struct boxes_copy *p, int blocks, cudaStream_t stream);

/* Copy, then meet the other ranks: their stores too are there for what follows on the stream. */
cudaError_t boxes_push(const struct boxes_copy *p, const struct peers *peers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
