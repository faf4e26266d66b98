/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/report/pools.h"
#include "sim/report/table.h"

static const double tie_frac = 0.01;

bool summary_is_better(const struct run_result *a, const struct run_result *b)
{
    if (a->completed != b->completed)
        return a->completed > b->completed;
    return hist_mean(&a->e2e_ps) < hist_mean(&b->e2e_ps);
}

const struct run_result *summary_yardstick(const struct summary *s)
{
    const struct run_result *best = NULL;
    for (int i = 0; i < s->n; i++) {
        const struct summary_row *row = &s->row[i];
        if ((row->in_hindsight || row->looks_ahead) &&
            (best == NULL || summary_is_better(row->result, best)))
            best = row->result;
    }
    return best;
}

bool summary_regret(const struct run_result *r, const struct run_result *yardstick, double *frac)
{
    if (r->completed != yardstick->completed || r->completed == 0)
        return false;
    *frac = hist_mean(&r->e2e_ps) / hist_mean(&yardstick->e2e_ps) - 1;
    return true;
}

static bool has_oracle(const struct summary *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->row[i].looks_ahead)
            return true;
    return false;
}

/* Per second of the run; 0 when nothing was completed. */
static double rate(const struct run_result *r, int64_t count)
{
    return r->makespan_ps > 0 ? (double)count / ps_to_s(r->makespan_ps) : 0;
}

static double token_rate(const struct run_result *r)
{
    return rate(r, r->input_tokens + r->output_tokens);
}

static bool is_fixed(const struct summary_row *row)
{
    return row->fixed_layout >= 0;
}

enum runner { FIXED, MOVER, ORACLE };

static enum runner runner_of(const struct summary_row *row)
{
    return is_fixed(row) ? FIXED : row->looks_ahead ? ORACLE : MOVER;
}

static const char *layout_name(const struct summary *s, const struct summary_row *row)
{
    return s->layouts[row->fixed_layout].name;
}

static void add_name(struct table *t, const struct summary *s, const struct summary_row *row)
{
    if (row->in_hindsight)
        table_add(t, "best-fixed (%s)", layout_name(s, row));
    else
        table_add(t, "%s", row->policy);
}

static void add_number(struct table *t, double x)
{
    char buf[32];
    table_add(t, "%s", table_number(x, buf, sizeof buf));
}

static void add_count(struct table *t, double x)
{
    char buf[32];
    table_add(t, "%s", units_count(llround(x), buf, sizeof buf));
}

/* Median and tail in the given unit; blanks when nothing was measured. */
static void add_quantiles(struct table *t, const struct hist *h, double unit_ps)
{
    static const double q[] = {0.5, 0.99};
    for (int i = 0; i < 2; i++) {
        if (h->n > 0)
            add_number(t, (double)hist_quantile(h, q[i]) / unit_ps);
        else
            table_add(t, "-");
    }
}

static void add_regret(struct table *t, const struct summary *s, const struct run_result *r)
{
    double frac;
    if (summary_regret(r, summary_yardstick(s), &frac))
        table_add(t, "%.1f%%", 100 * frac);
    else
        table_add(t, "-");
}

static void add_run(struct table *t, const struct summary *s, const struct summary_row *row)
{
    const struct run_result *r = row->result;
    add_name(t, s, row);
    add_count(t, (double)r->completed);
    add_count(t, token_rate(r));
    add_count(t, rate(r, r->output_tokens));
    add_quantiles(t, &r->ttft_ps, (double)PS_PER_S);
    add_quantiles(t, &r->tpot_ps, (double)PS_PER_MS);
    add_count(t, (double)r->switches);
    if (s->has_slo)
        add_number(t, rate(r, r->slo_met));
    if (has_oracle(s))
        add_regret(t, s, r);
}

