/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a validation, from a plan and a measurement made up by hand.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/report/validation_timeline.h"
#include "tests/timeline_reader.h"

enum { STEPS = 3 };

/* Step 0 was predicted at 1000 ns and took 800; step 1 switches, for 100 of 700 ns against 200 of
 * 900; of step 2 no stage was measured, and the stages of step 1 take longer than it does. */
static const struct plan_times predicted[STEPS] = {{1000, 100, 600, 0, 200, 0, 0},
                                                   {700, 50, 300, 40, 200, 100, 0},
                                                   {500, 100, 100, 100, 100, 0, 0}};
static const struct plan_times measured[STEPS] = {
    {800, 100, 400, 0, 200, 0, 0}, {900, 50, 400, 40, 250, 200, 0}, {400, 0, 0, 0, 0, 0, 0}};

static char path[64];

static void name_file(void)
{
    snprintf(path, sizeof path, "/tmp/wavetank-validation-%ld.json", (long)getpid());
}

static void remove_file(void)
{
    remove(path);
}

TestSuite(validation_timeline, .init = name_file, .fini = remove_file);

static void write_file(void)
{
    static const char *layouts[] = {"tp", "dp"};
    static struct plan_row row = {.req = 1, .ctx_tokens = 2000, .q = 1};
    static struct plan_step at[STEPS];
    struct joined_step step[STEPS];
    const struct plan_header header = {.model = "m", .cluster = "c"};
    const struct validation_about about = {.version = "0", .plan = &header};
    struct validation v = {.joined = {.step = step, .n = STEPS, .layout = layouts, .n_layouts = 2}};
    struct err err = ERR_NONE;
    for (int i = 0; i < STEPS; i++) {
        at[i] = (struct plan_step){.step = 40 + i, .row = &row, .n_rows = 1};
        step[i] = (struct joined_step){
            .at = &at[i],
            .pred = &predicted[i],
            .meas = &measured[i],
            .layout = i > 0,
            .from = i == 1 ? 0 : -1,
            .mechanism = MECH_BLOCKING,
            .error = (double)predicted[i].step_ns / (double)measured[i].step_ns - 1,
        };
    }
    cr_assert_eq(validation_timeline(&v, &about, path, &err), 0, "%s", err.text);
}

static bool has(const char *line)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return strstr(text, line) != NULL;
}

/* 1000 ns, then 900 ns, are what the slower sides take. */
Test(validation_timeline, begins_every_step_on_both_sides_at_once)
{
    write_file();
    cr_expect(has("\"pid\":1,\"tid\":10,\"ts\":1.000,\"dur\":0.700,\"name\":\"dp\""));
    cr_expect(has("\"pid\":2,\"tid\":20,\"ts\":1.000,\"dur\":0.900,\"name\":\"dp\""));
    cr_expect(has("\"pid\":1,\"tid\":10,\"ts\":1.900,\"dur\":0.500,\"name\":\"dp\""));
    cr_expect(has("\"pid\":2,\"tid\":20,\"ts\":1.900,\"dur\":0.400,\"name\":\"dp\""));
    cr_expect(has("{\"step\":41,\"requests\":1,\"rows\":1,\"prefill_rows\":0,"
                  "\"ctx_tokens_mean\":2000,\"predicted_ns\":700,\"measured_ns\":900}"));
}

Test(validation_timeline, says_how_far_off_each_step_is)
{
    write_file();
    cr_expect(has("\"ts\":0.000,\"name\":\"step error\",\"args\":{\"percent\":25.000}"));
    cr_expect(has("\"ts\":1.000,\"name\":\"step error\",\"args\":{\"percent\":-22.222}"));
    cr_expect(has("\"ts\":1.900,\"name\":\"step error\",\"args\":{\"percent\":25.000}"));
}

/* Parts: 1000 + 600 + 500 and 800 + 700 ns; step 1's measured stages, 740 ns, are cut at its end.
 */
Test(validation_timeline, is_sound_and_adds_up)
{
    write_file();
    struct timeline_totals sum = timeline_read(path);
    cr_expect_eq(sum.spans, 2 * STEPS);
    cr_expect_eq(sum.busy_ns, 1000 + 700 + 500 + 800 + 900 + 400);
    cr_expect_eq(sum.part_ns, 1000 + 600 + 500 + 800 + 700);
    cr_expect_eq(sum.switches, 2);
    cr_expect_eq(sum.exposed_ns, 300);
    cr_expect_eq(sum.events['s'], 2);
    cr_expect_eq(sum.events['C'], STEPS);
}
