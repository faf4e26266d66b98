/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/trace.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/order.h"
#include "traces/reader.h"
#include "traces/wtt.h"

enum { SHARED_TOKENS_MAX = 1 << 24 };

const char *const trace_skip_names[SKIP_COUNT] = {
    [SKIP_NO_OUTPUT] = "zero output tokens",
    [SKIP_NO_INPUT] = "zero input tokens",
    [SKIP_FAILED] = "a failure",
    [SKIP_NO_LENGTH] = "no token counts",
    [SKIP_OTHER] = "no request to a model",
    [SKIP_DUPLICATE] = "a session seen before",
};

const char *const trace_note_names[NOTE_COUNT] = {
    [NOTE_SHRUNK] = "prompts shorter than the turn before",
    [NOTE_NO_PARENT] = "turns whose parent is not in the file, at their own time",
    [NOTE_NO_TIME] = "waits of unknown length, taken as 0",
    [NOTE_WENT_BACK] = "turns earlier than the one before, taken as at once after it",
    [NOTE_CACHED_CUT] = "prefixes longer than their prompt, cut",
    [NOTE_DRAWN] = "arrivals or lengths drawn by lot",
    [NOTE_DELAY] = "delays that may be meant before or after their turn, taken as before (--delay)",
    [NOTE_NO_TABLE] = "prompts without hashes, for want of the tables beside the trace",
    [NOTE_NO_START] = "sessions of unknown start, taken as 0",
    [NOTE_NEW_PREFIX] = "prefixes longer than what the file has before them, the rest taken as new",
};

int64_t trace_count_skips(const struct trace *t)
{
    int64_t n = 0;
    for (int i = 0; i < SKIP_COUNT; i++)
        n += t->skipped[i];
    return n;
}

char *trace_describe_skips(const struct trace *t)
{
    char *text = xasprintf("%lld", (long long)trace_count_skips(t));
    const char *separator = " (";
    for (int i = 0; i < SKIP_COUNT; i++) {
        if (t->skipped[i] == 0)
            continue;
        char *longer = xasprintf("%s%s%lld with %s", text, separator, (long long)t->skipped[i],
                                 trace_skip_names[i]);
        free(text);
        text = longer;
        separator = ", ";
    }
    char *closed = xasprintf("%s%s", text, separator[0] == ',' ? ")" : "");
    free(text);
    return closed;
}

static int check_tokens(const struct trace *t, const char *what, int64_t tokens, long line,
                        struct err *err)
{
    if (tokens < 0)
        return err_at(err, t->path, line, "%s tokens are negative (%lld)", what, (long long)tokens);
    if (tokens > TRACE_TOKENS_MAX)
        return err_at(err, t->path, line, "%lld %s tokens; at most 2^40 make sense",
                      (long long)tokens, what);
    return 0;
}

/* Move first_ps and last_ps to take in one more arrival. */
static int extend_span(struct trace *t, __int128 at_ps, long line, struct err *err)
{
    __int128 first = at_ps < t->first_ps ? at_ps : t->first_ps;
    __int128 last = at_ps > t->last_ps ? at_ps : t->last_ps;
    if (last - first >= TRACE_SPAN_MAX_PS)
        return err_at(err, t->path, line,
                      "arrives 100 days or more from another request; is the time in the unit that "
                      "the format asks for?");
    t->first_ps = (int64_t)first;
    t->last_ps = (int64_t)last;
    return 0;
}

/* A line of a few bytes may stand for any number of blocks. */
static int check_blocks(const struct trace *t, int64_t input_tokens, long line, struct err *err)
{
    if (t->block_tokens == 0 ||
        ceil_div_i64(input_tokens, t->block_tokens) <= TRACE_BLOCKS_MAX - (int64_t)t->n_hashes)
        return 0;
    return err_at(err, t->path, line,
                  "the prompts up to here have more than %lld blocks of %d tokens; split the file",
                  TRACE_BLOCKS_MAX, t->block_tokens);
}

/* 1: they are fit, 0: skipped and counted. */
static int admit(struct trace *t, int64_t input_tokens, int64_t output_tokens, long line,
                 struct err *err)
{
    if (check_tokens(t, "input", input_tokens, line, err) < 0 ||
        check_tokens(t, "output", output_tokens, line, err) < 0 ||
        check_blocks(t, input_tokens, line, err) < 0)
        return -1;
    if (input_tokens > 0 && output_tokens > 0)
        return 1;
    t->skipped[output_tokens == 0 ? SKIP_NO_OUTPUT : SKIP_NO_INPUT]++;
    return 0;
}

