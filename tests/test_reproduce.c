/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/reproduce: every exact row is the paper's, and the pieces by hand. Of
 * predicted rows' errors nothing is asserted but that tables 4 to 6 do better than a regression.
 */
#include "sim/reproduce/reproduction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/reproduce/crossovers.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/pools.h"
#include "sim/reproduce/primitives.h"
#include "sim/reproduce/residency.h"
#include "sim/reproduce/rows.h"
#include "sim/reproduce/traffic.h"
#include "sim/study/prefill.h"

static void run(struct reproduction *r, const char *only)
{
    struct err err = ERR_NONE;
    int section = only != NULL ? reproduction_find(only, 1u << SPLASH, &err) : REPRODUCTION_ALL;
    cr_assert_eq(reproduction_run(r, 1u << SPLASH, section, &err), 0, "%s", err.text);
}

/* 5 + 5 x 3 x 2 projections, 3 byte counts, 4 x 4 loads, 12 x 2 sizes, 1 and 4 pools, 9 x 2 limits,
 * 2 scales, 1 and 9 crossovers, 3 x 12 x 4 of the manifests. */
Test(reproduce, every_exact_row_is_the_papers)
{
    struct reproduction r;
    run(&r, NULL);
    for (size_t i = 0; i < r.n; i++)
        if (r.row[i].kind == ROW_EXACT)
            cr_expect(r.row[i].ok, "%s: %s, the paper has %s", r.row[i].id, r.row[i].ours,
                      r.row[i].paper);
    struct row_count count = reproduction_count(&r);
    cr_expect_eq(count.exact, 35 + 3 + 16 + 24 + 5 + 18 + 2 + 10 + 144);
    cr_expect_eq(count.differ, 0);
    reproduction_release(&r);
}

Test(reproduce, ids_are_unique)
{
    struct reproduction r;
    run(&r, NULL);
    for (size_t i = 0; i < r.n; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(r.row[i].id, r.row[j].id) == 0)
                cr_expect(false, "two rows %s", r.row[i].id);
    reproduction_release(&r);
}

/* 11 cells, 4 constants and 6 figures of panel a a platform, 5 numbers printed of those panels; 12
 * directions, 3 scores, 2 constants and 2 spreads a platform and 3 scores of all; 128 + 136 + 116
 * measurements, 14 scores, 5 figures of the data, 12 constants with their sigmas and where the
 * start ends; 16 gains of 4 loads on 3 platforms, their throughput and switches, and those without
 * tp and dop. */
Test(reproduce, every_cell_of_the_tables_has_a_row)
{
    static const struct {
        const char *section;
        size_t n;
    } sections[] = {{"primitives", 3 * (11 + 4 + 6) + 5},
                    {"switches", 3 * (12 * 2 + 3 + 2 + 2) + 3},
                    {"throughput", 380 + 3 * (2 + 4 + 4 * 2 + 5 + 12 * 2 + 1)},
                    {"end-to-end", 3 * 4 * (2 + 16 + 2)}};
    for (int i = 0; i < 4; i++) {
        struct reproduction r;
        run(&r, sections[i].section);
        cr_expect_eq(r.n, sections[i].n, "%s: %zu rows", sections[i].section, r.n);
        cr_expect_eq(r.n_sections, 1);
        cr_expect_eq(reproduction_count(&r).exact, 0);
        reproduction_release(&r);
    }
}

Test(reproduce, the_papers_decimals_are_the_precision)
{
    struct reproduction r = {0};
    rows_exact(&r, "12.50", 12.504, "near");
    rows_exact(&r, "12.50", 12.506, "far");
    rows_exact(&r, "60288", 60289, "one token more");
    rows_exact_text(&r, "discard", "all-gather", "word");
    cr_expect(r.row[0].ok);
    cr_expect_not(r.row[1].ok);
    cr_expect_str_eq(r.row[1].ours, "12.51");
    cr_expect_not(r.row[2].ok);
    cr_expect_not(r.row[3].ok);
    cr_expect(isnan(r.row[3].error_frac));
    struct row_count count = reproduction_count(&r);
    cr_expect_eq(count.exact, 4);
    cr_expect_eq(count.differ, 3);
    reproduction_release(&r);
}

/* 0.025 is half a digit from 0.03 and 0.02. */
Test(reproduce, a_prediction_has_its_goal_or_half_a_digit)
{
    struct reproduction r = {0};
    cr_expect(rows_predicted(&r, "60.10", 66.1, 0.1, "a tenth more"));
    cr_expect_not(rows_predicted(&r, "60.10", 66.2, 0.1, "too much"));
    cr_expect(rows_predicted(&r, "0.03", 0.025, 0.1, "half a digit less"));
    cr_expect(rows_predicted(&r, "0.02", 0.025, 0.1, "half a digit more"));
    cr_expect_not(rows_predicted(&r, "0.02", 0.026, 0.1, "more than half a digit"));
    cr_expect(rows_predicted(&r, "1.5", 15, NAN, "no goal"));
    cr_expect_float_eq(r.row[1].error_frac, 66.2 / 60.1 - 1, 1e-12);
    cr_expect_eq(reproduction_count(&r).exact, 0);
    reproduction_release(&r);
}

