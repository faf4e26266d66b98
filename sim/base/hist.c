/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/hist.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

enum { OCTAVE_BITS = 8, OCTAVE = 1 << OCTAVE_BITS };

void hist_init(struct hist *h)
{
    *h = (struct hist){0};
}

void hist_release(struct hist *h)
{
    free(h->bucket);
    hist_init(h);
}

void hist_copy(struct hist *to, const struct hist *from)
{
    *to = *from;
    to->bucket = xmemdup(from->bucket, (size_t)from->octaves * OCTAVE, sizeof *from->bucket);
}

/* How many low bits of the value its bucket ignores: all below the top nine. */
static int ignored_bits(int64_t value)
{
    int top = 63 - __builtin_clzll((uint64_t)value | 1);
    return top > OCTAVE_BITS ? top - OCTAVE_BITS : 0;
}

/* The first octave of buckets, for values below 256, and the second are both one value wide; then
 * the width doubles with each octave. */
static int64_t bucket_of(int64_t value)
{
    int shift = ignored_bits(value);
    return (int64_t)shift * OCTAVE + (value >> shift);
}

static int64_t midpoint(int64_t bucket)
{
    int64_t shift = bucket / OCTAVE - (bucket >= OCTAVE);
    int64_t first = (bucket - shift * OCTAVE) << shift;
    return first + ((1LL << shift) - 1) / 2;
}

void hist_add(struct hist *h, int64_t value, uint64_t times)
{
    assert(value >= 0);
    if (times == 0)
        return;
    int64_t bucket = bucket_of(value);
    int octaves = (int)(bucket / OCTAVE) + 1;
    if (octaves > h->octaves) {
        uint64_t *grown = xcalloc((size_t)octaves * OCTAVE, sizeof *grown);
        if (h->octaves > 0)
            memcpy(grown, h->bucket, (size_t)h->octaves * OCTAVE * sizeof *grown);
        free(h->bucket);
        h->bucket = grown;
        h->octaves = octaves;
    }
    h->bucket[bucket] += times;
    h->min = h->n == 0 || value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->n += times;
    h->sum += (__int128)value * times;
}

int64_t hist_quantile(const struct hist *h, double q)
{
    assert(q >= 0 && q <= 1);
    if (h->n == 0 || q == 1)
        return h->max;
    /* 0.07 * 100 is a little over 7: shave off what rounding can add before ceil() */
    double rank = ceil(q * (double)h->n * (1 - 0x1p-51));
    uint64_t need = rank > 1 ? (uint64_t)rank : 1, seen = 0;
    int64_t bucket = bucket_of(h->min);
    while ((seen += h->bucket[bucket]) < need)
        bucket++;
    int64_t value = midpoint(bucket);
    value = value < h->min ? h->min : value;
    return value > h->max ? h->max : value;
}

double hist_mean(const struct hist *h)
{
    return h->n > 0 ? (double)h->sum / (double)h->n : 0;
}
