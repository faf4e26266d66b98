/* SPDX-License-Identifier: Apache-2.0
 *
 * What `trace check` finds in a trace that reads well: legal, but worth knowing before a replay.
 */
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/trace.h"

#define GAP_LONG_PS (3600 * PS_PER_S)

enum { CONTEXT_LONG_TOKENS = 1 << 20, EVEN_MIN = 10 };

static void check_order(const struct trace *t, FILE *out)
{
    if (t->out_of_order > 0)
        fprintf(out, "%s: rows earlier than the row before: %lld\n", t->path,
                (long long)t->out_of_order);
}

static void check_skips(const struct trace *t, FILE *out)
{
    for (int i = 0; i < SKIP_COUNT; i++)
        if (t->skipped[i] > 0)
            fprintf(out, "%s: rows skipped for %s: %lld\n", t->path, trace_skip_names[i],
                    (long long)t->skipped[i]);
}

static void check_ties(const struct trace *t, FILE *out)
{
    size_t ties = 0;
    for (size_t i = 1; i < t->n; i++)
        ties += t->request[i].arrival_ps == t->request[i - 1].arrival_ps;
    if (ties > 0)
        fprintf(out, "%s: requests that arrive together with the one before: %zu of %zu (%.1f%%)\n",
                t->path, ties, t->n, 100 * (double)ties / (double)t->n);
}

/* All that makes requests alike; the last hash stands for the whole prompt. */
struct likeness {
    struct trace_request request;
    uint64_t last_hash;
};

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_likeness(const void *a, const void *b)
{
    const struct likeness *x = a, *y = b;
    int order = compare_i64(x->request.arrival_ps, y->request.arrival_ps);
    if (order == 0)
        order = compare_i64(x->request.input_tokens, y->request.input_tokens);
    if (order == 0)
        order = compare_i64(x->request.output_tokens, y->request.output_tokens);
    return order ? order : (x->last_hash > y->last_hash) - (x->last_hash < y->last_hash);
}

static void check_duplicates(const struct trace *t, FILE *out)
{
    struct likeness *all = xcalloc(t->n, sizeof *all);
    size_t repeats = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        all[i].request = *r;
        all[i].last_hash = r->n_hashes ? t->hash[r->hash_at + r->n_hashes - 1] : 0;
    }
    qsort(all, t->n, sizeof *all, by_likeness);
    for (size_t i = 1; i < t->n; i++)
        repeats += by_likeness(&all[i], &all[i - 1]) == 0;
    if (repeats > 0)
        fprintf(out, "%s: requests that repeat another's time, lengths and hashes: %zu\n", t->path,
                repeats);
    free(all);
}

static void check_gaps(const struct trace *t, FILE *out)
{
    size_t gaps = 0;
    int64_t longest_ps = 0;
    for (size_t i = 1; i < t->n; i++) {
        int64_t gap_ps = t->request[i].arrival_ps - t->request[i - 1].arrival_ps;
        gaps += gap_ps > GAP_LONG_PS;
        longest_ps = gap_ps > longest_ps ? gap_ps : longest_ps;
    }
    if (gaps > 0)
        fprintf(out, "%s: gaps above 1 h between arrivals: %zu, the longest %.3f h\n", t->path,
                gaps, ps_to_s(longest_ps) / 3600);
}

/* What a clock measured is never so even. */
static void check_spacing(const struct trace *t, FILE *out)
{
    int64_t step_ps = t->n > EVEN_MIN ? t->request[1].arrival_ps : 0;
    for (size_t i = 1; i < t->n; i++)
        if (t->request[i].n_after > 0 ||
            t->request[i].arrival_ps - t->request[i - 1].arrival_ps != step_ps)
            return;
    if (step_ps > 0)
        fprintf(out, "%s: every request comes %g s after the one before: are the times made up?\n",
                t->path, ps_to_s(step_ps));
}

static void check_contexts(const struct trace *t, FILE *out)
{
    size_t n = 0;
    long line = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->input_tokens + r->output_tokens <= CONTEXT_LONG_TOKENS)
            continue;
        n++;
        line = line ? line : r->line;
    }
    if (n > 0)
        fprintf(out, "%s: contexts above %d tokens: %zu, the first at line %ld\n", t->path,
                CONTEXT_LONG_TOKENS, n, line);
}

void trace_print_check(const struct trace *t, FILE *out)
{
    static void (*const checks[])(const struct trace *, FILE *) = {
        check_order, check_skips,   check_ties,     check_duplicates,
        check_gaps,  check_spacing, check_contexts,
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](t, out);
}
