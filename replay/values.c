/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/values.h"

#include <string.h>

/* One step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014;
 * constants: D. Stafford's variant 13): a bijection in x. */
static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

double value_at(uint64_t seed, enum value_tag tag, int64_t a, int64_t b, int64_t c, int64_t d)
{
    uint64_t h = mix(mix(seed, tag), (uint64_t)a);
    h = mix(mix(mix(h, (uint64_t)b), (uint64_t)c), (uint64_t)d);
    return value_bf16((double)(h >> 11) * 0x1p-52 - 1.0);
}

double value_bf16(double x)
{
    enum { DROPPED = 52 - 7 }; /* mantissa bits of a double beyond those of BF16 */
    const uint64_t ulp = (uint64_t)1 << DROPPED;
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    bits += ulp / 2 - 1 + (bits >> DROPPED & 1); /* a carry into the exponent is the right one */
    bits &= ~(ulp - 1);
    memcpy(&x, &bits, sizeof(x));
    return x;
}
