/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of coding agents: their presets against the published statistics, and what waits for
 * what. Runs in the root of the repository.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/made_trace.h"
#include "traces/wtt.h"

static struct trace made(const char *preset, struct workload_ask ask)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(make_trace(&t, preset, "agentic", ask, &err), 0, "%s", err.text);
    return t;
}

/* A sub-agent's first call comes at once, and a tool or a user never does. */
static bool *mark_agents(const struct trace *t)
{
    bool *is_agent = xcalloc(t->n, sizeof *is_agent);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->n_after == 1)
            is_agent[i] = r->delay_ps == 0 || is_agent[t->after[r->after_at]];
    }
    return is_agent;
}

static double mean_of(const struct trace *t, bool output)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += (double)(output ? t->request[i].output_tokens : t->request[i].input_tokens);
    return sum / (double)t->n;
}

/* Of the first prompts of sessions, the share above 100,000 tokens. */
static double cold_frac(const struct trace *t)
{
    size_t n = 0, above = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->request[i].n_after == 0;
        above += t->request[i].n_after == 0 && t->request[i].input_tokens > 100000;
    }
    return (double)above / (double)n;
}

static double median_input(const struct trace *t)
{
    int64_t *input = xcalloc(t->n, sizeof *input);
    for (size_t i = 0; i < t->n; i++)
        input[i] = t->request[i].input_tokens;
    double median = quantile_of(input, t->n, 0.5);
    free(input);
    return median;
}

Test(gen_agentic, sessions_have_the_published_number_of_calls)
{
    struct trace t = made("claude-code", (struct workload_ask){.count = 10000});
    int64_t *calls = xcalloc(t.session.n, sizeof *calls);
    bool *is_agent = mark_agents(&t);
    cr_assert_eq(t.session.n, 10000);
    for (size_t i = 0; i < t.n; i++)
        calls[t.request[i].session] += !is_agent[i];
    cr_expect_leq(error_frac(quantile_of(calls, t.session.n, 0.5), 44), 0.05);
    cr_expect_leq(error_frac(quantile_of(calls, t.session.n, 0.9), 149), 0.05);
    cr_expect_leq(error_frac(quantile_of(calls, t.session.n, 0.99), 331), 0.15);
    free(is_agent);
    free(calls);
    trace_release(&t);
}

/* Targets of the published statistics: median context 100K within 20%, 95 to 98% of tokens from an
 * unbounded cache, 130 to 300 tokens in for one out, a fifth of the sessions resumed or none. */
Test(gen_agentic, resumed_sessions_have_the_published_contexts)
{
    struct trace t = made("claude-code", (struct workload_ask){.count = 3000, .block_tokens = 64});
    double hits = trace_prefix_hit_frac_max(&t),
           per_output = mean_of(&t, false) / mean_of(&t, true);
    cr_expect_leq(error_frac(median_input(&t), 101495), 0.2, "%g", median_input(&t));
    cr_expect(hits >= 0.95 && hits <= 0.98, "%g", hits);
    cr_expect(per_output >= 130 && per_output <= 300, "%g", per_output);
    cr_expect_geq(cold_frac(&t), 0.2);
    trace_release(&t);
}

Test(gen_agentic, fresh_sessions_do_not_begin_with_much)
{
    struct trace t =
        made("claude-code-fresh", (struct workload_ask){.count = 3000, .block_tokens = 64});
    double hits = trace_prefix_hit_frac_max(&t),
           per_output = mean_of(&t, false) / mean_of(&t, true);
    cr_expect(hits >= 0.95 && hits <= 0.98, "%g", hits);
    cr_expect(per_output >= 130 && per_output <= 300, "%g", per_output);
    cr_expect_eq(cold_frac(&t), 0);
    trace_release(&t);
}

/* 24.3% of calls, in 137 of 472 sessions. */
Test(gen_agentic, sub_agents_make_the_published_share_of_calls)
{
    struct trace t = made("claude-code-agents", (struct workload_ask){.count = 10000});
    bool *is_agent = mark_agents(&t), *sends = xcalloc(t.session.n, sizeof *sends);
    size_t calls = 0, sessions = 0;
    for (size_t i = 0; i < t.n; i++) {
        calls += is_agent[i];
        sends[t.request[i].session] |= is_agent[i];
    }
    for (size_t i = 0; i < t.session.n; i++)
        sessions += sends[i];
    double frac = (double)calls / (double)t.n, of_sessions = (double)sessions / 10000;
    cr_expect_leq(error_frac(frac, 0.243), 0.1, "%g", frac);
    cr_expect_leq(error_frac(of_sessions, 0.29), 0.1, "%g", of_sessions);
    free(is_agent);
    free(sends);
    trace_release(&t);
}

