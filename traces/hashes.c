/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/hashes.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/ints.h"

static const char ids[] = "hash_ids";

struct block_sizes block_sizes_begin(const struct trace *t, const struct trace_reading *reading,
                                     struct block_sizes usual)
{
    int64_t known = t->block_tokens > 0 ? t->block_tokens : reading->block_tokens;
    return known > 0 ? (struct block_sizes){1, {known}} : usual;
}

static int fail_count(const struct row *r, const struct block_sizes *sizes, size_t n_ids,
                      int64_t input_tokens, struct err *err)
{
    char made[96] = "";
    for (int i = 0; i < sizes->n; i++)
        snprintf(made + strlen(made), sizeof made - strlen(made),
                 i == 0 ? "%lld blocks of %lld tokens" : ", %lld of %lld",
                 (long long)ceil_div_i64(input_tokens, sizes->tokens[i]),
                 (long long)sizes->tokens[i]);
    return row_fail(r, err, "has %zu %s, but its input_length of %lld makes %s", n_ids, ids,
                    (long long)input_tokens, made);
}

static bool fits(int64_t n_ids, int64_t input_tokens, int64_t block_tokens)
{
    return n_ids == input_tokens / block_tokens ||
           n_ids == ceil_div_i64(input_tokens, block_tokens);
}

int hashes_check(const struct row *r, struct block_sizes *sizes, int64_t input_tokens,
                 struct err *err)
{
    struct block_sizes left = {0};
    json_t *hashes = NULL, *value;
    uint64_t hash;
    size_t i;
    if (row_array(r, ids, false, &hashes, err) < 0)
        return -1;
    if (hashes == NULL)
        return 0;
    for (int k = 0; k < sizes->n; k++)
        if (fits((int64_t)json_array_size(hashes), input_tokens, sizes->tokens[k]))
            left.tokens[left.n++] = sizes->tokens[k];
    if (left.n == 0)
        return fail_count(r, sizes, json_array_size(hashes), input_tokens, err);
    json_array_foreach (hashes, i, value)
        if (!row_hash_of(value, &hash))
            return row_fail(r, err, "\"%s\"[%zu]: expected a whole number >= 0", ids, i);
    *sizes = left;
    return 0;
}

void hashes_add(struct trace *t, const struct row *r, const struct block_sizes *sizes)
{
    json_t *hashes = json_object_get(r->object, ids), *value;
    uint64_t hash = 0;
    size_t i;
    if (!json_is_array(hashes))
        return;
    t->block_tokens = (int)sizes->tokens[0];
    json_array_foreach (hashes, i, value)
        if (row_hash_of(value, &hash))
            trace_add_hash(t, hash);
}

int hashes_limit(const struct row *r, int64_t input_tokens, struct err *err)
{
    if (input_tokens > 1 << 24)
        return row_fail(r, err, "%lld input tokens; at most 2^24 make sense here",
                        (long long)input_tokens);
    return 0;
}

/* Multiply and fold: the high bits reach the low ones. */
uint64_t hash_after(uint64_t before, uint64_t x)
{
    unsigned __int128 product =
        (unsigned __int128)(before ^ 0x9E3779B97F4A7C15u) * (x ^ 0xD1B54A32D192ED03u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
