/* SPDX-License-Identifier: Apache-2.0
 *
 * Rollout steps: their presets against the published shapes, and the barrier. Runs in the root of
 * the repository.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/made_trace.h"

static struct trace made(const char *preset, struct workload_ask ask)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(make_trace(&t, preset, "rollout", ask, &err), 0, "%s", err.text);
    return t;
}

static struct trace made_of(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    struct jobj root;
    struct workload_ask ask = {.block_tokens = 16};
    json_t *json = json_loads(text, 0, NULL);
    cr_assert_not_null(json);
    cr_assert_eq(jobj_root(&root, "p.json", json, &err), 0);
    cr_assert_eq(workload_make(&t, &workload_rollout, "p", &root, &ask, &err), 0, "%s", err.text);
    json_decref(json);
    return t;
}

#define VALUE(v) "{\"value\":" v ",\"source\":\"s\"}"
#define SMALL(steps, prompts, group, of_group, carry)                                              \
    "{\"workload\":\"rollout\",\"steps\":" VALUE(steps) ",\"prompts\":" VALUE(                     \
        prompts) ",\"group\":" VALUE(group) ",\"group_frac\":" VALUE(of_group) ",\"carry_"         \
                                                                               "frac\":" VALUE(    \
                                                                                   carry) ",\"inp" \
                                                                                          "ut_"    \
                                                                                          "tokens" \
                                                                                          "\":{"   \
                                                                                          "\"kind" \
                                                                                          "\":"    \
                                                                                          "\"tabl" \
                                                                                          "e\","   \
                                                                                          "\"quan" \
                                                                                          "tiles"  \
                                                                                          "\":[["  \
                                                                                          "0,100]" \
                                                                                          ",[1,"   \
                                                                                          "200]]," \
                                                                                          "\"sour" \
                                                                                          "ce\":"  \
                                                                                          "\"s\"}" \
                                                                                          ",\"out" \
                                                                                          "put_"   \
                                                                                          "tokens" \
                                                                                          "\":{"   \
                                                                                          "\"kind" \
                                                                                          "\":"    \
                                                                                          "\"logn" \
                                                                                          "ormal"  \
                                                                                          "\","    \
                                                                                          "\"medi" \
                                                                                          "an\":"  \
                                                                                          "500,"   \
                                                                                          "\"sigm" \
                                                                                          "a\":1," \
                                                                                          "\"sour" \
                                                                                          "ce\":"  \
                                                                                          "\"s\"}" \
                                                                                          ",\"tra" \
                                                                                          "in_"    \
                                                                                          "s\":{"  \
                                                                                          "\"kind" \
                                                                                          "\":"    \
                                                                                          "\"cons" \
                                                                                          "tant\"" \
                                                                                          ","      \
                                                                                          "\"valu" \
                                                                                          "e\":"   \
                                                                                          "60,"    \
                                                                                          "\"sour" \
                                                                                          "ce\":"  \
                                                                                          "\"s\"}" \
                                                                                          "}"

/* The reasoning outputs of DeepSeek-R1: p99 / p50 from 10 to 20, and some at the cap. */
Test(gen_rollout, lengths_have_a_long_tail_and_a_mass_at_the_cap)
{
    struct trace t = made("deepseek-r1", (struct workload_ask){.count = 100});
    int64_t *output = xcalloc(t.n, sizeof *output);
    size_t at_cap = 0;
    cr_assert_eq(t.n, 100 * 32 * 16);
    for (size_t i = 0; i < t.n; i++) {
        output[i] = t.request[i].output_tokens;
        at_cap += output[i] == 32768;
    }
    double p50 = quantile_of(output, t.n, 0.5), p90 = quantile_of(output, t.n, 0.9);
    double p99 = quantile_of(output, t.n, 0.99);
    cr_expect_leq(error_frac(p50, 792), 0.05, "%g", p50);
    cr_expect_leq(error_frac(p90, 3432), 0.05, "%g", p90);
    cr_expect_leq(error_frac(p99, 12607), 0.15, "%g", p99);
    cr_expect(p99 / p50 >= 10 && p99 / p50 <= 20);
    cr_expect_eq(output[t.n - 1], 32768);
    cr_expect_gt(at_cap, t.n / 5000);
    free(output);
    trace_release(&t);
}

Test(gen_rollout, presets_have_the_published_shape)
{
    static const struct {
        const char *name;
        size_t samples;
        int64_t cap;
    } presets[] = {
        {"dapo", 512 * 16, 20480}, {"verl-grpo", 1024 * 5, 1024}, {"long-tail", 256 * 8, 32768}};
    for (size_t k = 0; k < sizeof presets / sizeof *presets; k++) {
        struct trace t = made(presets[k].name, (struct workload_ask){.count = 1});
        size_t at_cap = 0;
        cr_expect_eq(t.n, presets[k].samples);
        for (size_t i = 0; i < t.n; i++) {
            cr_assert_leq(t.request[i].output_tokens, presets[k].cap);
            at_cap += t.request[i].output_tokens == presets[k].cap;
        }
        cr_expect_gt(at_cap, 0);
        trace_release(&t);
    }
}