/* The first cohort of 16, as numpy draws it: u = 0.99, 0.87, 0.34, 0.33, ..., outputs 860, 1003,
 * ... */
Test(reproduce, cohorts_are_numpys)
{
    static const int16_t first[] = {860, 1003, 881, 956, 944, 589, 626, 821};
    struct cohorts c;
    cohorts_init(&c, 16);
    cr_expect_eq(c.input_at[0], 0x1.fbcffc8b6d426p-1);
    cr_expect_eq(c.input_at[3], 0x1.4fa56623272e5p-1);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(c.output_tokens[i], first[i]);
    int64_t sum = 0;
    for (int i = 0; i < 16 * COHORTS; i++)
        sum += c.output_tokens[i];
    cr_expect_eq(sum, 2457309367);
    cohorts_release(&c);
}

/* With the room of figure 6's TP and DOP: an owner's share is uneven, cp's even, tp's the whole. */
Test(reproduce, longest_inputs_grow_with_room)
{
    struct err err = ERR_NONE;
    struct model m;
    struct layout l[LAYOUT_MAX];
    struct cohorts c;
    cr_assert_eq(model_load(&m, "deepseek-v3.2", &err), 0, "%s", err.text);
    cr_assert_eq(layout_parse_list(l, "tp,dp,cp", &m, COHORT_RANKS, &err), 3, "%s", err.text);
    cohorts_init(&c, 16);
    int64_t tp = cohorts_longest_input(&c, &l[0], 815923);
    int64_t dp = cohorts_longest_input(&c, &l[1], 815923);
    int64_t cp = cohorts_longest_input(&c, &l[2], 815923);
    cr_expect_eq(tp, 60288);
    cr_expect_eq(dp, 412417);
    cr_expect_lt(tp, dp);
    cr_expect_lt(dp, cp);
    cr_expect_lt(cohorts_longest_input(&c, &l[0], 815900), tp);
    cohorts_release(&c);
}

/* tp -> dp by hand: 0.40 + 0.25 x = 2.45 + 0.05 x + 1.2 x / (x + 8), so 0.2 x^2 - 1.65 x - 16.4 =
 * 0. */
Test(reproduce, first_crossover_by_hand)
{
    struct crossover found[CROSSOVERS_MAX];
    cr_assert_eq(crossovers_find(found), 3);
    cr_expect_str_eq(found[0].from, "tp");
    cr_expect_str_eq(found[0].to, "dp");
    cr_expect_float_eq(found[0].k_tokens, (1.65 + sqrt(1.65 * 1.65 + 0.8 * 16.4)) / 0.4, 1e-9);
    cr_expect_str_eq(found[2].to, "dop");
}

Test(reproduce, pools_of_a_rank)
{
    struct err err = ERR_NONE;
    double tokens = 0;
    cr_assert_eq(pools_table3_tokens("b200", "tp", &tokens, &err), 0, "%s", err.text);
    cr_expect_eq(tokens, 1045312);
    cr_assert_eq(pools_table3_tokens("b200", "dop", &tokens, &err), 0);
    cr_expect_eq(tokens, 8271360 / 8);
    cr_assert_eq(pools_appendix_b_tokens("cp", &tokens, &err), 0);
    cr_expect_eq(tokens, 724736);
    cr_assert_eq(pools_table3_tokens("a100", "tp", &tokens, &err), -1);
    cr_expect_str_eq(err.text, "table3: no row a100, tp");
}

/* All-gathers bring 7/8 of 16 x 262,144 x 788 B, all-to-alls an eighth of that, in as long. */
Test(reproduce, all_to_alls_reach_an_eighth)
{
    struct err err = ERR_NONE;
    struct platform p;
    struct bandwidths fitted;
    cr_assert_eq(platform_load(&p, 0, &err), 0, "%s", err.text);
    cr_assert_eq(primitives_fit(&p, &fitted, &err), 0, "%s", err.text);
    double gathered = 16 * 262144.0 * 788 * 7 / 8;
    cr_expect_float_eq(fitted.bytes_per_s[KV_GATHERED], gathered / 3.62e-3, 2e10);
    cr_expect_float_eq(fitted.bytes_per_s[KV_EXCHANGED], gathered / 8 / 3.71e-3, 2e9);
    cr_expect_float_eq(fitted.bytes_per_s[WEIGHTS_GATHERED], 124.2803 * 1048576 / 0.296e-3, 2e9);
    platform_release(&p);
}

