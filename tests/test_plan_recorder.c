/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps of a run end up in its plan, and what a line says.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cmd/plan_recorder.h"

static struct setup setup = {
    .model = {.name = "m", .layers = 4},
    .cluster = {.name = "c", .ranks = 2},
    .layout = {{.name = "tp"}, {.name = "dp"}},
    .n_layouts = 2,
};

static const struct step_cost cost = {
    .proj = {1499, 0, 1}, .attn = {1500, 0, 1}, .exchange = {3000, 0, 1}, .ffn = {4000, 0, 1}};

/* Run `steps` steps of i + 1 rows past the recorder, some of which switch; returns the plan. */
static char *record(const struct plan_options *o, int64_t steps, const char *switches)
{
    static struct batch_item item[64];
    static uint32_t req[64];
    struct plan_recorder p;
    struct err err = ERR_NONE;
    char *text;
    size_t size;
    cr_assert_eq(plan_recorder_init(&p, o, &err), 0, "%s", err.text);
    FILE *f = open_memstream(&text, &size);
    plan_recorder_begin(&p, &setup, 7, f);
    for (int i = 0; i < 64; i++) {
        item[i] = (struct batch_item){100 + i, 1, i % 2};
        req[i] = 10 + (uint32_t)i;
    }
    for (int64_t i = 0; i < steps; i++) {
        struct batch batch = {.n_decode = (int)i + 1, .n = (int)i + 1, .item = item};
        bool to_dp = switches[i] == 'x';
        struct step_record r = {.index = i,
                                .at_ps = i * 1000000,
                                .step_ps = 12000,
                                .exposed_ps = to_dp ? 2000 : 0,
                                .layout = to_dp,
                                .from = to_dp ? 0 : -1,
                                .mechanism = MECH_OVERLAPPED,
                                .batch = &batch,
                                .req = req,
                                .cost = &cost};
        plan_recorder_step(&p, &r);
    }
    fclose(f);
    plan_recorder_release(&p);
    return text;
}

/* The step numbers of a plan, as in "0 1 2 ", checking that each has its rows. */
static void expect_steps(const struct plan_options *o, int64_t steps, const char *switches,
                         const char *expected)
{
    char numbers[256] = "", *text = record(o, steps, switches);
    size_t used = 0;
    for (const char *line = strstr(text, "{\"step\":"); line != NULL;
         line = strstr(line + 1, "{\"step\":")) {
        long step = strtol(line + 8, NULL, 10), rows = 0;
        const char *end = strchr(line, '\n');
        for (const char *c = line; c < end; c++)
            rows += strncmp(c, "{\"req\"", 6) == 0;
        cr_expect_eq(rows, step + 1);
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, "%ld ", step);
    }
    cr_expect_str_eq(numbers, expected);
    free(text);
}

Test(plan_recorder, a_line_says_what_the_step_was)
{
    struct plan_options all = {.around_switches = -1};
    char *text = record(&all, 2, ".x");
    cr_expect_str_eq(
        text,
        "{\"plan\":1,\"model\":\"m\",\"cluster\":\"c\",\"ranks\":2,\"layers\":4,\"seed\":7}\n"
        "{\"step\":0,\"at_ns\":0,\"layout\":\"tp\",\"rows\":[{\"req\":10,\"owner\":0,\"ctx\":100,"
        "\"q\":1}],\"pred\":{\"step_ns\":12,\"proj_ns\":1,\"attn_ns\":2,\"exchange_ns\":3,"
        "\"ffn_ns\":4,\"switch_exposed_ns\":0}}\n"
        "{\"step\":1,\"at_ns\":1000,\"layout\":\"dp\",\"from\":\"tp\",\"mechanism\":\"overlapped\","
        "\"rows\":[{\"req\":10,\"owner\":0,\"ctx\":100,\"q\":1},{\"req\":11,\"owner\":1,"
        "\"ctx\":101,\"q\":1}],\"pred\":{\"step_ns\":12,\"proj_ns\":1,\"attn_ns\":2,"
        "\"exchange_ns\":3,\"ffn_ns\":4,\"switch_exposed_ns\":2}}\n");
    free(text);
}

Test(plan_recorder, a_range_leaves_its_end_out)
{
    struct plan_options o = {.steps = "2:5", .around_switches = -1};
    expect_steps(&o, 10, "..........", "2 3 4 ");
    o.steps = "8:99";
    expect_steps(&o, 10, "..........", "8 9 ");
}

Test(plan_recorder, keeps_so_many_steps_on_both_sides_of_a_switch)
{
    struct plan_options o = {.around_switches = 2};
    expect_steps(&o, 20, "..........x.........", "8 9 10 11 12 ");
    expect_steps(&o, 20, "x..................x", "0 1 2 17 18 19 ");
    expect_steps(&o, 20, "......x...x.........", "4 5 6 7 8 9 10 11 12 ");
    expect_steps(&o, 20, "......x......x......", "4 5 6 7 8 11 12 13 14 15 ");
    expect_steps(&o, 20, "......xx............", "4 5 6 7 8 9 ");
    expect_steps(&o, 20, "....................", "");
    o.around_switches = 0;
    expect_steps(&o, 20, "......x...x.........", "6 10 ");
}

Test(plan_recorder, refuses_ranges_that_are_none)
{
    static const char *const bad[] = {"", "5", "5:", ":5", "5:5", "6:5", "-1:5", "1:x", "1:2:3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct plan_options o = {.steps = bad[i], .around_switches = -1};
        struct plan_recorder p;
        struct err err = ERR_NONE;
        cr_expect_eq(plan_recorder_init(&p, &o, &err), -1, "%s", bad[i]);
        plan_recorder_release(&p);
    }
}

Test(plan_recorder, refuses_a_range_and_a_margin_at_once)
{
    struct plan_options o = {.steps = "1:2", .around_switches = 3};
    struct plan_recorder p;
    struct err err = ERR_NONE;
    cr_expect_eq(plan_recorder_init(&p, &o, &err), -1);
    plan_recorder_release(&p);
}
