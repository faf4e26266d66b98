/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes of prompt blocks: given one per block by the file, or made here from what a prompt is
 * made of. Either way a hash stands for its block and the whole prompt before it.
 */
#ifndef TRACES_HASHES_H
#define TRACES_HASHES_H

#include "traces/row.h"
#include "traces/trace.h"

enum { BLOCK_SIZES_MAX = 2 };

/* Tokens per block: what every row so far fits, best first. */
struct block_sizes {
    int n;
    int64_t tokens[BLOCK_SIZES_MAX];
};

/* The sizes to begin with: what the trace has already, what the user says, or else `usual`. */
struct block_sizes block_sizes_begin(const struct trace *t, const struct trace_reading *reading,
                                     struct block_sizes usual);

/* Check the row's "hash_ids" against its prompt: one per started block, or one per whole block, of
 * a size that is left, and drop the sizes that do not fit. Nothing to do where there are none. */
int hashes_check(const struct row *r, struct block_sizes *sizes, int64_t input_tokens,
                 struct err *err);
/* Those of a row that was checked, to the last request added. */
void hashes_add(struct trace *t, const struct row *r, const struct block_sizes *sizes);

/* Prompts whose hashes are made rather than given are limited, since a short line could ask for any
 * number of them. */
int hashes_limit(const struct row *r, int64_t input_tokens, struct err *err);

/* A hash that depends on `before` and `x`; 0 to begin with. */
uint64_t hash_after(uint64_t before, uint64_t x);

#endif
