/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/report/pools.h"

enum { TP, CP, DP, LAYOUTS };

static const struct layout layouts[LAYOUTS] = {{.name = "tp"}, {.name = "cp"}, {.name = "dp"}};

/* Ten seconds: two prefill groups busy for 5 s between them, four that decode for 30 s. */
static struct run_result a_run(void)
{
    struct run_result r = {
        .makespan_ps = 10 * PS_PER_S,
        .layout_ps = {[TP] = 30 * PS_PER_S, [CP] = 4 * PS_PER_S, [DP] = PS_PER_S},
        .pool = {[POOL_PREFILL] = {.replicas = 2,
                                   .busy_ps = 5 * PS_PER_S,
                                   .switches = 1200,
                                   .switch_exposed_ps = 2 * PS_PER_MS,
                                   .layout_ps = {[CP] = 4 * PS_PER_S, [DP] = PS_PER_S}},
                 [POOL_DECODE] = {.replicas = 4,
                                  .busy_ps = 30 * PS_PER_S,
                                  .layout_ps = {[TP] = 30 * PS_PER_S}}},
        .link = {.transfers = 3000, .bytes = 5LL << 30, .busiest_ps = 5 * PS_PER_S / 2},
    };
    hist_init(&r.link.wait_ps);
    hist_add(&r.link.wait_ps, 0, 18);
    hist_add(&r.link.wait_ps, 256 * PS_PER_US, 2);
    return r;
}

/* What `print` writes; to be freed. */
static char *text_of(const struct run_result *r, bool table)
{
    struct summary_row row = {.policy = "splash", .fixed_layout = -1, .result = r};
    struct summary s = {.row = &row, .n = 1, .layouts = layouts, .n_layouts = LAYOUTS};
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (table)
        pools_print(&s, f);
    else
        pools_print_layouts("splash", r, layouts, LAYOUTS, f);
    fclose(f);
    return text;
}

Test(pools_report, table_has_a_row_for_each_policy)
{
    struct run_result r = a_run();
    char *text = text_of(&r, true);
    cr_expect_str_eq(text,
                     "\n"
                     "        prefill            decode            KV link  wait ms\n"
                     "policy     busy  switches    busy  switches     busy      p50    p95\n"
                     "splash      25%     1,200     75%         0      25%        0  0.256\n");
    free(text);
    hist_release(&r.link.wait_ps);
}

Test(pools_report, layouts_of_both_pools_are_told_where_there_are_several)
{
    struct run_result r = a_run();
    char *text = text_of(&r, false);
    cr_expect_str_eq(text, "splash: prefill in 80% cp, 20% dp; decode in 100% tp\n");
    free(text);
    r.layout_ps[CP] = r.layout_ps[DP] = 0;
    text = text_of(&r, false);
    cr_expect_str_eq(text, "");
    free(text);
    hist_release(&r.link.wait_ps);
}

Test(pools_report, json_keys_and_their_order_are_the_contract)
{
    struct run_result r = a_run();
    json_t *run = json_object();
    pools_add_json(run, &r, layouts, LAYOUTS);
    char *text = json_dumps(run, JSON_COMPACT | JSON_REAL_PRECISION(3));
    cr_expect_str_eq(
        text,
        "{\"pools\":{"
        "\"prefill\":{\"replicas\":2,\"busy_frac\":0.25,\"switches\":1200,"
        "\"switch_exposed_s\":0.002,\"layout_time_frac\":{\"tp\":0.0,\"cp\":0.8,\"dp\":0.2}},"
        "\"decode\":{\"replicas\":4,\"busy_frac\":0.75,\"switches\":0,\"switch_exposed_s\":0.0,"
        "\"layout_time_frac\":{\"tp\":1.0,\"cp\":0.0,\"dp\":0.0}}},"
        "\"kv_link\":{\"transfers\":3000,\"bytes\":5368709120,\"busy_frac\":0.25,"
        "\"wait_s\":{\"p50\":0.0,\"p95\":0.000256}}}");
    free(text);
    json_decref(run);
    hist_release(&r.link.wait_ps);
}

Test(pools_report, a_mixed_run_has_nothing_to_say)
{
    struct run_result r = {.pool = {[POOL_DECODE] = {.replicas = 4}}};
    cr_expect_not(pools_are_two(&r));
    r.pool[POOL_PREFILL].replicas = 1;
    cr_expect(pools_are_two(&r));
}
