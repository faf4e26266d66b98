/* SPDX-License-Identifier: Apache-2.0
 *
 * What `trace check` finds in a trace that reads well: legal, but worth knowing before a replay.
 */
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/trace.h"

#define GAP_LONG_PS (3600 * PS_PER_S)

enum { CONTEXT_LONG_TOKENS = 1 << 20, NUMBERED_MIN = 10 };

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

static void check_notes(const struct trace *t, FILE *out)
{
    for (int i = 0; i < NOTE_COUNT; i++)
        if (t->noted[i] > 0)
            fprintf(out, "%s: %s: %lld\n", t->path, trace_note_names[i], (long long)t->noted[i]);
}

/* Times such as 0, 1, 2, ... are a row's number put where its time should be. */
static void check_numbered(const struct trace *t, FILE *out)
{
    int64_t before_ps = 0, step_ps = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->n_after > 0)
            continue;
        if (n == 1)
            step_ps = r->arrival_ps - before_ps;
        if (n > 0 && (step_ps == 0 || r->arrival_ps - before_ps != step_ps))
            return;
        before_ps = r->arrival_ps;
        n++;
    }
    if (n >= NUMBERED_MIN)
        fprintf(out, "%s: arrivals are all exactly %g s apart: are they row numbers?\n", t->path,
                ps_to_s(step_ps));
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

/* Gaps between arrivals of one session, as far as the file tells these. */
static void check_session_gaps(const struct trace *t, FILE *out)
{
    int64_t *before_ps = xcalloc(t->session.n + 1, sizeof *before_ps), longest_ps = 0;
    bool *begun = xcalloc(t->session.n + 1, sizeof *begun);
    size_t gaps = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->session == TRACE_NO_SESSION)
            continue;
        int64_t gap_ps = r->arrival_ps - before_ps[r->session];
        if (r->n_after == 0 && begun[r->session] && gap_ps > GAP_LONG_PS) {
            gaps++;
            longest_ps = gap_ps > longest_ps ? gap_ps : longest_ps;
        }
        before_ps[r->session] = r->arrival_ps;
        begun[r->session] = true;
    }
    if (gaps > 0)
        fprintf(out, "%s: gaps above 1 h inside sessions: %zu, the longest %.3f h\n", t->path, gaps,
                ps_to_s(longest_ps) / 3600);
    free(before_ps);
    free(begun);
}

static void check_waits(const struct trace *t, FILE *out)
{
    size_t waits = 0;
    int64_t longest_ps = 0;
    for (size_t i = 0; i < t->n; i++) {
        int64_t wait_ps = t->request[i].delay_ps;
        waits += wait_ps > GAP_LONG_PS;
        longest_ps = wait_ps > longest_ps ? wait_ps : longest_ps;
    }
    if (waits > 0)
        fprintf(out, "%s: waits above 1 h: %zu, the longest %.3f h; see --wait-cap\n", t->path,
                waits, ps_to_s(longest_ps) / 3600);
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
    if (n == 0)
        return;
    fprintf(out, "%s: contexts above %d tokens: %zu", t->path, CONTEXT_LONG_TOKENS, n);
    if (line > 0)
        fprintf(out, ", the first at line %ld", line);
    fputc('\n', out);
}

void trace_print_check(const struct trace *t, FILE *out)
{
    static void (*const checks[])(const struct trace *, FILE *) = {
        check_order,      check_skips, check_notes,        check_numbered, check_ties,
        check_duplicates, check_gaps,  check_session_gaps, check_waits,    check_contexts,
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](t, out);
}
