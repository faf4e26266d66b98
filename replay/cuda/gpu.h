/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory and errors: one symmetric arena holds everything that a rank keeps on its GPU,
 * carved up the same way on every rank, so that a place is the same offset everywhere.
 */
#ifndef REPLAY_CUDA_GPU_H
#define REPLAY_CUDA_GPU_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/err.h"

/* 0, or -1 with what failed. */
int gpu_try(cudaError_t e, const char *what, struct err *err);

/* Carves an arena front to back. With base NULL it only counts, so that the same calls first size
 * the arena and then place what it holds. Every piece is aligned to 256 bytes and followed by at
 * least GPU_GUARD_BYTES that belong to nobody and stay 0xFF. */
enum { GPU_GUARD_BYTES = 256, GPU_PIECES_MAX = 4096 };

struct gpu_arena {
    char *base;
    size_t used_bytes;
    int n_pieces;
    size_t guard_at[GPU_PIECES_MAX], guard_bytes[GPU_PIECES_MAX];
};

/* The next piece; NULL while only counting. */
void *gpu_take(struct gpu_arena *a, size_t bytes);

/* Whether all guards are as they were; waits for the device. Fails naming the first piece, counted
 * from 0, behind which something was written. */
int gpu_check_guards(const struct gpu_arena *a, struct err *err);

#endif