static void print_runs(const struct summary *s, FILE *out)
{
    enum { FIXED_COLUMNS = 9 };
    static const char *const head[2][FIXED_COLUMNS] = {
        {"", "", "tok/s", "", "TTFT s", "", "TPOT ms", "", ""},
        {"policy", "done", "total", "output", "p50", "p99", "p50", "p99", "switches"},
    };
    static const char *const goodput[2] = {"goodput", "req/s"}, *const regret[2] = {"E2E",
                                                                                    "regret"};
    struct table t;
    char align[] = "lrrrrrrrrrr";
    align[FIXED_COLUMNS + s->has_slo + has_oracle(s)] = '\0';
    table_init(&t, align);
    for (int line = 0; line < 2; line++) {
        for (int i = 0; i < FIXED_COLUMNS; i++)
            table_add(&t, "%s", head[line][i]);
        if (s->has_slo)
            table_add(&t, "%s", goodput[line]);
        if (has_oracle(s))
            table_add(&t, "%s", regret[line]);
    }
    for (int i = 0; i < s->n; i++)
        add_run(&t, s, &s->row[i]);
    table_print(&t, out);
    table_release(&t);
}

static bool has_fixed(const struct summary *s)
{
    for (int i = 0; i < s->n; i++)
        if (is_fixed(&s->row[i]))
            return true;
    return false;
}

static const struct run_result *fixed_result(const struct summary *s, int layout)
{
    for (int i = 0; i < s->n; i++)
        if (s->row[i].fixed_layout == layout)
            return s->row[i].result;
    return NULL;
}

/* How many times as fast `a` is as `b`, or 0 when either has nothing to compare. */
static double e2e_speedup(const struct run_result *a, const struct run_result *b)
{
    double mean = hist_mean(&a->e2e_ps);
    return mean > 0 ? hist_mean(&b->e2e_ps) / mean : 0;
}

static double throughput_ratio(const struct run_result *a, const struct run_result *b)
{
    return token_rate(b) > 0 ? token_rate(a) / token_rate(b) : 0;
}

static double time_frac(const struct run_result *r, int layout)
{
    return r->busy_ps > 0 ? (double)r->layout_ps[layout] / (double)r->busy_ps : 0;
}

static void add_gains(struct table *t, const struct summary *s, const struct summary_row *row,
                      const char *label,
                      double (*gain)(const struct run_result *a, const struct run_result *b))
{
    table_skip(t, 1);
    table_add(t, "%s", label);
    for (int l = 0; l < s->n_layouts; l++) {
        const struct run_result *fixed = fixed_result(s, l);
        double x = fixed != NULL ? gain(row->result, fixed) : 0;
        bool alike = fixed != NULL && fixed->completed == row->result->completed;
        if (x > 0)
            table_add(t, "%.2fx%s", x, alike ? "" : "*");
        else
            table_add(t, "-");
    }
}

static void add_policy_gains(struct table *t, const struct summary *s,
                             const struct summary_row *row)
{
    add_name(t, s, row);
    table_add(t, "time in layout");
    for (int l = 0; l < s->n_layouts; l++)
        table_add(t, "%.0f%%", 100 * time_frac(row->result, l));
    if (!has_fixed(s))
        return;
    add_gains(t, s, row, "E2E speedup over fixed", e2e_speedup);
    add_gains(t, s, row, "tok/s over fixed", throughput_ratio);
}

static bool completes_unlike(const struct summary *s, const struct run_result *r)
{
    for (int l = 0; l < s->n_layouts; l++) {
        const struct run_result *fixed = fixed_result(s, l);
        if (fixed != NULL && fixed->completed > 0 && fixed->completed != r->completed)
            return true;
    }
    return false;
}

static void print_gains(const struct summary *s, FILE *out)
{
    struct table t;
    char align[TABLE_COLUMNS_MAX + 1] = "ll";
    bool unlike = false;
    int n = 0;
    memset(align + 2, 'r', (size_t)s->n_layouts);
    table_init(&t, align);
    table_skip(&t, 2);
    for (int l = 0; l < s->n_layouts; l++)
        table_add(&t, "%s", s->layouts[l].name);
    for (int i = 0; i < s->n; i++) {
        if (is_fixed(&s->row[i]))
            continue;
        add_policy_gains(&t, s, &s->row[i]);
        unlike = unlike || completes_unlike(s, s->row[i].result);
        n++;
    }
    if (n > 0) {
        fputc('\n', out);
        table_print(&t, out);
    }
    if (n > 0 && unlike)
        fputs("* over different requests: the two completed unlike numbers of them\n", out);
    table_release(&t);
}

static bool is_repeat(const struct summary *s, int i)
{
    for (int k = 0; k < s->n; k++)
        if (k != i && s->row[k].result == s->row[i].result && s->row[i].in_hindsight)
            return true;
    return false;
}

