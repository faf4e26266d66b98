/* SPDX-License-Identifier: Apache-2.0
 *
 * LLMServingSim workloads (casys-kaist/LLMServingSim): JSON Lines, where requests and whole
 * sessions may be mixed. A session's next request comes when the one before has ended and its tool
 * has run. Prompts share a prefix where their token ids are equal.
 */
#include <string.h>

#include "sim/base/ints.h"
#include "traces/chain.h"
#include "traces/hashes.h"
#include "traces/reader.h"

enum { BLOCK_TOKENS = 16 };

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && strstr(h->line, "\"arrival_time_ns\"") &&
           strstr(h->line, "\"input_toks\"");
}

static int check_ids(const struct row *r, int64_t input_tokens, json_t **ids, struct err *err)
{
    json_t *array = NULL, *id;
    size_t i;
    if (row_array(r, "input_tok_ids", false, &array, err) < 0)
        return -1;
    if (array != NULL && (int64_t)json_array_size(array) != input_tokens)
        return row_fail(r, err, "has %zu input_tok_ids, but its input_toks are %lld",
                        json_array_size(array), (long long)input_tokens);
    json_array_foreach (array, i, id)
        if (!json_is_integer(id))
            return row_fail(r, err, "\"input_tok_ids\"[%zu]: expected a whole number", i);
    *ids = array;
    return 0;
}

/* A block that the prompt's end cuts short differs from a whole one that begins like it. */
static void add_hashes(struct trace *t, json_t *ids)
{
    uint64_t hash = 0;
    size_t n = json_array_size(ids);
    for (size_t i = 0; i < n; i++) {
        hash = hash_after(hash, (uint64_t)json_integer_value(json_array_get(ids, i)));
        if (i % BLOCK_TOKENS == BLOCK_TOKENS - 1)
            trace_add_hash(t, hash);
        else if (i == n - 1)
            trace_add_hash(t, hash_after(hash, n));
    }
    if (n > 0)
        t->block_tokens = BLOCK_TOKENS;
}

/* The next of a chain; its tool's time is for the one behind it. */
static int add_request(struct trace *t, const struct row *r, struct chain *c, __int128 *tool_ps,
                       struct err *err)
{
    struct turn turn = {.wait_ps = *tool_ps, .line = row_line(r)};
    json_t *ids = NULL;
    *tool_ps = 0;
    if (row_tokens(r, "input_toks", true, &turn.input_tokens, err) < 0 ||
        row_tokens(r, "output_toks", true, &turn.output_tokens, err) < 0 ||
        row_time(r, "tool_duration_ns", ROW_NS, false, tool_ps, err) < 0 ||
        check_ids(r, turn.input_tokens, &ids, err) < 0)
        return -1;
    int added = chain_add(t, c, &turn, err);
    if (added > 0)
        add_hashes(t, ids);
    return added;
}

static int add_session(struct trace *t, const struct row *r, json_t *requests, struct chain *c,
                       struct err *err)
{
    char name[ROW_LABEL_BYTES];
    __int128 tool_ps = 0;
    struct row in;
    if (row_label(r, "session_id", true, name, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(requests); i++) {
        if (row_inside(&in, r, "sub_requests", i, err) < 0)
            return -1;
        int added = add_request(t, &in, c, &tool_ps, err);
        if (added < 0)
            return -1;
        if (added > 0)
            trace_set_session(t, name);
    }
    return 0;
}

static int add_row(void *trace, const struct row *r, struct err *err)
{
    struct trace *t = trace;
    struct chain c = {0};
    json_t *requests = NULL;
    __int128 tool_ps = 0;
    if (row_time(r, "arrival_time_ns", ROW_NS, true, &c.start_ps, err) < 0 ||
        row_array(r, "sub_requests", false, &requests, err) < 0)
        return -1;
    if (requests != NULL)
        return add_session(t, r, requests, &c, err);
    return add_request(t, r, &c, &tool_ps, err) < 0 ? -1 : 0;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    return row_each(l, add_row, t, err);
}

const struct trace_reader reader_llmservingsim = {
    .name = "llmservingsim",
    .what = "JSON Lines: arrival_time_ns, input_toks, output_toks, or sessions of sub_requests",
    .detect = detect,
    .read = read_rows,
};
