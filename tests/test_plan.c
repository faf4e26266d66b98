/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/plan/plan.h"

#define HEADER                                                                                     \
    "{\"plan\":1,\"model\":\"m\",\"cluster\":\"c\",\"ranks\":8,\"layers\":4,\"seed\":7}\n"
#define ORIGIN                                                                                     \
    "\"device\":\"2 x NVIDIA H200, driver 580\",\"date\":\"2026-11-30\","                          \
    "\"transport\":\"direct\",\"repeats\":20,\"command\":\"wavetank-replay plan.jsonl\""
#define HEADER_AND(keys)                                                                           \
    "{\"plan\":1,\"model\":\"m\",\"cluster\":\"c\",\"ranks\":8,\"layers\":4,\"seed\":7," keys "}"  \
    "\n"
#define PRED                                                                                       \
    "\"pred\":{\"step_ns\":9,\"proj_ns\":1,\"attn_ns\":2,\"exchange_ns\":3,\"ffn_ns\":2,"          \
    "\"switch_exposed_ns\":0}"
#define ROWS                                                                                       \
    "\"rows\":[{\"req\":7,\"owner\":1,\"ctx\":65536,\"q\":1},{\"req\":8,\"owner\":0,\"ctx\":512,"  \
    "\"q\":512}],"
#define TIMES(step)                                                                                \
    "{\"step_ns\":" #step ",\"proj_ns\":1,\"attn_ns\":2,\"exchange_ns\":3,\"ffn_ns\":2,"           \
    "\"switch_exposed_ns\":0}"
#define MEASURED                                                                                   \
    "{\"step\":9,\"at_ns\":30,\"layout\":\"dp\"," ROWS PRED                                        \
    ",\"meas\":{\"p50\":" TIMES(11) ",\"p95\":" TIMES(19) "},\"check\":2.5e-10}\n"
#define WAITED                                                                                     \
    "{\"step_ns\":9,\"proj_ns\":1,\"attn_ns\":2,\"exchange_ns\":3,\"ffn_ns\":1,"                   \
    "\"switch_exposed_ns\":2,\"switch_first_ns\":1}"
#define MEASURED_FIRST                                                                             \
    "{\"step\":9,\"at_ns\":30,\"layout\":\"dp\"," ROWS "\"pred\":" WAITED                          \
    ",\"meas\":{\"p50\":" WAITED ",\"p95\":" TIMES(19) ",\"first_ns\":12},\"check\":0.0}\n"
#define STEP(i) "{\"step\":" #i ",\"at_ns\":10,\"layout\":\"dop:cache=0.25\"," ROWS PRED "}\n"
#define SWITCH                                                                                     \
    "{\"step\":5,\"at_ns\":30,\"layout\":\"dp\",\"from\":\"tp\",\"mechanism\":"                    \
    "\"overlapped\"," ROWS PRED "}\n"

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert_neq(f, NULL);
    fputs(text, f);
    fclose(f);
}

static int load(struct plan *p, const char *text, struct err *err)
{
    char path[] = "/tmp/test_plan_XXXXXX";
    close(mkstemp(path));
    write_file(path, text);
    int rc = plan_load(p, path, err);
    unlink(path);
    return rc;
}

static char *slurp(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void expect_same_bytes(const char *text)
{
    char path[] = "/tmp/test_plan_XXXXXX";
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, text, &err), 0, "%s", err.text);
    close(mkstemp(path));
    cr_assert_eq(plan_save(&p, path, &err), 0, "%s", err.text);
    cr_expect_str_eq(slurp(path), text);
    unlink(path);
    plan_release(&p);
}

Test(plan, saving_what_was_loaded_gives_the_same_bytes)
{
    expect_same_bytes(HEADER STEP(3) STEP(4) SWITCH MEASURED);
    expect_same_bytes(HEADER_AND(ORIGIN) MEASURED);
    expect_same_bytes(HEADER MEASURED_FIRST);
    expect_same_bytes(HEADER_AND("\"transport\":\"nccl\"") MEASURED);
    expect_same_bytes(HEADER_AND("\"date\":\"2026-02-01\",\"repeats\":1"));
}

Test(plan, a_measured_plan_may_say_where_it_comes_from)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, HEADER_AND(ORIGIN) MEASURED, &err), 0, "%s", err.text);
    cr_expect_str_eq(p.header.origin.device, "2 x NVIDIA H200, driver 580");
    cr_expect_str_eq(p.header.origin.date, "2026-11-30");
    cr_expect_str_eq(p.header.origin.transport, "direct");
    cr_expect_str_eq(p.header.origin.command, "wavetank-replay plan.jsonl");
    cr_expect_eq(p.header.origin.repeats, 20);
    plan_release(&p);
    cr_assert_eq(load(&p, HEADER STEP(3), &err), 0, "%s", err.text);
    cr_expect_str_eq(p.header.origin.device, "");
    cr_expect_eq(p.header.origin.repeats, 0);
    plan_release(&p);
}

Test(plan, first_layers_and_first_repeats_may_be_told_apart)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, HEADER MEASURED_FIRST, &err), 0, "%s", err.text);
    cr_expect_eq(p.step[0].pred.switch_first_ns, 1);
    cr_expect_eq(p.step[0].meas_p50.switch_first_ns, 1);
    cr_expect_eq(p.step[0].meas_p95.switch_first_ns, 0);
    cr_expect_eq(p.step[0].meas_first_ns, 12);
    plan_release(&p);
}