static struct trace_request *append(struct trace *t, int64_t input_tokens, int64_t output_tokens,
                                    long line)
{
    assert(t->n < UINT32_MAX);
    t->request = xgrow(t->request, &t->cap, t->n + 1, sizeof *t->request);
    struct trace_request *r = &t->request[t->n++];
    *r = (struct trace_request){
        .input_tokens = input_tokens,
        .output_tokens = output_tokens,
        .line = line,
        .hash_at = t->n_hashes,
        .after_at = t->n_after,
        .session = TRACE_NO_SESSION,
    };
    return r;
}

int trace_add(struct trace *t, __int128 arrival_ps, int64_t input_tokens, int64_t output_tokens,
              long line, struct err *err)
{
    if (arrival_ps < 0)
        return err_at(err, t->path, line, "the arrival is negative");
    int rc = admit(t, input_tokens, output_tokens, line, err);
    if (rc <= 0)
        return rc;
    if (!t->has_origin)
        t->origin_ps = arrival_ps;
    t->has_origin = true;
    if (extend_span(t, arrival_ps - t->origin_ps, line, err) < 0)
        return -1;
    append(t, input_tokens, output_tokens, line)->arrival_ps = (int64_t)(arrival_ps - t->origin_ps);
    return 1;
}

int trace_add_waiting(struct trace *t, __int128 delay_ps, int64_t input_tokens,
                      int64_t output_tokens, long line, struct err *err)
{
    if (delay_ps < 0)
        return err_at(err, t->path, line, "the wait is negative");
    if (delay_ps >= TRACE_SPAN_MAX_PS)
        return err_at(err, t->path, line,
                      "waits 100 days or more; is the time in the unit that the format asks for?");
    int rc = admit(t, input_tokens, output_tokens, line, err);
    if (rc > 0)
        append(t, input_tokens, output_tokens, line)->delay_ps = (int64_t)delay_ps;
    return rc;
}

void trace_wait_later(struct trace *t, size_t waiting, size_t request)
{
    assert(waiting < t->n && request < UINT32_MAX && request != waiting);
    struct trace_request *r = &t->request[waiting];
    if (r->n_after == 0)
        r->after_at = t->n_after;
    assert(r->after_at + r->n_after == t->n_after);
    t->after = xgrow(t->after, &t->cap_after, t->n_after + 1, sizeof *t->after);
    t->after[t->n_after++] = (uint32_t)request;
    r->n_after++;
}

void trace_wait_for(struct trace *t, size_t request)
{
    assert(t->n > 0);
    trace_wait_later(t, t->n - 1, request);
}

void trace_wait_like(struct trace *t, size_t request)
{
    assert(t->n > 0 && request < t->n - 1 && t->request[t->n - 1].n_after == 0);
    t->request[t->n - 1].after_at = t->request[request].after_at;
    t->request[t->n - 1].n_after = t->request[request].n_after;
}

bool trace_waits_alike(const struct trace *t, size_t request)
{
    const struct trace_request *r = &t->request[request];
    return request > 0 && r->n_after > 0 && r->after_at == r[-1].after_at &&
           r->n_after == r[-1].n_after;
}

void trace_rename_waits(struct trace *t, const uint32_t *new_at)
{
    bool *renamed = xcalloc(t->n_after, sizeof *renamed);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->n_after == 0 || renamed[r->after_at])
            continue;
        renamed[r->after_at] = true;
        for (uint32_t k = 0; k < r->n_after; k++)
            t->after[r->after_at + k] = new_at[t->after[r->after_at + k]];
    }
    free(renamed);
}

void trace_set_session(struct trace *t, const char *name)
{
    assert(t->n > 0);
    t->request[t->n - 1].session = names_number(&t->session, name);
}

void trace_add_hash(struct trace *t, uint64_t hash)
{
    assert(t->n > 0);
    t->hash = xgrow(t->hash, &t->cap_hashes, t->n_hashes + 1, sizeof *t->hash);
    t->hash[t->n_hashes++] = hash;
    t->request[t->n - 1].n_hashes++;
}

/* Blocks that the last request, which has none yet, shares with `before`: hashes *from on. */
static int64_t shared_blocks(const struct trace *t, size_t before, int64_t shared_tokens,
                             size_t *from)
{
    assert(t->n > 0 && t->block_tokens > 0 && t->request[t->n - 1].n_hashes == 0);
    *from = 0;
    if (shared_tokens <= 0)
        return 0;
    assert(before < t->n - 1);
    *from = t->request[before].hash_at;
    return min_i64(min_i64(shared_tokens, t->request[t->n - 1].input_tokens) / t->block_tokens,
                   t->request[before].n_hashes);
}

