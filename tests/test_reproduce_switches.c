/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what moves in a switch of the SPLASH paper, and of what that takes: the relations that
 * hold between rows whatever the fitted constants are, by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/report/reproduction_charts.h"
#include "sim/report/reproduction_report.h"
#include "sim/reproduce/platform.h"
#include "sim/reproduce/rows.h"

static const double handoff_ms = 0.025;

static void run(struct reproduction *r, const char *section)
{
    struct err err = ERR_NONE;
    int only = reproduction_find(section, 1u << SPLASH, &err);
    cr_assert_eq(reproduction_run(r, 1u << SPLASH, only, &err), 0, "%s", err.text);
}

static const struct row *row_of(const struct reproduction *r, const char *id)
{
    const struct row *row = reproduction_row(r, id);
    cr_assert(row != NULL, "no row %s", id);
    return row;
}

static double ours(const struct reproduction *r, const char *id)
{
    return strtod(row_of(r, id)->ours, NULL);
}

/* Without rounding. */
static double predicted(const struct row *row)
{
    return strtod(row->paper, NULL) * (1 + row->error_frac);
}

static void expect_near(double value, double expected, double within_frac)
{
    cr_expect_float_eq(value, expected, within_frac * fabs(expected), "%g, expected %g", value,
                       expected);
}

Test(reproduce_switches, requests_are_dealt_out_in_turn)
{
    struct platform p = {.cluster.ranks = 8};
    int64_t owned[RANKS_MAX];
    platform_deal(&p, 10, 100, owned);
    cr_expect_eq(owned[0], 200);
    cr_expect_eq(owned[1], 200);
    cr_expect_eq(owned[2], 100);
    cr_expect_eq(owned[7], 100);
    platform_deal(&p, 1, 100, owned);
    cr_expect_eq(owned[0], 100);
    cr_expect_eq(owned[1], 0);
    cr_expect_eq(owned[7], 0);
}

/* 7/8 of 262,144 tokens of 788 B (61,464 in 78 layers) leave an owner of one request: 180.75 MB;
 * an owner of two sends twice as much. Eq. 14: 3.8065 x 1/16, 4/16, 8/16. */
Test(reproduce_switches, an_exchange_takes_as_long_as_its_busiest_owner)
{
    struct reproduction r;
    run(&r, "primitives");
    double gb_per_s = ours(&r, "figure5.kv_all-to-all.gb_per_s");
    double one_ms = 180.748288 / gb_per_s;
    expect_near(ours(&r, "figure5a.1x262144.kv_ms"), one_ms, 1e-3);
    expect_near(ours(&r, "figure5a.4x262144.kv_ms"), one_ms, 1e-3);
    expect_near(ours(&r, "figure5a.8x262144.kv_ms"), one_ms, 1e-3);
    expect_near(predicted(row_of(&r, "figure5a.16x262144.kv_ms")), 2 * one_ms, 1e-3);
    expect_near(predicted(row_of(&r, "figure5a.16x16384.kv_ms")), 2 * one_ms / 16, 1e-3);
    expect_near(ours(&r, "figure5a.1x262144.linear_ms"), 0.23791, 1e-3);
    expect_near(ours(&r, "figure5a.4x262144.linear_ms"), 0.95163, 1e-3);
    expect_near(ours(&r, "figure5a.8x262144.linear_ms"), 1.90325, 1e-3);
    reproduction_release(&r);
}

/* What a layer takes, alone with one constant each: B200 and H200 show one of 78 and 61 layers. */
Test(reproduce_switches, the_first_layer_shows_where_no_layer_comes_before)
{
    static const struct {
        const char *table, *figure;
        int layers;
    } of[] = {{"table1", "figure5", 78}, {"table8", "figure11", 61}};
    struct reproduction switches, primitives;
    run(&switches, "switches");
    run(&primitives, "primitives");
    for (size_t i = 0; i < 2; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s.fitted.stretch", of[i].table);
        double stretch = ours(&switches, id);
        snprintf(id, sizeof id, "%s.fitted.fixed_ms", of[i].table);
        double fixed_ms = ours(&switches, id);
        snprintf(id, sizeof id, "%s.tp-cp.weights_ms", of[i].figure);
        double alone_ms = predicted(row_of(&primitives, id));
        double layer_ms = stretch * alone_ms + fixed_ms;
        snprintf(id, sizeof id, "%s.tp-cp.overlapped_ms", of[i].table);
        expect_near(predicted(row_of(&switches, id)), layer_ms + handoff_ms, 1e-3);
        snprintf(id, sizeof id, "%s.tp-cp.blocking_ms", of[i].table);
        expect_near(predicted(row_of(&switches, id)), of[i].layers * layer_ms + handoff_ms, 1e-3);
    }
    reproduction_release(&primitives);
    reproduction_release(&switches);
}

