/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/convert.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/wtt.h"

enum { PS_DIGITS_OF_S = 12, PS_DIGITS_OF_MS = 9, MOONCAKE_BLOCK_TOKENS = 512 };

#define JSONL_WAITS_MAX  (1LL << 28)
#define DOUBLE_EXACT_MAX 999999999999999 /* decimals of 15 digits survive a double */

/* value / 10^digits, without zeros behind the last digit. */
static void print_decimal(int64_t value, int digits, FILE *out)
{
    int64_t unit = 1;
    for (; digits > 0 && value % 10 == 0; digits--)
        value /= 10;
    for (int i = 0; i < digits; i++)
        unit *= 10;
    fprintf(out, "%lld", (long long)(value / unit));
    if (digits > 0)
        fprintf(out, ".%0*lld", digits, (long long)(value % unit));
}

static int check_csv(const struct trace *t, struct err *err)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].n_after > 0)
            return err_at(err, t->path, t->request[i].line,
                          "waits for another request, which a .csv cannot say; write a .wtt or a "
                          ".jsonl");
    return 0;
}

static void warn_csv(const struct trace *t, FILE *out)
{
    if (t->n_hashes > 0)
        fprintf(out, "wavetank: %s: a .csv has no place for block hashes: left out\n", t->path);
    if (t->session.n > 0)
        fprintf(out, "wavetank: %s: a .csv has no place for sessions: left out\n", t->path);
}

static void write_csv(const struct trace *t, FILE *out)
{
    fputs("arrived_at_s,input_tokens,output_tokens\n", out);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        print_decimal(r->arrival_ps, PS_DIGITS_OF_S, out);
        fprintf(out, ",%lld,%lld\n", (long long)r->input_tokens, (long long)r->output_tokens);
    }
}

/* How the hashes of a trace become those of Mooncake's larger blocks: a hash stands for its block
 * and all before it, so that of the last small block stands for the large one. */
struct blocks {
    uint32_t join;    /* so many make one of Mooncake's; 0: cannot be */
    uint64_t *sorted; /* all hashes, when some are beyond what JSON readers take: places are ids */
    size_t n;
};

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct blocks blocks_of(const struct trace *t)
{
    struct blocks b = {0};
    bool large = false;
    if (t->block_tokens > 0 && MOONCAKE_BLOCK_TOKENS % t->block_tokens == 0)
        b.join = (uint32_t)(MOONCAKE_BLOCK_TOKENS / t->block_tokens);
    for (size_t i = 0; i < t->n_hashes; i++)
        large = large || t->hash[i] > INT64_MAX;
    if (!large || b.join == 0)
        return b;
    b.sorted = xcalloc(t->n_hashes, sizeof *b.sorted);
    memcpy(b.sorted, t->hash, t->n_hashes * sizeof *b.sorted);
    qsort(b.sorted, t->n_hashes, sizeof *b.sorted, by_hash);
    for (size_t i = 0; i < t->n_hashes; i++)
        if (i == 0 || b.sorted[i] != b.sorted[b.n - 1])
            b.sorted[b.n++] = b.sorted[i];
    return b;
}

static uint64_t id_of(const struct blocks *b, uint64_t hash)
{
    if (b->sorted == NULL)
        return hash;
    const uint64_t *found = bsearch(&hash, b->sorted, b->n, sizeof hash, by_hash);
    return (uint64_t)(found - b->sorted);
}

/* How many of Mooncake's blocks a request's hashes make, -1 when not what its prompt has. A last
 * block that is not full counts where the hashes cover the prompt to its end. */
static int64_t count_joined(const struct blocks *b, const struct trace *t,
                            const struct trace_request *r)
{
    if (b->join == 0 || r->n_hashes == 0)
        return -1;
    bool to_end = (int64_t)r->n_hashes * t->block_tokens >= r->input_tokens;
    int64_t whole = r->input_tokens / MOONCAKE_BLOCK_TOKENS;
    int64_t n = to_end ? ceil_div_i64(r->n_hashes, b->join) : r->n_hashes / b->join;
    int64_t expected = to_end ? ceil_div_i64(r->input_tokens, MOONCAKE_BLOCK_TOKENS) : whole;
    return n == expected ? n : -1;
}

static void print_hashes(const struct blocks *b, const struct trace *t,
                         const struct trace_request *r, FILE *out)
{
    int64_t n = count_joined(b, t, r);
    if (n < 0)
        return;
    fputs(", \"hash_ids\": [", out);
    for (int64_t i = 0; i < n; i++) {
        int64_t last = min_i64((i + 1) * b->join, r->n_hashes) - 1;
        fprintf(out, "%s%llu", i > 0 ? ", " : "",
                (unsigned long long)id_of(b, t->hash[r->hash_at + (size_t)last]));
    }
    fputc(']', out);
}

