/* SPDX-License-Identifier: Apache-2.0
 *
 * What `trace info` says about a trace, and the warnings that every reader of one owes.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/trace.h"

/* Block hashes seen so far: open addressing, each slot an index into trace.hash plus one. The table
 * is at most half full. */
struct seen {
    const uint64_t *hash;
    size_t *slot, mask;
};

static size_t *find_slot(const struct seen *s, uint64_t hash)
{
    size_t i = (hash * 0x9E3779B97F4A7C15u) >> 32; /* Fibonacci hashing: ids come in runs */
    while (s->slot[i & s->mask] != 0 && s->hash[s->slot[i & s->mask] - 1] != hash)
        i++;
    return &s->slot[i & s->mask];
}

static uint32_t count_known(const struct seen *s, const struct trace_request *r)
{
    uint32_t n = 0;
    while (n < r->n_hashes && *find_slot(s, s->hash[r->hash_at + n]) != 0)
        n++;
    return n;
}

struct trace_prefix trace_prefix_max(const struct trace *t)
{
    struct trace_prefix p = {0};
    size_t slots = 1;
    while (slots < 2 * t->n_hashes)
        slots *= 2;
    struct seen seen = {t->hash, xcalloc(slots, sizeof *seen.slot), slots - 1};
    for (size_t i = 0; i < t->n && t->n_hashes > 0; i++) {
        const struct trace_request *r = &t->request[i];
        int64_t known = count_known(&seen, r), tokens = known * t->block_tokens;
        p.hit_blocks += known;
        p.hit_tokens += tokens < r->input_tokens ? tokens : r->input_tokens;
        p.full_hits += known > 0 && known == r->n_hashes;
        for (size_t k = r->hash_at; k < r->hash_at + r->n_hashes; k++)
            *find_slot(&seen, t->hash[k]) = k + 1;
    }
    free(seen.slot);
    return p;
}

/* The lengths of one kind, in ascending order. */
struct lengths {
    size_t n;
    int64_t *sorted;
    double mean;
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct lengths measure(const struct trace *t, bool output)
{
    struct lengths l = {t->n, xcalloc(t->n, sizeof *l.sorted), 0};
    __int128 sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        l.sorted[i] = output ? r->output_tokens : r->input_tokens;
        sum += l.sorted[i];
    }
    qsort(l.sorted, l.n, sizeof *l.sorted, by_value);
    l.mean = l.n ? (double)sum / (double)l.n : 0;
    return l;
}

/* Nearest rank: the smallest length that so many percent do not exceed. */
static int64_t percentile(const struct lengths *l, size_t percent)
{
    size_t rank = (l->n * percent + 99) / 100;
    return rank ? l->sorted[rank - 1] : 0;
}

static const struct {
    const char *name;
    size_t percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};

enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

double trace_prefix_hit_frac_max(const struct trace *t)
{
    double tokens = 0; /* exact: below 2^53 for any trace that fits in memory */
    for (size_t i = 0; i < t->n; i++)
        tokens += (double)t->request[i].input_tokens;
    return tokens > 0 ? (double)trace_prefix_max(t).hit_tokens / tokens : 0;
}

static void print_head(const char *label, FILE *out)
{
    fprintf(out, "%-14s", label);
}

static void print_lengths(const char *label, const struct trace *t, bool output, FILE *out)
{
    char buf[32];
    struct lengths l = measure(t, output);
    print_head(label, out);
    fprintf(out, "%10s", units_count(llround(l.mean), buf, sizeof buf));
    for (int i = 0; i < PERCENTILES; i++)
        fprintf(out, "%10s", units_count(percentile(&l, percentiles[i].percent), buf, sizeof buf));
    fputc('\n', out);
    free(l.sorted);
}

static void print_token_table(const struct trace *t, FILE *out)
{
    print_head("tokens", out);
    fprintf(out, "%10s", "mean");
    for (int i = 0; i < PERCENTILES; i++)
        fprintf(out, "%10s", percentiles[i].name);
    fputc('\n', out);
    print_lengths("  input", t, false, out);
    print_lengths("  output", t, true, out);
}

static void print_origin(const struct trace *t, FILE *out)
{
    char text[32];
    time_t at_s = (time_t)(t->origin_ps / PS_PER_S);
    struct tm tm;
    print_head("begins", out);
    if (t->calendar && gmtime_r(&at_s, &tm) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm) > 0)
        fprintf(out, "%s\n", text);
    else
        fprintf(out, "%.3f s by the file's clock\n", (double)t->origin_ps / 1e12);
}

static void print_rate(const struct trace *t, FILE *out)
{
    print_head("rate", out);
    if (t->last_ps > 0)
        fprintf(out, "%.4g requests/s\n", (double)t->n / ps_to_s(t->last_ps));
    else
        fprintf(out, "all at once\n");
}

static void print_prefix(const struct trace *t, FILE *out)
{
    print_head("prefix hits", out);
    if (t->n_hashes > 0)
        fprintf(out, "%.1f%% of input tokens with an unbounded cache (blocks of %d tokens)\n",
                100 * trace_prefix_hit_frac_max(t), t->block_tokens);
    else
        fprintf(out, "unknown: no block hashes\n");
}