/* "tp: rejected 3 of 40 requests (2: its KV fits no layout; ...)" */
static void print_failures(const char *policy, const struct run_result *r, FILE *out)
{
    char count[32], rejected[32], cancelled[32];
    const char *sep = " (";
    fprintf(out, "%s: ", policy);
    if (r->rejected > 0)
        fprintf(out, "rejected %s%s", units_count(r->rejected, rejected, sizeof rejected),
                r->cancelled > 0 ? " and " : "");
    if (r->cancelled > 0)
        fprintf(out, "cancelled %s", units_count(r->cancelled, cancelled, sizeof cancelled));
    fprintf(out, " of %s requests", units_count(r->requests, count, sizeof count));
    for (int i = 0; i < REASON_COUNT; i++) {
        if (r->ended_by[i] == 0)
            continue;
        fprintf(out, "%s%s: %s", sep, units_count(r->ended_by[i], count, sizeof count),
                end_reason_names[i]);
        sep = "; ";
    }
    fputs(sep[0] == ';' ? ")\n" : "\n", out);
}

static void print_switches(const char *policy, const struct run_result *r, FILE *out)
{
    char count[32], refused[32], time[32];
    fprintf(out, "%s: %s switches added %s of exposed time", policy,
            units_count(r->switches, count, sizeof count),
            units_time(r->switch_exposed_ps, time, sizeof time));
    if (r->switches_refused > 0)
        fprintf(out, "; %s did not fit in memory",
                units_count(r->switches_refused, refused, sizeof refused));
    fputc('\n', out);
}

static void print_foresight(const char *policy, const struct run_result *r, FILE *out)
{
    char forks[32], cut[32];
    fprintf(out, "%s: looked ahead in %s forks", policy,
            units_count(r->forks, forks, sizeof forks));
    if (r->searches_cut > 0)
        fprintf(out, "; its budget cut %s decisions short",
                units_count(r->searches_cut, cut, sizeof cut));
    fputc('\n', out);
}

static void print_cache(const char *policy, const struct run_result *r, FILE *out)
{
    char cached[32], of[32], evicted[32];
    double frac = r->input_tokens > 0 ? (double)r->cached_tokens / (double)r->input_tokens : 0;
    fprintf(out, "%s: %s of %s prompt tokens (%.1f%%) were cached; %s blocks of %lld evicted\n",
            policy, units_count(r->cached_tokens, cached, sizeof cached),
            units_count(r->input_tokens, of, sizeof of), 100 * frac,
            units_count(r->cache_evictions, evicted, sizeof evicted),
            (long long)r->cache_block_tokens);
}

static void print_notes(const struct summary *s, FILE *out)
{
    char count[32];
    for (int i = 0; i < s->n; i++) {
        const char *policy = s->row[i].policy;
        const struct run_result *r = s->row[i].result;
        if (is_repeat(s, i))
            continue;
        if (r->rejected + r->cancelled > 0)
            print_failures(policy, r, out);
        if (r->preemptions > 0)
            fprintf(out, "%s: %s preemptions\n", policy,
                    units_count(r->preemptions, count, sizeof count));
        if (r->switches > 0 || r->switches_refused > 0)
            print_switches(policy, r, out);
        if (s->row[i].looks_ahead)
            print_foresight(policy, r, out);
        if (pools_are_two(r))
            pools_print_layouts(policy, r, s->layouts, s->n_layouts, out);
        if (r->cache_block_tokens > 0)
            print_cache(policy, r, out);
    }
}

/* The best row, or the worst, among fixed layouts, other policies or oracles; NULL without any. */
static const struct summary_row *find_extreme(const struct summary *s, enum runner runner,
                                              bool worst)
{
    const struct summary_row *found = NULL;
    for (int i = 0; i < s->n; i++) {
        const struct summary_row *row = &s->row[i];
        if (runner_of(row) != runner)
            continue;
        if (found == NULL || (worst ? summary_is_better(found->result, row->result)
                                    : summary_is_better(row->result, found->result)))
            found = row;
    }
    return found;
}

static bool is_tie(const struct run_result *a, const struct run_result *b)
{
    double mean = hist_mean(&b->e2e_ps);
    return a->completed == b->completed && fabs(hist_mean(&a->e2e_ps) - mean) <= tie_frac * mean;
}

