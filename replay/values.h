/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up numbers that every rank and the reference agree on without exchanging them: each value is
 * a hash of what it is. Random data, never zeros: mean 0, variance 1/3. All are exact in BF16, so
 * that a GPU holds the very same numbers.
 */
#ifndef REPLAY_VALUES_H
#define REPLAY_VALUES_H

#include <stdint.h>

enum value_tag {
    VALUE_HIDDEN,  /* (request, position, 0, column): a row before layer 0 */
    VALUE_HISTORY, /* (request, position, layer, column): KV of context that no step computes */
    VALUE_WEIGHT,  /* (matrix, row, layer, column) */
};

/* Uniform in [-1, 1], rounded to BF16; a function of the arguments alone. */
double value_at(uint64_t seed, enum value_tag tag, int64_t a, int64_t b, int64_t c, int64_t d);

/* The nearest BF16 number, ties to even; x is zero or at least 2^-126 in size, and finite. */
double value_bf16(double x);

#endif