static void print_sessions(const struct trace *t, FILE *out)
{
    struct trace_sessions s = trace_sessions(t);
    char n[32], max[32];
    print_head("sessions", out);
    if (s.sessions > 0)
        fprintf(out, "%s; requests in one: p50 %lld, max %s\n",
                units_count(s.sessions, n, sizeof n), (long long)s.turns_p50,
                units_count(s.turns_max, max, sizeof max));
    else
        fputs("unknown\n", out);
    if (s.waiting == 0)
        return;
    print_head("waiting", out);
    fprintf(out, "%.1f%% of requests, for others to end; the longest chain has %s\n",
            100 * (double)s.waiting / (double)t->n, units_count(s.chain_max, max, sizeof max));
}

/* A line for each count, the first behind the label. */
static void print_counts(const char *label, const int64_t *count, const char *const *names, int n,
                         FILE *out)
{
    char buf[32];
    for (int i = 0; i < n; i++) {
        if (count[i] == 0)
            continue;
        print_head(label, out);
        fprintf(out, "%s %s\n", units_count(count[i], buf, sizeof buf), names[i]);
        label = "";
    }
}

static void print_oddities(const struct trace *t, FILE *out)
{
    char buf[32];
    print_head("skipped rows", out);
    fprintf(out, "%s\n", units_count(trace_count_skips(t), buf, sizeof buf));
    print_counts("  with", t->skipped, trace_skip_names, SKIP_COUNT, out);
    print_counts("noted", t->noted, trace_note_names, NOTE_COUNT, out);
    if (t->waits_capped > 0) {
        print_head("waits capped", out);
        fprintf(out, "%s\n", units_count(t->waits_capped, buf, sizeof buf));
    }
    print_head("out of order", out);
    fprintf(out, "%s\n", units_count(t->out_of_order, buf, sizeof buf));
}

void trace_print_info(const struct trace *t, FILE *out)
{
    char buf[32];
    print_head("format", out);
    fprintf(out, "%s\n", t->format);
    print_head("requests", out);
    fprintf(out, "%s\n", units_count((int64_t)t->n, buf, sizeof buf));
    print_origin(t, out);
    print_head("span", out);
    fprintf(out, "%.3f s\n", ps_to_s(t->last_ps));
    print_rate(t, out);
    print_prefix(t, out);
    print_sessions(t, out);
    print_oddities(t, out);
    fputc('\n', out);
    print_token_table(t, out);
}

static json_t *lengths_json(const struct trace *t, bool output)
{
    struct lengths l = measure(t, output);
    json_t *obj = json_object();
    json_object_set_new(obj, "mean", json_num(l.mean));
    for (int i = 0; i < PERCENTILES; i++)
        json_object_set_new(obj, percentiles[i].name,
                            json_integer(percentile(&l, percentiles[i].percent)));
    free(l.sorted);
    return obj;
}

static json_t *counts_json(const int64_t *count, const char *const *names, int n)
{
    json_t *obj = json_object();
    for (int i = 0; i < n; i++)
        if (count[i] > 0)
            json_object_set_new(obj, names[i], json_integer(count[i]));
    return obj;
}

static void add_sessions_json(json_t *obj, const struct trace *t)
{
    struct trace_sessions s = trace_sessions(t);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"sessions", s.sessions},
                  {"session_requests_p50", s.turns_p50},
                  {"session_requests_max", s.turns_max},
                  {"waiting", s.waiting},
                  {"chain_max", s.chain_max},
                  {"waits_capped", t->waits_capped}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(obj, counts[i].key, json_integer(counts[i].value));
}

json_t *trace_info_json(const struct trace *t)
{
    json_t *obj = json_object();
    json_object_set_new(obj, "format", json_string(t->format));
    json_object_set_new(obj, "requests", json_integer((json_int_t)t->n));
    json_object_set_new(obj, "skipped", json_integer(trace_count_skips(t)));
    json_object_set_new(obj, "span_s", json_num(ps_to_s(t->last_ps)));
    json_object_set_new(obj, "input_tokens", lengths_json(t, false));
    json_object_set_new(obj, "output_tokens", lengths_json(t, true));
    json_object_set_new(obj, "prefix_hit_frac_max", json_num(trace_prefix_hit_frac_max(t)));
    add_sessions_json(obj, t);
    json_object_set_new(obj, "skipped_for", counts_json(t->skipped, trace_skip_names, SKIP_COUNT));
    json_object_set_new(obj, "noted", counts_json(t->noted, trace_note_names, NOTE_COUNT));
    return obj;
}

void trace_warn(const struct trace *t, FILE *out)
{
    if (t->out_of_order > 0)
        fprintf(out, "wavetank: %s: rows earlier than the row before, now sorted by time: %lld\n",
                t->path, (long long)t->out_of_order);
    if (trace_count_skips(t) > 0) {
        char *skipped = trace_describe_skips(t);
        fprintf(out, "wavetank: %s: rows skipped: %s\n", t->path, skipped);
        free(skipped);
    }
    for (int i = 0; i < NOTE_COUNT; i++)
        if (t->noted[i] > 0)
            fprintf(out, "wavetank: %s: %s: %lld\n", t->path, trace_note_names[i],
                    (long long)t->noted[i]);
}
