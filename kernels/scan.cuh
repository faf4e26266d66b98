/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums of a few hundred counts, such as rows per expert.
 */
#ifndef KERNELS_SCAN_CUH
#define KERNELS_SCAN_CUH

/* By one warp: x[i] becomes x[0] + ... + x[i]. */
static inline __device__ void scan_by_warp(int *x, int n)
{
    const int lane = threadIdx.x % 32;
    int before = 0; /* this warp's 32 */
    for (int first = 0; first < n; first += 32) {
        const int i = first + lane;
        int sum = i < n ? x[i] : 0;
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const int below = __shfl_up_sync(~0u, sum, lanes);
            if (lane >= lanes)
                sum += below;
        }
        sum += before;
        if (i < n)
            x[i] = sum;
        before = __shfl_sync(~0u, sum, 31);
    }
}

#endif
