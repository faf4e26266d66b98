/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/trace.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "traces/reader.h"

const char *const trace_skip_names[SKIP_COUNT] = {
    [SKIP_NO_OUTPUT] = "zero output tokens",
    [SKIP_NO_INPUT] = "zero input tokens",
};

const struct trace_reader *const trace_readers[] = {
    &reader_mooncake, &reader_azure, &reader_vidur, &reader_plain, NULL,
};

int reader_next(struct lines *l, struct err *err)
{
    int got;
    while ((got = lines_next(l, err)) > 0 && l->line[strspn(l->line, " \t\r")] == '\0')
        continue;
    return got;
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

int trace_add(struct trace *t, __int128 arrival_ps, int64_t input_tokens, int64_t output_tokens,
              long line, struct err *err)
{
    if (arrival_ps < 0)
        return err_at(err, t->path, line, "the arrival is negative");
    if (check_tokens(t, "input", input_tokens, line, err) < 0 ||
        check_tokens(t, "output", output_tokens, line, err) < 0)
        return -1;
    if (input_tokens == 0 || output_tokens == 0) {
        t->skipped[output_tokens == 0 ? SKIP_NO_OUTPUT : SKIP_NO_INPUT]++;
        return 0;
    }
    if (t->n == 0)
        t->origin_ps = arrival_ps;
    if (extend_span(t, arrival_ps - t->origin_ps, line, err) < 0)
        return -1;
    t->request = xgrow(t->request, &t->cap, t->n + 1, sizeof *t->request);
    t->request[t->n++] = (struct trace_request){
        .arrival_ps = (int64_t)(arrival_ps - t->origin_ps),
        .input_tokens = input_tokens,
        .output_tokens = output_tokens,
        .line = line,
        .hash_at = t->n_hashes,
    };
    return 1;
}

void trace_add_hash(struct trace *t, uint64_t hash)
{
    assert(t->n > 0);
    t->hash = xgrow(t->hash, &t->cap_hashes, t->n_hashes + 1, sizeof *t->hash);
    t->hash[t->n_hashes++] = hash;
    t->request[t->n - 1].n_hashes++;
}

static int by_arrival(const void *a, const void *b)
{
    const struct trace_request *x = a, *y = b;
    if (x->arrival_ps != y->arrival_ps)
        return x->arrival_ps < y->arrival_ps ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void sort(struct trace *t)
{
    qsort(t->request, t->n, sizeof *t->request, by_arrival);
}

/* Let sorted requests count from the first of them. */
static void rebase(struct trace *t)
{
    int64_t first_ps = t->request[0].arrival_ps;
    for (size_t i = 0; i < t->n; i++)
        t->request[i].arrival_ps -= first_ps;
    t->origin_ps += first_ps;
    t->first_ps = 0;
    t->last_ps = t->request[t->n - 1].arrival_ps;
}

static int64_t count_out_of_order(const struct trace *t)
{
    int64_t n = 0;
    for (size_t i = 1; i < t->n; i++)
        n += t->request[i].arrival_ps < t->request[i - 1].arrival_ps;
    return n;
}

static int fail_unknown(const struct lines *l, struct err *err)
{
    char known[512];
    size_t used = 0;
    for (const struct trace_reader *const *r = trace_readers; *r != NULL; r++)
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%s)",
                                     used ? ", " : "", (*r)->name, (*r)->what);
    return err_at(err, l->path, l->number, "no trace format begins like this; known are %s", known);
}

/* The reader that knows the first line, which is given back to it. */
static const struct trace_reader *find_reader(struct lines *l, struct err *err)
{
    int got = reader_next(l, err);
    if (got == 0)
        err_at(err, l->path, 0, "is empty, expected a trace");
    if (got <= 0)
        return NULL;
    for (const struct trace_reader *const *r = trace_readers; *r != NULL; r++) {
        if ((*r)->detect(l->line)) {
            lines_unread(l);
            return *r;
        }
    }
    fail_unknown(l, err);
    return NULL;
}

static int read_all(struct trace *t, struct lines *l, struct err *err)
{
    const struct trace_reader *reader = find_reader(l, err);
    if (reader == NULL || reader->read(t, l, err) < 0)
        return -1;
    t->format = reader->name;
    if (t->n == 0)
        return err_at(err, t->path, 0, "holds no request with input and output tokens");
    t->out_of_order = count_out_of_order(t);
    if (t->out_of_order > 0)
        sort(t);
    rebase(t);
    return 0;
}

int trace_load(struct trace *t, const char *path, struct err *err)
{
    struct lines l;
    if (lines_open(&l, path, err) < 0)
        return -1;
    struct trace loaded = {.path = xstrdup(l.path)};
    int rc = read_all(&loaded, &l, err);
    lines_close(&l);
    if (rc < 0)
        trace_release(&loaded);
    else
        *t = loaded;
    return rc;
}

static void keep(struct trace *t, const struct trace_select *s, uint64_t seed)
{
    struct rng r;
    size_t n = 0;
    rng_stream(&r, seed, "sample");
    for (size_t i = 0; i < t->n && (s->limit == 0 || n < (size_t)s->limit); i++) {
        int64_t at_ps = t->request[i].arrival_ps;
        if (at_ps < s->from_ps || (s->to_ps > 0 && at_ps >= s->to_ps))
            continue;
        if (rng_f64(&r) < s->sample_frac)
            t->request[n++] = t->request[i];
    }
    t->n = n;
}

static int warp(struct trace *t, double rate, struct err *err)
{
    if ((double)t->last_ps / rate >= (double)TRACE_SPAN_MAX_PS)
        return err_set(err, "%s: at %g times its rate the trace is longer than 100 days", t->path,
                       rate);
    for (size_t i = 0; i < t->n; i++)
        t->request[i].arrival_ps = llround((double)t->request[i].arrival_ps / rate);
    return 0;
}

static int spread(struct trace *t, int64_t spread_ps, uint64_t seed, struct err *err)
{
    struct rng r;
    if (spread_ps > TRACE_SPAN_MAX_PS - t->last_ps)
        return err_set(err, "%s: so spread, the trace is longer than 100 days", t->path);
    rng_stream(&r, seed, "spread");
    for (size_t i = 0, end; i < t->n; i = end) {
        int64_t at_ps = t->request[i].arrival_ps;
        for (end = i + 1; end < t->n && t->request[end].arrival_ps == at_ps;)
            end++;
        for (size_t k = i; k < end && end - i > 1; k++)
            t->request[k].arrival_ps += rng_range(&r, 0, spread_ps - 1);
    }
    sort(t);
    return 0;
}

int trace_select(struct trace *t, const struct trace_select *s, uint64_t seed, struct err *err)
{
    keep(t, s, seed);
    if (t->n == 0)
        return err_set(err, "%s: the selection (--from, --to, --sample) keeps no request", t->path);
    rebase(t);
    if (s->rate != 1 && warp(t, s->rate, err) < 0)
        return -1;
    if (s->spread_ps > 0 && spread(t, s->spread_ps, seed, err) < 0)
        return -1;
    rebase(t);
    return 0;
}

void trace_release(struct trace *t)
{
    free(t->path);
    free(t->request);
    free(t->hash);
    *t = (struct trace){0};
}
