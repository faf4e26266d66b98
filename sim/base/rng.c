/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator is M. O'Neill's PCG XSL-RR 128/64 (HMC-CS-2014-0905), the seeding her seed_seq_fe
 * with the constants of numpy, the integers D. Lemire's multiply-and-reject (TOMACS 29(1), 2019).
 */
#include "sim/base/rng.h"

#include <assert.h>
#include <stddef.h>

typedef unsigned __int128 u128;

enum { POOL_WORDS = 4, ENTROPY_MAX = POOL_WORDS + 1 };

/* Each use of a hash constant changes it, so no two words are hashed alike. */
static uint32_t hash_word(uint32_t value, uint32_t *constant, uint32_t multiplier)
{
    value ^= *constant;
    *constant *= multiplier;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t mix_words(uint32_t a, uint32_t b)
{
    uint32_t mixed = 0xca01f9ddu * a - 0x4973f715u * b;
    return mixed ^ mixed >> 16;
}

static void fill_pool(uint32_t pool[POOL_WORDS], const uint32_t *entropy, int n)
{
    uint32_t constant = 0x43b0d7e5u;
    const uint32_t multiplier = 0x931e8875u;
    for (int i = 0; i < POOL_WORDS; i++)
        pool[i] = hash_word(i < n ? entropy[i] : 0, &constant, multiplier);
    for (int from = 0; from < POOL_WORDS; from++)
        for (int to = 0; to < POOL_WORDS; to++)
            if (from != to)
                pool[to] = mix_words(pool[to], hash_word(pool[from], &constant, multiplier));
    for (int from = POOL_WORDS; from < n; from++)
        for (int to = 0; to < POOL_WORDS; to++)
            pool[to] = mix_words(pool[to], hash_word(entropy[from], &constant, multiplier));
}

static void step(struct rng *r)
{
    static const u128 multiplier = (u128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u;
    r->state = r->state * multiplier + r->inc;
}

static void seed_from(struct rng *r, const uint32_t *entropy, int n)
{
    uint32_t pool[POOL_WORDS], constant = 0x8b51f9ddu;
    uint64_t word[4];
    fill_pool(pool, entropy, n);
    for (int i = 0; i < 4; i++) {
        word[i] = hash_word(pool[2 * i % POOL_WORDS], &constant, 0x58f38dedu);
        word[i] |= (uint64_t)hash_word(pool[(2 * i + 1) % POOL_WORDS], &constant, 0x58f38dedu)
                   << 32;
    }
    *r = (struct rng){.inc = ((u128)word[2] << 64 | word[3]) << 1 | 1};
    step(r);
    r->state += (u128)word[0] << 64 | word[1];
    step(r);
}

void rng_init(struct rng *r, uint64_t seed)
{
    uint32_t entropy[] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    seed_from(r, entropy, 2);
}

static uint32_t fnv1a32(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

void rng_stream(struct rng *r, uint64_t seed, const char *name)
{
    /* the spawn key follows a full pool of entropy */
    uint32_t entropy[ENTROPY_MAX] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    entropy[POOL_WORDS] = fnv1a32(name);
    seed_from(r, entropy, ENTROPY_MAX);
}

uint64_t rng_u64(struct rng *r)
{
    step(r);
    uint64_t folded = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
    unsigned turn = (unsigned)(r->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

uint32_t rng_u32(struct rng *r)
{
    if (r->has_half) {
        r->has_half = false;
        return r->half;
    }
    uint64_t both = rng_u64(r);
    r->has_half = true;
    r->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

double rng_f64(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* Uniform in [0, last]; last < 2^32 - 1. */
static uint32_t bounded32(struct rng *r, uint32_t last)
{
    uint32_t count = last + 1;
    uint64_t product = (uint64_t)rng_u32(r) * count;
    if ((uint32_t)product < count) {
        uint32_t biased = (UINT32_MAX - last) % count;
        while ((uint32_t)product < biased)
            product = (uint64_t)rng_u32(r) * count;
    }
    return (uint32_t)(product >> 32);
}

/* Uniform in [0, last]; last < 2^64 - 1. */
static uint64_t bounded64(struct rng *r, uint64_t last)
{
    uint64_t count = last + 1;
    u128 product = (u128)rng_u64(r) * count;
    if ((uint64_t)product < count) {
        uint64_t biased = (UINT64_MAX - last) % count;
        while ((uint64_t)product < biased)
            product = (u128)rng_u64(r) * count;
    }
    return (uint64_t)(product >> 64);
}

int64_t rng_range(struct rng *r, int64_t lo, int64_t hi)
{
    assert(lo <= hi);
    uint64_t last = (uint64_t)hi - (uint64_t)lo, drawn;
    if (last == 0)
        drawn = 0;
    else if (last < UINT32_MAX)
        drawn = bounded32(r, (uint32_t)last);
    else if (last == UINT32_MAX)
        drawn = rng_u32(r);
    else
        drawn = last == UINT64_MAX ? rng_u64(r) : bounded64(r, last);
    return (int64_t)((uint64_t)lo + drawn);
}
