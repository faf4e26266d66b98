/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the Helix paper's reproduction: exact rows, the search's assumptions, and that the three
 * fitted constants are those that the scan finds. Nothing depends on predicted rows' goals.
 */
#include "sim/reproduce/helix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/reproduce/reproduction.h"

static void run(struct reproduction *r, const char *only)
{
    struct err err = ERR_NONE;
    int section = only != NULL ? reproduction_find(only, 1u << HELIX, &err) : REPRODUCTION_ALL;
    cr_assert_eq(reproduction_run(r, 1u << HELIX, section, &err), 0, "%s", err.text);
}

static double ours(const struct reproduction *r, const char *id)
{
    const struct row *row = reproduction_row(r, id);
    cr_assert(row != NULL, "no row %s", id);
    return strtod(row->ours, NULL);
}

/* 2 byte counts, 7 x 2 reads by TP, 5 by context, 4 by KVP, 5 of the example. */
Test(helix, every_exact_row_is_the_papers)
{
    struct reproduction r;
    run(&r, NULL);
    for (size_t i = 0; i < r.n; i++) {
        if (r.row[i].kind == ROW_EXACT)
            cr_expect(r.row[i].ok, "%s: %s, the paper has %s", r.row[i].id, r.row[i].ours,
                      r.row[i].paper);
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(r.row[i].id, r.row[j].id);
    }
    cr_expect_eq(reproduction_count(&r).exact, 2 + 14 + 5 + 4 + 5);
    cr_expect_eq(reproduction_count(&r).differ, 0);
    reproduction_release(&r);
}

/* 8 x 2 x 8 x 128 x 10^6 / 2 B at 8000 GB/s; (2 x 16384^2 / 64 + 2 x 16384 x 128 + 3 x 16384 x
 * 1024) / 2 B. */
Test(helix, the_roofline_by_hand)
{
    struct reproduction r;
    run(&r, "roofline");
    cr_expect_float_eq(ours(&r, "helix.figure1.kv_ms.tp.1"), 1.024, 1e-9);
    cr_expect_float_eq(ours(&r, "helix.figure1.kv_ms.tp.64"), 0.128, 1e-9);
    cr_expect_float_eq(ours(&r, "helix.figure1.weights_ms.tp.64"), 0.0039, 1e-9);
    cr_expect_float_eq(ours(&r, "helix.figure1.kv_ms.kvp.8"), 0.016, 1e-9);
    cr_expect_float_eq(ours(&r, "helix.kv_kb.deepseek-r1"), 17.568, 1e-9);
    reproduction_release(&r);
}

Test(helix, every_figure_has_its_row)
{
    static const char *const ids[] = {"helix.r1.concurrency",  "helix.r1.interactivity",
                                      "helix.405b.throughput", "helix.405b.interactivity",
                                      "helix.hopb.405b",       "helix.hopb.r1"};
    struct reproduction r;
    run(&r, NULL);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        cr_expect(reproduction_row(&r, ids[i]) != NULL, "no row %s", ids[i]);
    reproduction_release(&r);
}

/* What is said of the constants and of the exchange in the sections' texts. */
Test(helix, the_constants_are_the_nearest)
{
    struct reproduction r;
    run(&r, "assumptions");
    cr_expect_eq(ours(&r, "helix.nearest.collective_us"), helix_setting.collective_us);
    cr_expect_eq(ours(&r, "helix.nearest.layer_us"), helix_setting.layer_us);
    cr_expect_eq(ours(&r, "helix.nearest.exchange_row_us"), helix_setting.exchange_row_us);
    cr_expect_eq(ours(&r, "helix.hopb.405b.without_exchange_row"), 0);
    cr_expect_eq(ours(&r, "helix.hopb.r1.exchange_of_fp4_bytes"), 0.01);
    cr_expect_eq(ours(&r, "helix.hopb.405b.exchange_of_fp4_bytes"), 0);
    cr_expect_str_eq(reproduction_row(&r, "helix.hopb.r1.by.exchange_row_us.0-4")->note,
                     "not reached");
    cr_expect_str_eq(reproduction_row(&r, "helix.r1.interactivity.by.memory_frac.0.6-1")->note,
                     "no effect");
    reproduction_release(&r);
}

