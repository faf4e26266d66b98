/* SPDX-License-Identifier: Apache-2.0
 *
 * Histogram of non-negative int64 values in fixed memory (log-linear buckets, 256 per octave).
 * Values below 512 are exact; a quantile is off by at most 1/512 of its value; mean, minimum,
 * maximum and count are exact.
 */
#ifndef SIM_BASE_HIST_H
#define SIM_BASE_HIST_H

#include <stdint.h>

struct hist {
    uint64_t n;
    int64_t min, max;
    __int128 sum;
    uint64_t *bucket; /* 256 an octave, grown by octave on demand: at most 56 octaves */
    int octaves;
};

void hist_init(struct hist *h);
void hist_release(struct hist *h);
void hist_copy(struct hist *to, const struct hist *from);
/* Record a value >= 0 that many times. */
void hist_add(struct hist *h, int64_t value, uint64_t times);
/* The smallest recorded value v such that at least ceil(q * n) values are <= v, to the stated
 * error; 0 when empty. q in [0, 1]; q = 1 is the exact maximum. */
int64_t hist_quantile(const struct hist *h, double q);
/* 0 when empty. */
double hist_mean(const struct hist *h);

#endif
