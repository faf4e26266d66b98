/* SPDX-License-Identifier: Apache-2.0
 *
 * Mooncake traces (kvcache-ai/Mooncake, FAST25-release/traces): JSON Lines, one request each, with
 * a hash for every block of 512 prompt tokens. A hash stands for its block and all before it.
 */
#include <string.h>

#include "sim/base/units.h"
#include "traces/field.h"
#include "traces/reader.h"

enum { BLOCK_TOKENS = 512, TIME_BYTES = 32 };

struct row {
    const struct lines *lines;
    json_t *object;
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' &&
           (strstr(h->line, "\"input_length\"") || strstr(h->line, "\"hash_ids\""));
}

/* Dialects of the format reuse its keys for turns that wait for one another. */
static int check_open_loop(const struct row *r, struct err *err)
{
    static const char *const keys[] = {"session_id", "delay", "wait_for", "branches"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(r->object, keys[i]) != NULL)
            return err_at(err, r->lines->path, r->lines->number,
                          "\"%s\": closed-loop rows are not read yet; give every request its "
                          "timestamp and drop that key",
                          keys[i]);
    return 0;
}

static int get(const struct row *r, const char *key, json_t **value, struct err *err)
{
    *value = json_object_get(r->object, key);
    if (*value == NULL)
        return err_at(err, r->lines->path, r->lines->number, "no key \"%s\"", key);
    return 0;
}

/* The decimal text of a number, which some dialects write as a string. */
static const char *number_text(const json_t *value, char buf[TIME_BYTES])
{
    if (json_is_integer(value))
        snprintf(buf, TIME_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buf, TIME_BYTES, "%.17g", json_real_value(value));
    else
        return json_string_value(value);
    return buf;
}

static int get_arrival(const struct row *r, __int128 *ps, struct err *err)
{
    static const char key[] = "timestamp";
    enum { PS_DIGITS_OF_MS = 9 };
    char buf[TIME_BYTES];
    json_t *value;
    if (get(r, key, &value, err) < 0)
        return -1;
    const char *text = number_text(value, buf);
    if (text == NULL)
        return err_at(err, r->lines->path, r->lines->number,
                      "\"%s\": expected a number of milliseconds", key);
    const char *fault = field_decimal(text, PS_DIGITS_OF_MS, ps);
    if (fault != NULL)
        return err_at(err, r->lines->path, r->lines->number, "\"%s\": \"%.60s\" %s", key, text,
                      fault);
    return 0;
}

static int get_tokens(const struct row *r, const char *key, int64_t *tokens, struct err *err)
{
    json_t *value;
    if (get(r, key, &value, err) < 0)
        return -1;
    if (!json_is_integer(value))
        return err_at(err, r->lines->path, r->lines->number,
                      "\"%s\": expected a whole number of tokens", key);
    *tokens = json_integer_value(value);
    return 0;
}

/* A block cut short at the prompt's end has a hash in Mooncake's own files and none in some of
 * their kin, so both counts pass. */
static int check_hashes(const struct row *r, json_t *hashes, int64_t input, struct err *err)
{
    const char *path = r->lines->path;
    long line = r->lines->number;
    size_t i;
    json_t *hash;
    if (!json_is_array(hashes))
        return err_at(err, path, line, "\"hash_ids\": expected an array");
    int64_t n = (int64_t)json_array_size(hashes), whole = input / BLOCK_TOKENS;
    int64_t started = whole + (input % BLOCK_TOKENS > 0);
    if (n != whole && n != started)
        return err_at(err, path, line,
                      "has %lld hash_ids, but its input_length of %lld makes %lld blocks of %d "
                      "tokens",
                      (long long)n, (long long)input, (long long)started, BLOCK_TOKENS);
    json_array_foreach (hashes, i, hash)
        if (!json_is_integer(hash) || json_integer_value(hash) < 0)
            return err_at(err, path, line, "\"hash_ids\"[%zu]: expected a whole number >= 0", i);
    return 0;
}

static int add_row(struct trace *t, const struct row *r, struct err *err)
{
    __int128 arrival_ps = 0;
    int64_t input = 0, output = 0;
    json_t *hashes = json_object_get(r->object, "hash_ids"), *hash;
    size_t i;
    if (check_open_loop(r, err) < 0 || get_arrival(r, &arrival_ps, err) < 0 ||
        get_tokens(r, "input_length", &input, err) < 0 ||
        get_tokens(r, "output_length", &output, err) < 0)
        return -1;
    int added = trace_add(t, arrival_ps, input, output, r->lines->number, err);
    if (added < 0 || (hashes != NULL && check_hashes(r, hashes, input, err) < 0))
        return -1;
    if (added == 0 || hashes == NULL)
        return 0;
    t->block_tokens = BLOCK_TOKENS;
    json_array_foreach (hashes, i, hash)
        trace_add_hash(t, (uint64_t)json_integer_value(hash));
    return 0;
}

static int parse_line(struct trace *t, const struct lines *l, struct err *err)
{
    json_error_t fault;
    struct row r = {l, json_loadb(l->line, l->len, JSON_REJECT_DUPLICATES, &fault)};
    int rc;
    if (r.object == NULL)
        rc = err_at(err, l->path, l->number, "column %d: %s", fault.column, fault.text);
    else if (!json_is_object(r.object))
        rc = err_at(err, l->path, l->number, "expected a JSON object");
    else
        rc = add_row(t, &r, err);
    json_decref(r.object);
    return rc;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    int got;
    while ((got = reader_next(l, err)) > 0 && (got = parse_line(t, l, err)) >= 0)
        continue;
    return got;
}

const struct trace_reader reader_mooncake = {
    .name = "mooncake",
    .what = "JSON Lines: timestamp (ms), input_length, output_length, hash_ids",
    .detect = detect,
    .read = read_rows,
};