Test(plan, lists_the_layouts_that_its_steps_see)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, HEADER STEP(3) STEP(4) SWITCH, &err), 0, "%s", err.text);
    char *list = plan_layouts(&p);
    cr_expect_str_eq(list, "dop:cache=0.25,tp,dp");
    free(list);
    p.n = 0;
    list = plan_layouts(&p);
    cr_expect_str_eq(list, "");
    free(list);
    plan_release(&p);
}

Test(plan, fields_land_where_they_belong)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, HEADER SWITCH MEASURED, &err), 0, "%s", err.text);
    cr_expect_eq(p.header.ranks, 8);
    cr_expect_eq(p.header.seed, 7);
    cr_expect_eq(p.n, 2);
    cr_expect_not(p.step[0].is_measured);
    cr_expect(p.step[1].is_measured);
    cr_expect_eq(p.step[1].meas_p50.step_ns, 11);
    cr_expect_eq(p.step[1].meas_p95.step_ns, 19);
    cr_expect_eq(p.step[1].check_error, 2.5e-10);
    cr_expect_str_eq(p.step[0].layout, "dp");
    cr_expect_str_eq(p.step[0].from, "tp");
    cr_expect_str_eq(p.step[0].mechanism, "overlapped");
    cr_expect_eq(p.step[0].n_rows, 2);
    cr_expect_eq(p.step[0].row[1].q, 512);
    cr_expect_eq(p.step[0].row[0].ctx_tokens, 65536);
    cr_expect_eq(p.step[0].pred.exchange_ns, 3);
    plan_release(&p);
}

static const struct {
    const char *text, *part;
} bad[] = {
    {"", "empty"},
    {"{}\n", "plan"},
    {"{\"plan\":2}\n", "version 2"},
    {HEADER_AND("\"device\":7"), ".device: must be a string"},
    {HEADER_AND("\"device\":\"\""), ".device: must have 1 to 95 characters"},
    {HEADER_AND("\"date\":20261130"), ".date: must be a string"},
    {HEADER_AND("\"date\":\"30.11.2026\""), ".date: must be YYYY-MM-DD"},
    {HEADER_AND("\"date\":\"2026-13-01\""), ".date: must be YYYY-MM-DD"},
    {HEADER_AND("\"date\":\"2026-11-300\""), ".date: must be YYYY-MM-DD"},
    {HEADER_AND("\"date\":\"2026-11-3\""), ".date: must be YYYY-MM-DD"},
    {HEADER_AND("\"repeats\":0"), ".repeats"},
    {HEADER_AND("\"repeats\":\"3\""), ".repeats"},
    {HEADER_AND("\"transport\":null"), ".transport"},
    {HEADER_AND("\"commnd\":\"x\""), "commnd"},
    {HEADER "{\"step\":1", ":2:"},
    {HEADER STEP(3) STEP(3), "ascend"},
    {HEADER SWITCH "{\"step\":6,\"at_ns\":29,\"layout\":\"dp\"," ROWS PRED "}\n",
     ":3: .at_ns: earlier than the step before, which starts at 30"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\",\"from\":\"dp\",\"mechanism\":"
            "\"free\"," ROWS PRED "}\n",
     "leave its layout"},
    {HEADER "{\"stp\":1}\n", "misspelt"},
    {HEADER "{\"step\":1,\"at_ns\":-1}\n", "at_ns"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dopp\"}\n", "did you mean \"dop\""},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\",\"from\":\"tp\"}\n", "mechanism"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\",\"rows\":[]}\n", "rows"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\",\"rows\":[{\"req\":1,\"owner\":8,\"ctx\":1,"
            "\"q\":1}]}\n",
     "owner"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\",\"rows\":[{\"req\":1,\"owner\":0,\"ctx\":1,"
            "\"q\":2}]}\n",
     "more query rows"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\"," ROWS PRED ",\"meas\":{}}\n", "meas"},
    {HEADER "{\"step\":1,\"at_ns\":1,\"layout\":\"dp\"," ROWS
            "\"pred\":{\"step_ns\":9,\"proj_ns\":1,\"attn_ns\":2,\"exchange_ns\":3,\"ffn_ns\":2,"
            "\"switch_exposed_ns\":1,\"switch_first_ns\":2}}\n",
     "is a part of switch_exposed_ns"},
};

Test(plan, what_is_wrong_is_named_with_its_line)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct plan p;
        struct err err = ERR_NONE;
        cr_assert_eq(load(&p, bad[i].text, &err), -1, "%s", bad[i].text);
        cr_expect_neq(strstr(err.text, bad[i].part), NULL, "%s -> %s", bad[i].text, err.text);
    }
}

Test(plan, a_header_alone_is_a_plan_and_seeds_reach_the_largest)
{
    struct plan p;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p,
                      "{\"plan\":1,\"model\":\"m\",\"cluster\":\"c\",\"ranks\":1,"
                      "\"layers\":1,\"seed\":9223372036854775807}\n",
                      &err),
                 0, "%s", err.text);
    cr_expect_eq(p.n, 0);
    cr_expect_eq(p.header.seed, INT64_MAX);
    plan_release(&p);
}

Test(plan, a_plan_that_fails_leaves_the_target_alone)
{
    struct plan p = {.n = 42};
    struct err err = ERR_NONE;
    cr_assert_eq(load(&p, HEADER STEP(3) STEP(2), &err), -1);
    cr_expect_eq(p.n, 42);
    cr_expect_eq(p.step, NULL);
}
