/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over ranks of one host (kernels/peers.h) by stores into each other's memory. FP32 sums in
 * rank order, rounded once, so that every rank has the same bits.
 */
#ifndef KERNELS_ALL_REDUCE_H
#define KERNELS_ALL_REDUCE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "kernels/peers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct all_reduce {
    struct peers peers;
    uint16_t *x[PEERS_MAX];   /* [n] BF16 in each rank's memory, as mapped here; all at the same
                                 address modulo 16, a multiple of 4 */
    char *scratch[PEERS_MAX]; /* likewise, two halves of half_bytes */
    int64_t half_bytes, n;    /* half_bytes a multiple of 16 and at least 1 MiB; n even */
};

/* x of every rank becomes the sum. Few bytes in one shot: everyone sends all to everyone and sums.
 * More in two, each half the work: everyone sums a slice and sends that to everyone. By as many
 * kernels as the scratch memory asks for. */
cudaError_t all_reduce(const struct all_reduce *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