static double step_s(const struct platform *p, int layout, const struct batch_item *item, int n)
{
    struct step_cost step;
    struct batch b = {.n = n, .item = item};
    cost_step(p->cost, layout, &b, &step);
    return (double)step.step.a_ps * 1e-12;
}

/* Three prompts of 6,000: a step has 8,192 rows, so 6,000 + 2,192, then 3,808 + 4,384, then 1,616.
 */
Test(reproduce, prefill_fills_chunks_in_order)
{
    const struct batch_item first[] = {{6000, 6000, 0}, {2192, 2192, 0}};
    const struct batch_item second[] = {{6000, 3808, 0}, {4384, 4384, 0}};
    const struct batch_item third[] = {{6000, 1616, 0}};
    struct err err = ERR_NONE;
    struct platform p;
    cr_assert_eq(platform_load(&p, 0, &err), 0, "%s", err.text);
    int tp = platform_layout(&p, "tp");
    double by_hand =
        step_s(&p, tp, first, 2) + step_s(&p, tp, second, 2) + step_s(&p, tp, third, 1);
    cr_expect_float_eq(prefill_s(p.cost, tp, 3, 6000), by_hand, 1e-12);
    platform_release(&p);
}

/* Nine prompts of 1,500 in chunks of 1,024: owner 0 has two, its second beside nobody's. */
Test(reproduce, owners_prefill_their_own_prompts)
{
    struct batch_item all[9], rest[9];
    for (int i = 0; i < 8; i++) {
        all[i] = (struct batch_item){1024, 1024, i};
        rest[i] = (struct batch_item){1500, 476, i};
    }
    const struct batch_item more = {548, 548, 0}, last = {1500, 952, 0};
    struct err err = ERR_NONE;
    struct platform p;
    cr_assert_eq(platform_load(&p, 0, &err), 0, "%s", err.text);
    int dp = platform_layout(&p, "dp");
    for (int i = 8; i > 1; i--)
        rest[i] = rest[i - 1];
    rest[1] = more;
    double by_hand = step_s(&p, dp, all, 8) + step_s(&p, dp, rest, 9) + step_s(&p, dp, &last, 1);
    cr_expect_float_eq(prefill_s(p.cost, dp, 9, 1500), by_hand, 1e-12);
    platform_release(&p);
}

static int64_t count_answers(const struct traffic *t, int64_t tokens)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += t->request[i].output_tokens == tokens;
    return n;
}

/* 128 answers of 1,024 tokens, 64 of 2,048, ..., 1 of 8,192, and the last of 9,216. */
Test(reproduce, rollouts_drain_by_halves)
{
    struct traffic t;
    traffic_make(&t, 1);
    cr_expect_str_eq(t.name, "rollout_128k");
    cr_expect_eq(t.n, 256);
    for (int half = 128, tokens = 1024; half > 0; half /= 2, tokens += 1024)
        cr_expect_eq(count_answers(&t, tokens), half, "%d tokens", tokens);
    cr_expect_eq(count_answers(&t, 9216), 1);
    for (int i = 0; i < 256; i++)
        cr_expect_eq(t.request[i].input_tokens, 131072);
    traffic_release(&t);
}

/* The first 32 requests open the sessions; request 33 is the second turn of session 1: 16,384
 * tokens, 16 blocks, the first 8 of them those of request 1. */
Test(reproduce, agents_come_back_with_longer_prompts)
{
    struct traffic t;
    traffic_make(&t, 2);
    cr_expect_eq(t.n, 32 * 16);
    cr_expect_eq(t.request[31].n_after, 0);
    const struct engine_request *first = &t.request[1], *second = &t.request[33];
    const struct engine_request *last = &t.request[32 * 15 + 1];
    cr_expect_eq(first->input_tokens, 8192);
    cr_expect_eq(first->n_hashes, 8);
    cr_expect_eq(second->input_tokens, 16384);
    cr_expect_eq(second->n_hashes, 16);
    cr_expect_eq(second->n_after, 1);
    cr_expect_eq(t.after[second->after_at], 1);
    cr_expect_eq(second->hash_at, first->hash_at);
    cr_expect_eq(last->input_tokens, 131072);
    cr_expect_eq(last->n_hashes * t.block_tokens, last->input_tokens);
    cr_expect_eq(t.hash[last->hash_at + last->n_hashes - 1] + 1, t.hash[t.request[2].hash_at]);
    traffic_release(&t);
}

Test(reproduce, mixed_prompts_have_eight_lengths)
{
    struct traffic t;
    int64_t seen[8] = {0};
    traffic_make(&t, 3);
    for (int64_t i = 0; i < t.n; i++)
        for (int k = 0; k < 8; k++)
            seen[k] += t.request[i].input_tokens == 1024 << k;
    for (int k = 0; k < 8; k++)
        cr_expect_eq(seen[k], 32);
    traffic_release(&t);
}