/* Weights and KV of one layer each by its primitive, and the handoff; blocking, all that DOP to DP
 * and DP to CP take by themselves, over 11 layers. */
Test(reproduce_switches, layers_without_kv_hide_preparation)
{
    struct reproduction switches, primitives;
    run(&switches, "switches");
    run(&primitives, "primitives");
    double weights_ms = predicted(row_of(&primitives, "figure9.dop-dp.weights_ms"));
    double kv_ms = predicted(row_of(&primitives, "figure9.dp-cp.kv_ms"));
    expect_near(predicted(row_of(&switches, "table7.dop-dp.overlapped_ms")),
                weights_ms + handoff_ms, 1e-6);
    expect_near(predicted(row_of(&switches, "table7.dp-cp.overlapped_ms")), kv_ms + handoff_ms,
                1e-6);
    expect_near(predicted(row_of(&switches, "table7.dop-cp.overlapped_ms")),
                weights_ms + kv_ms + handoff_ms, 1e-6);
    expect_near(predicted(row_of(&switches, "table7.dop-cp.blocking_ms")) + handoff_ms,
                predicted(row_of(&switches, "table7.dop-dp.blocking_ms")) +
                    predicted(row_of(&switches, "table7.dp-cp.blocking_ms")),
                1e-6);
    reproduction_release(&primitives);
    reproduction_release(&switches);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* At the least squares the derivative by a scale of both constants is zero: over rows,
 * sum of q (q - 1) with q = ours / paper, less the handoff. */
Test(reproduce_switches, constants_have_the_least_error)
{
    static const struct {
        const char *table;
        bool overlapped; /* says something about them */
    } of[] = {{"table1.", true}, {"table7.", false}, {"table8.", true}};
    struct reproduction r;
    run(&r, "switches");
    for (size_t i = 0; i < 3; i++) {
        double slope = 0;
        for (const struct row *row = r.row; row < r.row + r.n; row++) {
            bool counts = ends_with(row->id, ".blocking_ms") ||
                          (of[i].overlapped && ends_with(row->id, ".overlapped_ms"));
            if (!counts || strncmp(row->id, of[i].table, strlen(of[i].table)) != 0)
                continue;
            double q = (predicted(row) - handoff_ms) / (strtod(row->paper, NULL) - handoff_ms);
            slope += q * (q - 1);
        }
        cr_expect_float_eq(slope, 0, 1e-6, "%s: %g", of[i].table, slope);
    }
    reproduction_release(&r);
}

/* Blocking on B200: 1030.55 / 635.05 = 1.623 from CP to DP, 1298.42 / 667.31 = 1.946 from DOP to
 * CP. From TP to DOP 0.07 / 0.03 would be more. */
Test(reproduce_switches, a_spread_is_the_papers_and_not_predicted)
{
    struct reproduction r;
    struct row_text text;
    run(&r, "switches");
    const struct row *row = row_of(&r, "table1.blocking_p95_over_p50");
    cr_expect_str_eq(row->paper, "1.62 to 1.95");
    cr_expect_str_eq(row->ours, "");
    cr_expect(isnan(row->error_frac));
    cr_expect(isnan(row->goal));
    row_text(row, &text);
    cr_expect_str_eq(text.word, "not predicted");
    cr_expect_str_eq(text.error, "");
    reproduction_release(&r);
}

/* Axes: 330 after 60 for 256K; 272 above 280 for 4.4 ms. 4 ms are 247.3 of them, 3 ms 185.5, 1 ms
 * 61.8, and 16K of 256K 20.6. */
Test(reproduce_switches, a_panel_has_lines_of_each_batch_and_what_is_printed)
{
    struct reproduction r = {0};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    rows_predicted(&r, "4.000", 3, NAN, "figure5a.16x262144.kv_ms");
    rows_predicted(&r, "1.00", 1.1, NAN, "figure5a.16x16384.kv_ms");
    rows_figure(&r, 1, NAN, true, "figure5a.4x262144.linear_ms");
    rows_figure(&r, 3, NAN, true, "figure5.kv_all-to-all.volume_exact_ms");
    primitives_charts(&r, out);
    fclose(out);
    static const char *const part[] = {
        "class=\"line s3\" d=\"M60.0 280.0L390.0 32.7\"",
        "class=\"line dash s3\" d=\"M60.0 280.0L390.0 94.5\"",
        "class=\"line s1\" d=\"M60.0 280.0L390.0 218.2\"",
        "class=\"line dash s4\" d=\"M60.0 280.0L390.0 94.5\"",
        "class=\"mark c3\" x=\"390.0\" y=\"32.7\"><title>figure5a.16x262144.kv_ms: paper 4.000",
        "class=\"mark c3\" x=\"80.6\" y=\"218.2\"><title>figure5a.16x16384.kv_ms: paper 1.00",
    };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        cr_expect(strstr(text, part[i]) != NULL, "no %s", part[i]);
    free(text);
    reproduction_release(&r);
}
