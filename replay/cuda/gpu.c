/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/gpu.h"

#include <assert.h>

int gpu_try(cudaError_t e, const char *what, struct err *err)
{
    if (e == cudaSuccess)
        return 0;
    return err_run(err, "GPU: %s: %s", what, cudaGetErrorString(e));
}

void *gpu_take(struct gpu_arena *a, size_t bytes)
{
    size_t at = a->used_bytes, end = at + bytes;
    size_t next = (end + GPU_GUARD_BYTES + 255) / 256 * 256;
    assert(a->n_pieces < GPU_PIECES_MAX);
    a->guard_at[a->n_pieces] = end;
    a->guard_bytes[a->n_pieces++] = next - end;
    a->used_bytes = next;
    return a->base == NULL ? NULL : a->base + at;
}

int gpu_check_guards(const struct gpu_arena *a, struct err *err)
{
    unsigned char guard[2 * GPU_GUARD_BYTES];
    for (int i = 0; i < a->n_pieces; i++) {
        if (gpu_try(cudaMemcpy(guard, a->base + a->guard_at[i], a->guard_bytes[i],
                               cudaMemcpyDeviceToHost),
                    "reading a guard", err) < 0)
            return -1;
        for (size_t k = 0; k < a->guard_bytes[i]; k++)
            if (guard[k] != 0xff)
                return err_run(err, "GPU: something wrote %zu bytes behind piece %d of the arena",
                               k, i);
    }
    return 0;
}