static double ours(const struct reproduction *r, const char *id)
{
    const struct row *row = reproduction_row(r, id);
    cr_assert_not_null(row, "%s", id);
    return strtod(row->ours, NULL);
}

/* The gain over tp, over that over dp, is tp's time over dp's, whatever splash does. A group of
 * B200 keeps the cached prompts of all sessions but under tp, so splash stays in dp there. */
Test(reproduce, gains_are_ratios_of_whole_runs)
{
    struct reproduction r;
    run(&r, "end-to-end");
    double with = ours(&r, "rollout_64k.h200.throughput_over_tp") /
                  ours(&r, "rollout_64k.h200.throughput_over_dp");
    double free_ones = ours(&r, "rollout_64k.h200.throughput_over_tp.free") /
                       ours(&r, "rollout_64k.h200.throughput_over_dp.free");
    cr_expect_float_eq(with, free_ones, 2e-3);
    cr_expect_gt(fabs(with - 1), 0.01);
    cr_expect_eq(ours(&r, "agentic.b200.switches"), 1);
    cr_expect_eq(ours(&r, "agentic.b200.throughput_over_dp"), 1);
    cr_expect_eq(ours(&r, "agentic.b200.e2e_over_dp.free"), 1);
    cr_expect_null(reproduction_row(&r, "rollout_64k.h200.throughput_over_ep"));
    reproduction_release(&r);
}

/* Six terms for each layout, held out likewise: 6.3, 4.3, 8.4% and 3.7, 3.8, 3.2%. */
Test(reproduce, throughput_is_nearer_than_a_regression)
{
    struct reproduction r;
    run(&r, "throughput");
    cr_expect_lt(ours(&r, "table4.mape"), 0.063);
    cr_expect_lt(ours(&r, "table5.mape"), 0.043);
    cr_expect_lt(ours(&r, "table6.mape"), 0.084);
    cr_expect_lt(ours(&r, "table4.regret"), 0.037);
    cr_expect_lt(ours(&r, "table5.regret"), 0.038);
    cr_expect_lt(ours(&r, "table6.regret"), 0.032);
    reproduction_release(&r);
}

/* Table 5 has 32 prompts of 64K under dp at 20.832 and 16.101. In table 4 cp, dp and dop take less
 * time for 16 prompts of 4K than of 1K, and dp for 32: 32 x 2048 / 2428 > 32 x 5120 / 6234. In
 * table 5 four prompts of 32K take less than one under cp, in table 6 eight of 64K less than four
 * under dp. */
Test(reproduce, the_tables_own_noise_by_hand)
{
    struct reproduction r;
    run(&r, "throughput");
    cr_expect_float_eq(ours(&r, "table5.repeats_differ_at_most"), 20.832 / 16.101 - 1, 1e-4);
    cr_expect_float_eq(ours(&r, "table5.mape_floor"), ours(&r, "table5.repeats_differ_by") / 2,
                       1e-4);
    cr_expect_eq(ours(&r, "table4.falls"), 4);
    cr_expect_eq(ours(&r, "table5.falls"), 1);
    cr_expect_eq(ours(&r, "table6.falls"), 1);
    reproduction_release(&r);
}

Test(reproduce, tables_are_read_strictly)
{
    struct err err = ERR_NONE;
    struct paper p;
    cr_assert_eq(paper_load(&p, "pools", "layout|tokens", &err), 0, "%s", err.text);
    cr_expect_eq(p.rows, 4);
    cr_expect_str_eq(paper_text(&p, 1, 0), "dp");
    cr_expect_eq(paper_number(&p, 1, 1), 686144);
    cr_expect_eq(paper_find(&p, "dop", NULL), 3);
    cr_expect_eq(paper_find(&p, "helix", NULL), -1);
    paper_release(&p);
    cr_expect_eq(paper_load(&p, "pools", "layout|bytes", &err), -1);
    cr_expect(strstr(err.text, "pools.csv:2: the header must be \"layout,bytes\"") != NULL, "%s",
              err.text);
    err = ERR_NONE;
    cr_expect_eq(paper_load(&p, "table9", "a|b", &err), -1);
    cr_expect(strstr(err.text, "unknown SPLASH table \"table9\"") != NULL, "%s", err.text);
}

Test(reproduce, an_unknown_section_gets_a_suggestion)
{
    struct err err = ERR_NONE;
    cr_expect_eq(reproduction_find("switch", 1u << SPLASH, &err), -1);
    cr_expect(strstr(err.text, "did you mean \"switches\"") != NULL, "%s", err.text);
}
