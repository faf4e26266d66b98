/* SPDX-License-Identifier: Apache-2.0
 *
 * Some rows of an array, by indices that lie on the device, so that a captured graph can pick
 * others next time.
 */
#ifndef KERNELS_PICK_H
#define KERNELS_PICK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = from[index[i]] for i < n, rows of `bytes`, a multiple of 4; where index[i] is negative,
 * to[i] stays. Returns what the launch returned; cudaErrorInvalidValue for sizes that cannot be. */
cudaError_t pick_rows(void *to, const void *from, const int32_t *index, int n, int64_t bytes,
                      cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
