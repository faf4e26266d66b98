/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids: what their text means, which point has which values, and points by lot.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "sim/tune/grid.h"

static void add(struct grid *g, const char *text)
{
    struct err err = ERR_NONE;
    cr_assert_eq(grid_add(g, text, &err), 0, "%s", err.text);
}

Test(grid, a_range_has_both_ends)
{
    struct grid g = {.n = 0};
    add(&g, "margin=0:0.3:0.1");
    cr_assert_eq(g.axis[0].n, 4);
    cr_expect_str_eq(g.axis[0].value[0], "0");
    cr_expect_str_eq(g.axis[0].value[3], "0.3"); /* not 0.30000000000000004 */
    cr_expect_float_eq(g.axis[0].number[1], 0.1, 1e-15);
    grid_release(&g);
}

Test(grid, a_range_stops_before_what_it_would_pass)
{
    struct grid g = {.n = 0};
    add(&g, "persist=1:8:3");
    cr_expect_eq(g.axis[0].n, 3); /* 1 4 7 */
    add(&g, "max-running=2:5");
    cr_expect_eq(g.axis[1].n, 4);
    cr_expect_str_eq(g.axis[1].name, "max_running");
    grid_release(&g);
}

Test(grid, lists_hold_numbers_and_words)
{
    struct grid g = {.n = 0};
    add(&g, "token_budget=8K,4096,2.50");
    cr_expect_str_eq(g.axis[0].value[0], "8K");
    cr_expect(isnan(g.axis[0].number[0]));
    cr_expect_str_eq(g.axis[0].value[2], "2.5");
    add(&g, "layouts=tp,dp|tp,cp,dp,dop");
    cr_assert_eq(g.axis[1].n, 2);
    cr_expect_str_eq(g.axis[1].value[0], "tp,dp");
    add(&g, "margin.tp-dp=0.1");
    cr_expect_str_eq(g.axis[2].name, "margin.tp-dp");
    grid_release(&g);
}

Test(grid, the_last_axis_is_the_fastest)
{
    struct grid g = {.n = 0};
    add(&g, "a=1,2");
    add(&g, "b=5,6,7");
    cr_expect_eq(grid_points(&g), 6);
    cr_expect_str_eq(grid_value(&g, 4, 0), "2");
    cr_expect_str_eq(grid_value(&g, 4, 1), "6");
    cr_expect_eq(grid_at(&g, 2, 1), 2);
    grid_release(&g);
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"margin", "--grid: write NAME=VALUE,VALUE or NAME=FROM:TO:STEP, not \"margin\""},
    {"=1", "--grid: write NAME=VALUE,VALUE or NAME=FROM:TO:STEP, not \"=1\""},
    {"m=1,,2", "--grid m: an empty value"},
    {"m=0.1,0.10", "--grid m: 0.1 is named twice: drop one"},
    {"m=1:0:1", "--grid m: a range is FROM:TO:STEP with TO at least FROM and a positive STEP"},
    {"m=0:1:0", "--grid m: a range is FROM:TO:STEP with TO at least FROM and a positive STEP"},
    {"m=0:1:1e-9", "--grid m: more than 4096 values"},
    {"first=2", "--grid first: given twice: put all its values into one"},
};

Test(grid, what_is_wrong_is_said_and_changes_nothing)
{
    struct grid g = {.n = 0};
    add(&g, "first=1");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = ERR_NONE;
        cr_expect_eq(grid_add(&g, bad[i].text, &err), -1);
        cr_expect_str_eq(err.text, bad[i].message);
        cr_expect_eq(g.n, 1);
    }
    grid_release(&g);
}

Test(grid, a_choice_is_different_points_in_order)
{
    struct grid g = {.n = 0};
    add(&g, "a=1:40");
    add(&g, "b=1:25");
    static const int64_t wanted[] = {10, 499, 700, 1000, 5000};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        int64_t *point, n = grid_choose(&g, wanted[k], 7, &point);
        cr_expect_eq(n, wanted[k] < 1000 ? wanted[k] : 1000);
        for (int64_t i = 0; i < n; i++) {
            cr_expect(point[i] >= 0 && point[i] < 1000);
            cr_expect(i == 0 || point[i] > point[i - 1]);
        }
        free(point);
    }
    grid_release(&g);
}

Test(grid, every_point_is_as_likely)
{
    struct grid g = {.n = 0};
    int count[10] = {0};
    add(&g, "a=1:10");
    for (uint64_t seed = 0; seed < 3000; seed++) {
        int64_t *point, n = grid_choose(&g, seed % 2 == 0 ? 3 : 7, seed, &point);
        for (int64_t i = 0; i < n; i++)
            count[point[i]]++;
        free(point);
    }
    for (int i = 0; i < 10; i++) /* 1500 on average, deviation 18 */
        cr_expect(count[i] > 1410 && count[i] < 1590, "%d: %d", i, count[i]);
    grid_release(&g);
}