/* As a number, or as text where a double would lose digits. */
static void print_ms(int64_t ps, FILE *out)
{
    int64_t digits = ps;
    while (digits > 0 && digits % 10 == 0)
        digits /= 10;
    const char *quote = digits > DOUBLE_EXACT_MAX ? "\"" : "";
    fputs(quote, out);
    print_decimal(ps, PS_DIGITS_OF_MS, out);
    fputs(quote, out);
}

static void print_waits(const struct trace *t, const struct trace_request *r, FILE *out)
{
    fputs(", \"wait_for\": [", out);
    for (uint32_t k = 0; k < r->n_after; k++)
        fprintf(out, "%s\"%lu\"", k > 0 ? ", " : "", (unsigned long)t->after[r->after_at + k]);
    fputs("], \"delay\": ", out);
    print_ms(r->delay_ps, out);
}

static void print_session(const struct trace *t, const struct trace_request *r, FILE *out)
{
    if (r->session == TRACE_NO_SESSION)
        return;
    json_t *name = json_string(t->session.name[r->session]);
    fputs(", \"session_id\": ", out);
    json_dumpf(name, out, JSON_ENCODE_ANY);
    json_decref(name);
}

/* Rows of a trace with sessions or waits are named: without request_id, rows of one session_id
 * would wait for one another. */
static void write_jsonl(const struct trace *t, FILE *out)
{
    struct blocks b = blocks_of(t);
    bool named = t->session.n > 0 || t->n_after > 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        fputc('{', out);
        if (named) {
            fprintf(out, "\"request_id\": \"%zu\"", i);
            print_session(t, r, out);
        }
        if (r->n_after > 0) {
            print_waits(t, r, out);
        } else {
            fprintf(out, "%s\"timestamp\": ", named ? ", " : "");
            print_ms(r->arrival_ps, out);
        }
        fprintf(out, ", \"input_length\": %lld, \"output_length\": %lld",
                (long long)r->input_tokens, (long long)r->output_tokens);
        print_hashes(&b, t, r, out);
        fputs("}\n", out);
    }
    free(b.sorted);
}

static int check_waits(const struct trace *t, struct err *err)
{
    int64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->request[i].n_after;
    if (n <= JSONL_WAITS_MAX)
        return 0;
    return err_set(err,
                   "%s: a .jsonl names what each request waits for, %lld in all, at most 2^28; "
                   "write a .wtt, where requests share what they wait for",
                   t->path, (long long)n);
}

static int check_jsonl(const struct trace *t, struct err *err)
{
    if (check_waits(t, err) < 0)
        return -1;
    for (size_t i = 0; i < t->session.n; i++) {
        json_t *name = json_string(t->session.name[i]);
        if (name == NULL)
            return err_set(err,
                           "%s: the name of session %zu is no UTF-8, which a .jsonl has to be; "
                           "write a .wtt",
                           t->path, i);
        json_decref(name);
    }
    return 0;
}

static void warn_jsonl(const struct trace *t, FILE *out)
{
    struct blocks b = blocks_of(t);
    size_t lost = 0;
    for (size_t i = 0; i < t->n; i++)
        lost += t->request[i].n_hashes > 0 && count_joined(&b, t, &t->request[i]) < 0;
    if (b.join > 1)
        fprintf(out, "wavetank: %s: hashes of blocks of %d tokens become those of blocks of %d\n",
                t->path, t->block_tokens, MOONCAKE_BLOCK_TOKENS);
    if (b.sorted != NULL)
        fprintf(out, "wavetank: %s: hashes above 2^63 - 1: all are numbered anew\n", t->path);
    if (lost > 0)
        fprintf(out,
                "wavetank: %s: requests whose hashes make no blocks of %d tokens, left out: %zu\n",
                t->path, MOONCAKE_BLOCK_TOKENS, lost);
    free(b.sorted);
}

static const struct trace_form forms[] = {
    {".wtt", NULL, wtt_write, NULL},
    {".jsonl", check_jsonl, write_jsonl, warn_jsonl},
    {".csv", check_csv, write_csv, warn_csv},
};

const struct trace_form *trace_form_of(const char *path, struct err *err)
{
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending != NULL && i < sizeof forms / sizeof *forms; i++)
        if (strcmp(ending, forms[i].ending) == 0)
            return &forms[i];
    err_set(err, "%s: a trace is written as .wtt, .jsonl or .csv; end the name in one of these",
            path);
    return NULL;
}

int trace_convert(const struct trace *t, const struct trace_form *form, const char *path,
                  FILE *warnings, struct err *err)
{
    struct outfile o;
    if ((form->check != NULL && form->check(t, err) < 0) || outfile_open(&o, path, err) < 0)
        return -1;
    if (form->warn != NULL)
        form->warn(t, warnings);
    form->write(t, o.f);
    return outfile_commit(&o, err);
}