/* "is 1.20 times as fast as", for a sentence with `a` before and `b` behind. */
static char *compare(const struct run_result *a, const struct run_result *b, char *buf, size_t size)
{
    char count[32];
    double speedup = e2e_speedup(a, b);
    int64_t more = a->completed - b->completed;
    if (more != 0)
        snprintf(buf, size, "completes %s %s request%s than",
                 units_count(llabs(more), count, sizeof count), more > 0 ? "more" : "fewer",
                 llabs(more) == 1 ? "" : "s");
    else if (is_tie(a, b))
        snprintf(buf, size, "ties within 1%% with");
    else if (speedup > 1)
        snprintf(buf, size, "is %.2f times as fast as", speedup);
    else
        snprintf(buf, size, "takes %.2f times as long as", 1 / speedup);
    return buf;
}

/* What the first sentence part says of the winner and the best fixed layout. */
static void print_against_best(const struct summary *s, const struct summary_row *mover,
                               const struct summary_row *best, FILE *out)
{
    char phrase[96];
    const char *fixed = layout_name(s, best);
    compare(mover->result, best->result, phrase, sizeof phrase);
    if (is_tie(mover->result, best->result))
        fprintf(out, "%s %s the best fixed layout (%s)", mover->policy, phrase, fixed);
    else if (summary_is_better(mover->result, best->result))
        fprintf(out, "%s wins: it %s the best fixed layout (%s)", mover->policy, phrase, fixed);
    else
        fprintf(out, "Fixed %s wins: %s %s it", fixed, mover->policy, phrase);
}

static void print_against_worst(const struct summary *s, const struct summary_row *row,
                                const struct summary_row *worst, FILE *out)
{
    char phrase[96];
    fprintf(out, "%s the worst (%s)", compare(row->result, worst->result, phrase, sizeof phrase),
            layout_name(s, worst));
}

/* With something to compare. */
static void print_verdict(const struct summary *s, const struct summary_row *mover,
                          const struct summary_row *best, const struct summary_row *worst,
                          FILE *out)
{
    const struct summary_row *row = mover != NULL ? mover : best;
    int64_t completed = row->result->completed;
    bool by_latency = completed == worst->result->completed ||
                      (mover != NULL && completed == best->result->completed);
    if (mover != NULL)
        print_against_best(s, mover, best, out);
    else
        fprintf(out, "Fixed %s is the best layout: it ", layout_name(s, best));
    if (mover != NULL && best->fixed_layout != worst->fixed_layout)
        fputs(", and ", out);
    if (best->fixed_layout != worst->fixed_layout)
        print_against_worst(s, row, worst, out);
    fputs(by_latency ? ", by mean E2E latency.\n" : ".\n", out);
}

void summary_print_verdict(const struct summary *s, FILE *out)
{
    const struct summary_row *best = find_extreme(s, FIXED, false);
    const struct summary_row *worst = find_extreme(s, FIXED, true);
    const struct summary_row *mover = find_extreme(s, MOVER, false);
    if (mover == NULL)
        mover = find_extreme(s, ORACLE, false);
    if (best == NULL)
        fputs("No fixed layout ran to compare with: add --policy best-fixed.\n", out);
    else if (best->result->completed == 0 && (mover == NULL || mover->result->completed == 0))
        fputs("No policy completed a request: \"wavetank explain\" shows what fits.\n", out);
    else if (mover == NULL && best->fixed_layout == worst->fixed_layout)
        fprintf(out, "Only fixed %s ran: nothing to compare it with.\n", layout_name(s, best));
    else
        print_verdict(s, mover, best, worst, out);
}

/* Each line of the text; they are broken here and not where they are made, since a page has the
 * verdict in one. */
static void print_folded(char *text, FILE *out)
{
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        table_words(line, 0, out);
        fputc('\n', out);
    }
}

void summary_print(const struct summary *s, FILE *out)
{
    char *text;
    size_t size;
    print_runs(s, out);
    print_gains(s, out);
    if (s->n > 0 && pools_are_two(s->row[0].result))
        pools_print(s, out);
    fputc('\n', out);
    FILE *notes = open_memstream(&text, &size);
    print_notes(s, notes);
    summary_print_verdict(s, notes);
    fclose(notes);
    print_folded(text, out);
    free(text);
}