/* Fan-out and fan-in: the call after sub-agents waits for the one that sent them, first in its
 * list, and for the last call of each, all of which go back to that one. */
Test(gen_agentic, a_call_waits_for_all_of_the_sub_agents_before_it)
{
    struct trace t = made("claude-code-agents", (struct workload_ask){.count = 300});
    size_t joins = 0, widest = 0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_request *r = &t.request[i];
        if (r->n_after < 2)
            continue;
        joins++;
        widest = r->n_after - 1 > widest ? r->n_after - 1 : widest;
        cr_assert_eq(r->delay_ps, 0);
        for (uint32_t k = 1; k < r->n_after; k++) {
            uint32_t at = t.after[r->after_at + k];
            while (t.request[at].delay_ps > 0)
                at = t.after[t.request[at].after_at];
            cr_assert_eq(t.after[t.request[at].after_at], t.after[r->after_at]);
        }
    }
    cr_expect_gt(joins, 100);
    cr_expect_eq(widest, 5);
    trace_release(&t);
}

/* Prompts that grow: the blocks of the one before come first, and all are whole. */
Test(gen_agentic, a_prompt_begins_with_the_one_before)
{
    struct trace t = made("claude-code", (struct workload_ask){.count = 50, .block_tokens = 64});
    size_t calls = 0, kept = 0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_request *r = &t.request[i];
        cr_assert_eq(r->n_hashes, r->input_tokens / 64);
        if (r->n_after == 0)
            continue;
        const struct trace_request *before = &t.request[t.after[r->after_at]];
        calls++;
        kept +=
            r->n_hashes >= before->n_hashes && memcmp(&t.hash[r->hash_at], &t.hash[before->hash_at],
                                                      before->n_hashes * sizeof *t.hash) == 0;
    }
    cr_expect_gt((double)kept / (double)calls, 0.97);
    cr_expect_lt((double)kept / (double)calls, 1);
    trace_release(&t);
}

/* A session of 100K tokens a call would need 1,600 hashes for each. */
Test(gen_agentic, growing_prompts_share_their_memory)
{
    struct trace t = made("claude-code", (struct workload_ask){.count = 300, .block_tokens = 64});
    size_t of_all = 0;
    for (size_t i = 0; i < t.n; i++)
        of_all += t.request[i].n_hashes;
    cr_expect_lt(8 * t.n_hashes, of_all);
    trace_release(&t);
}

static void written(const char *preset, uint64_t seed, char **data, size_t *size)
{
    struct trace t =
        made(preset, (struct workload_ask){.count = 20, .block_tokens = 64, .seed = seed});
    FILE *f = open_memstream(data, size);
    wtt_write(&t, f);
    fclose(f);
    trace_release(&t);
}

Test(gen_agentic, the_seed_decides)
{
    char *a, *b, *c;
    size_t n_a, n_b, n_c;
    written("claude-code", 1, &a, &n_a);
    written("claude-code", 1, &b, &n_b);
    written("claude-code", 2, &c, &n_c);
    cr_expect(n_a == n_b && memcmp(a, b, n_a) == 0);
    cr_expect(n_a != n_c || memcmp(a, c, n_a) != 0);
    free(a);
    free(b);
    free(c);
}

/* What is not asked for moves nothing else. */
Test(gen_agentic, neither_hashes_nor_rate_move_lengths)
{
    struct trace a = made("claude-code", (struct workload_ask){.count = 30, .block_tokens = 64});
    struct trace b = made("claude-code", (struct workload_ask){.count = 30, .rate_per_s = 5});
    cr_assert_eq(a.n, b.n);
    cr_expect_eq(mean_of(&a, false), mean_of(&b, false));
    cr_expect_eq(mean_of(&a, true), mean_of(&b, true));
    cr_expect_eq(b.n_hashes, 0);
    trace_release(&a);
    trace_release(&b);
}

Test(gen_agentic, sessions_come_at_the_rate_asked_for)
{
    struct trace t = made("claude-code", (struct workload_ask){.count = 5000, .rate_per_s = 0.5});
    int64_t last_ps = 0;
    for (size_t i = 0; i < t.n; i++)
        if (t.request[i].n_after == 0)
            last_ps = t.request[i].arrival_ps;
    cr_expect_leq(error_frac((double)last_ps / (double)PS_PER_S, 4999 / 0.5), 0.05);
    trace_release(&t);
}

Test(gen_agentic, too_many_hashes_are_refused)
{
    struct trace t;
    struct err err = ERR_NONE;
    struct workload_ask ask = {.count = 1000, .block_tokens = 4};
    cr_expect_eq(make_trace(&t, "claude-code", "agentic", ask, &err), -1);
    cr_expect_not_null(strstr(err.text, "--block-tokens"), "%s", err.text);
}