/* The last request's blocks from the one that it lacks first: shared ones, then its own. */
static void add_blocks(struct trace *t, int64_t blocks, int64_t shared, size_t from)
{
    for (int64_t i = t->request[t->n - 1].n_hashes; i < blocks; i++)
        trace_add_hash(t, i < shared ? t->hash[from + (size_t)i] : t->n_own_blocks++);
}

void trace_share_prompt(struct trace *t, size_t before, int64_t shared_tokens)
{
    size_t from;
    int64_t shared = shared_blocks(t, before, shared_tokens, &from);
    int64_t tokens = t->request[t->n - 1].input_tokens;
    if (tokens <= SHARED_TOKENS_MAX)
        add_blocks(t, ceil_div_i64(tokens, t->block_tokens), shared, from);
}

void trace_grow_prompt(struct trace *t, size_t before, int64_t shared_tokens)
{
    size_t from;
    int64_t shared = shared_blocks(t, before, shared_tokens, &from);
    struct trace_request *r = &t->request[t->n - 1];
    if (shared > 0 && from + (size_t)shared == t->n_hashes) {
        r->hash_at = from;
        r->n_hashes = (uint32_t)shared;
    }
    add_blocks(t, r->input_tokens / t->block_tokens, shared, from);
}

static int64_t count_out_of_order(const struct trace *t, size_t first)
{
    int64_t n = 0, before_ps = INT64_MIN;
    for (size_t i = first; i < t->n; i++) {
        if (t->request[i].n_after > 0)
            continue;
        n += t->request[i].arrival_ps < before_ps;
        before_ps = t->request[i].arrival_ps;
    }
    return n;
}

static int read_file(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    const struct trace_reader *reader = reader_find(l, err);
    if (reader == NULL)
        return -1;
    if (t->format != NULL && t->format != reader->name)
        return err_set(err, "%s: is of format %s, others of the folder are of %s", l->path,
                       reader->name, t->format);
    t->format = reader->name;
    size_t first = t->n;
    if (reader->read(t, l, reading, err) < 0)
        return -1;
    t->out_of_order += count_out_of_order(t, first);
    return 0;
}

static int load_file(struct trace *t, const char *path, const struct trace_reading *reading,
                     struct err *err)
{
    struct lines l;
    if (lines_open(&l, path, err) < 0)
        return -1;
    free(t->path);
    t->path = xstrdup(l.path); /* for messages, until all files are read */
    int rc = read_file(t, &l, reading, err);
    lines_close(&l);
    return rc;
}

static int is_visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Every file of it, in the order of names. */
static int load_folder(struct trace *t, const char *path, const struct trace_reading *reading,
                       struct err *err)
{
    struct dirent **entry;
    int rc = 0, n = scandir(path, &entry, is_visible, alphasort);
    if (n < 0)
        return err_set(err, "%s: cannot list the folder: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *file = xasprintf("%s/%s", path, entry[i]->d_name);
        rc = rc == 0 ? load_file(t, file, reading, err) : rc;
        free(file);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int fail_empty(const struct trace *t, const char *path, struct err *err)
{
    char *skipped = trace_describe_skips(t);
    bool any = strcmp(skipped, "0") != 0;
    int rc = err_at(err, path, 0, "holds no request with input and output tokens%s%s",
                    any ? "; rows skipped: " : "", any ? skipped : "");
    free(skipped);
    return rc;
}

int trace_load(struct trace *t, const char *path, const struct trace_reading *reading,
               struct err *err)
{
    struct trace loaded = {0};
    if (wtt_is(path))
        return wtt_load(t, path, err);
    bool folder = is_folder(path);
    int rc =
        folder ? load_folder(&loaded, path, reading, err) : load_file(&loaded, path, reading, err);
    if (rc == 0 && loaded.n == 0)
        rc = fail_empty(&loaded, folder || loaded.path == NULL ? path : loaded.path, err);
    if (rc == 0)
        rc = order_requests(&loaded, err);
    if (rc == 0 && folder) {
        free(loaded.path);
        loaded.path = xstrdup(path);
    }
    if (rc < 0)
        trace_release(&loaded);
    else
        *t = loaded;
    return rc;
}

int trace_finish(struct trace *t, struct err *err)
{
    assert(t->n > 0);
    return order_requests(t, err);
}

void trace_release(struct trace *t)
{
    free(t->path);
    free(t->own_format);
    free(t->request);
    free(t->hash);
    free(t->after);
    names_release(&t->session);
    names_release(&t->contents);
    *t = (struct trace){0};
}