static void search(struct helix_case *c, int model, const struct helix_setting *s)
{
    struct err err = ERR_NONE;
    struct helix_data d;
    cr_assert_eq(helix_load(&d, &err), 0, "%s", err.text);
    helix_search(c, &d, model, s);
}

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

Test(helix, gpus_and_batches_are_powers_of_two)
{
    struct helix_case c;
    search(&c, HELIX_R1, &helix_setting);
    cr_assert_gt(c.helix.n, 5);
    for (size_t i = 0; i < c.helix.n; i++) {
        cr_expect(is_power_of_two(c.helix.point[i].batch));
        cr_expect(is_power_of_two(mapping_gpus(&c.helix.point[i].mapping)));
    }
    cr_expect_eq(c.medha.n, 0); /* the paper does not apply it to MLA */
    helix_case_release(&c);
}

/* The baseline's fastest has one request on 64 GPUs; Helix has 32 on as many at that TTL.
 */
Test(helix, concurrency_counts_requests_at_equal_ttl)
{
    struct helix_case c;
    struct helix_gains g;
    search(&c, HELIX_R1, &helix_setting);
    helix_gains(&c, HELIX_R1, &g);
    const struct pareto_point *first = &c.baseline.point[0], *p = c.helix.point;
    while (p->batch < 32)
        p++;
    cr_expect_eq(first->batch, 1);
    cr_expect_eq(mapping_gpus(&first->mapping), 64);
    cr_expect_eq(mapping_gpus(&p->mapping), 64);
    cr_expect_float_eq(g.figure[HELIX_CONCURRENCY], 32 * p->tok_s_user / first->tok_s_user, 1e-9);
    cr_expect_float_eq(g.figure[HELIX_INTERACTIVITY], g.gain.interactivity.ratio, 1e-12);
    helix_case_release(&c);
}

Test(helix, interactivity_of_405b_is_the_maximum_achievable)
{
    struct helix_case c;
    struct helix_gains g;
    search(&c, HELIX_405B, &helix_setting);
    helix_gains(&c, HELIX_405B, &g);
    cr_expect_float_eq(g.figure[HELIX_INTERACTIVITY],
                       c.helix.point[0].tok_s_user / c.baseline.point[0].tok_s_user, 1e-12);
    cr_expect_gt(c.medha.n, 0);
    helix_case_release(&c);
}

/* Half the peak of HBM: what is read takes twice as long, fixed times stay. */
Test(helix, a_setting_changes_the_machine)
{
    struct helix_setting s = helix_setting;
    struct helix_case all, half;
    search(&all, HELIX_405B, &s);
    s.hbm_frac = 0.5;
    s.exchanged_bytes = 1;
    search(&half, HELIX_405B, &s);
    cr_expect_float_eq(half.cluster.device.hbm_gb_per_s, 4000, 1e-9);
    cr_expect_eq(half.model.activations, FMT_FP8);
    cr_expect_eq(all.model.activations, FMT_BF16);
    cr_expect_lt(half.helix.point[0].tok_s_user, all.helix.point[0].tok_s_user);
    cr_expect_gt(2 * half.helix.point[0].tok_s_user, all.helix.point[0].tok_s_user);
    helix_case_release(&all);
    helix_case_release(&half);
}

Test(helix, sections_are_looked_up_in_the_papers_given)
{
    struct err err = ERR_NONE;
    cr_expect_eq(reproduction_find("roofline", 1u << SPLASH, &err), -1);
    err = ERR_NONE;
    cr_expect_geq(reproduction_find("roofline", 1u << SPLASH | 1u << HELIX, &err), 0);
    cr_expect_eq(reproduction_find("ablatoin", 1u << HELIX, &err), -1);
    cr_expect(strstr(err.text, "did you mean \"ablation\"") != NULL, "%s", err.text);
    err = ERR_NONE;
    cr_expect_eq(publication_find("medha", &err), -1);
    cr_expect(strstr(err.text, "there are splash and helix") != NULL, "%s", err.text);
}