Test(gen_rollout, a_step_waits_for_all_of_the_one_before)
{
    struct trace t = made_of(SMALL("3", "2", "4", "0", "0"));
    cr_assert_eq(t.n, 24);
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_request *r = &t.request[i];
        size_t step = i / 8, seen = 0;
        cr_expect_eq(r->n_after, step == 0 ? 0 : 8);
        cr_expect_eq(r->arrival_ps, (int64_t)step * 60 * PS_PER_S);
        cr_expect_eq(r->delay_ps, step == 0 ? 0 : 60 * PS_PER_S);
        for (uint32_t k = 0; k < r->n_after; k++)
            seen |= (size_t)1 << t.after[r->after_at + k];
        cr_expect_eq(seen, step == 0 ? 0 : (size_t)0xFF << (8 * (step - 1)));
    }
    trace_release(&t);
}

/* Of 8 samples the 2 longest run on. */
Test(gen_rollout, a_partial_rollout_does_not_wait_for_the_longest)
{
    struct trace t = made_of(SMALL("2", "2", "4", "0", "0.25"));
    int64_t longest = 0;
    size_t longer = 0;
    cr_assert_eq(t.n, 16);
    for (size_t i = 8; i < t.n; i++)
        cr_expect_eq(t.request[i].n_after, 6);
    for (uint32_t k = 0; k < 6; k++) {
        int64_t output = t.request[t.after[t.request[8].after_at + k]].output_tokens;
        longest = output > longest ? output : longest;
    }
    for (size_t i = 0; i < 8; i++)
        longer += t.request[i].output_tokens > longest;
    cr_expect_eq(longer, 2);
    trace_release(&t);
}

Test(gen_rollout, samples_of_a_prompt_share_its_blocks)
{
    struct trace t = made_of(SMALL("1", "3", "4", "0", "0"));
    struct trace_prefix p = trace_prefix_max(&t);
    int64_t blocks = 0;
    for (size_t i = 0; i < t.n; i += 4)
        for (size_t k = i; k < i + 4; k++) {
            cr_expect_eq(t.request[k].input_tokens, t.request[i].input_tokens);
            cr_expect_eq(t.request[k].n_hashes, t.request[i].input_tokens / 16);
            blocks += k > i ? t.request[k].n_hashes : 0;
        }
    cr_expect_eq(p.hit_blocks, blocks);
    cr_expect_eq(p.full_hits, 9);
    trace_release(&t);
}

/* Correlation of log-lengths between the two samples of a group. */
static double group_correlation(const struct trace *t)
{
    double sx = 0, sxx = 0, sxy = 0, n = (double)t->n;
    for (size_t i = 0; i < t->n; i += 2) {
        double x = log((double)t->request[i].output_tokens);
        double y = log((double)t->request[i + 1].output_tokens);
        sx += x + y;
        sxx += x * x + y * y;
        sxy += 2 * x * y;
    }
    double mean = sx / n;
    return (sxy / n - mean * mean) / (sxx / n - mean * mean);
}

Test(gen_rollout, lengths_of_a_group_are_as_alike_as_asked_for)
{
    struct trace apart = made_of(SMALL("1", "20000", "2", "0", "0"));
    struct trace alike = made_of(SMALL("1", "20000", "2", "0.5", "0"));
    struct trace same = made_of(SMALL("1", "20000", "2", "1", "0"));
    cr_expect_float_eq(group_correlation(&apart), 0, 0.02);
    cr_expect_float_eq(group_correlation(&alike), 0.5, 0.02);
    cr_expect_float_eq(group_correlation(&same), 1, 1e-9);
    trace_release(&apart);
    trace_release(&alike);
    trace_release(&same);
}

/* 8,192 samples a step: 67 million waits of one step for another, by 8,192 entries. */
Test(gen_rollout, a_barrier_takes_one_list, .timeout = 60)
{
    struct trace t = made("dapo", (struct workload_ask){.count = 20});
    cr_assert_eq(t.n, 20 * 8192);
    cr_expect_eq(t.n_after, 19 * 8192);
    for (size_t i = 8192; i < t.n; i++) {
        cr_assert_eq(t.request[i].n_after, 8192);
        cr_assert_eq(t.request[i].after_at, (i / 8192 - 1) * 8192);
    }
    cr_expect_eq(trace_sessions(&t).chain_max, 20);
    trace_release(&t);
}
