/* SPDX-License-Identifier: Apache-2.0
 *
 * PCG64 (XSL-RR 128/64), seeded through numpy's SeedSequence, so that rng_init(&r, s) draws what
 * numpy.random.Generator(PCG64(s)) draws. A named stream is an independent generator that depends
 * on seed and name only: adding a consumer never moves another one's numbers.
 */
#ifndef SIM_BASE_RNG_H
#define SIM_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    unsigned __int128 state, inc;
    bool has_half; /* numpy buffers the high half of a 64-bit draw for 32-bit users */
    uint32_t half;
};

void rng_init(struct rng *r, uint64_t seed);
/* SeedSequence(entropy=seed, spawn_key=(fnv1a32(name),)). */
void rng_stream(struct rng *r, uint64_t seed, const char *name);
uint64_t rng_u64(struct rng *r);
uint32_t rng_u32(struct rng *r);
/* Uniform in [0, 1): (u64 >> 11) * 2^-53. */
double rng_f64(struct rng *r);
/* Uniform integer in [lo, hi], numpy's Generator.integers(lo, hi, endpoint=True) for ranges below
 * 2^32 (Lemire on 32-bit halves) and above (Lemire on 64 bits). */
int64_t rng_range(struct rng *r, int64_t lo, int64_t hi);

#endif
