/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver: which requests begin anew, and how the ranks' results become one measured step.
 */
#include "replay/driver.h"

#include <criterion/criterion.h>

enum { AGAIN_STEPS = 5 };

static int n_forgotten;

static void count_forget(void *self, int64_t req)
{
    n_forgotten++;
    backend_host.forget(self, req);
}

static int note_forgotten(void *context, int index, const struct driver_result *r, struct err *err)
{
    (void)err;
    ((int *)context)[index] = n_forgotten;
    return r->check_error < 1e-12 ? 0 : -1;
}

Test(driver, rows_that_come_again_run_on_the_kv_that_is_there)
{
    struct plan_row first[] = {{1, 0, 20, 20}, {2, 0, 5, 2}},
                    next[] = {{1, 0, 21, 1}, {2, 0, 8, 3}};
    struct plan_row back[] = {{1, 0, 20, 1}, {2, 0, 9, 1}};
    struct plan_step step[AGAIN_STEPS] = {
        {.layout = "tp", .row = first, .n_rows = 2},
        {.layout = "tp", .row = next, .n_rows = 2},
        {.layout = "dp", .from = "tp", .mechanism = "blocking", .row = next, .n_rows = 2},
        {.layout = "dp", .row = next, .n_rows = 2},
        {.layout = "dp", .row = back, .n_rows = 2}, /* 1 breaks off, 2 goes on; then both end */
    };
    struct backend counting = backend_host;
    counting.forget = count_forget;
    struct driver_job job = {
        .plan = {.header = {.ranks = 1}, .step = step, .n = AGAIN_STEPS},
        .slice = {.layers = 1, .seed = 3},
        .backend = &counting,
    };
    struct err err = ERR_NONE;
    struct comm c;
    int forgotten[AGAIN_STEPS], fd[1] = {-1};
    cr_assert_eq(model_load(&job.slice.model, "tiny-mla", &err), 0, "%s", err.text);
    comm_adopt(&c, 0, 1, fd);
    cr_assert_eq(driver_run_rank(&job, &c, 0, note_forgotten, forgotten, &err), 0, "%s", err.text);
    comm_release(&c);
    cr_assert_eq(forgotten[3], 0);
    cr_assert_eq(forgotten[4], 3);
}

Test(driver, stages_are_the_slowest_rank_s_and_exchanges_the_least_waiting_one_s)
{
    const struct driver_result r[2] = {
        {{{100, 10, 40, 30, 20, 0, 0}, {110, 11, 41, 31, 21, 0, 0}, 120}, 0.5},
        {{{101, 12, 10, 60, 19, 3, 2}, {109, 13, 12, 61, 20, 4, 1}, 130}, 0},
    };
    struct plan_step s = {.check_error = 7};
    driver_join(&s, r, 2);
    cr_assert(s.is_measured);
    cr_assert_eq(s.meas_p50.step_ns, 101);
    cr_assert_eq(s.meas_p50.proj_ns, 12);
    cr_assert_eq(s.meas_p50.attn_ns, 40);
    cr_assert_eq(s.meas_p50.exchange_ns, 30);
    cr_assert_eq(s.meas_p50.ffn_ns, 20);
    cr_assert_eq(s.meas_p50.switch_exposed_ns, 3);
    cr_assert_eq(s.meas_p50.switch_first_ns, 2);
    cr_assert_eq(s.meas_p95.step_ns, 110);
    cr_assert_eq(s.meas_first_ns, 130);
    cr_assert_eq(s.meas_p95.exchange_ns, 31);
    cr_assert_eq(s.check_error, 0.5);
}

Test(driver, rows_are_counted_and_requests_looked_up_from_a_step_on)
{
    struct plan_row row[] = {{1, 0, 10, 4}, {2, 0, 7, 1}};
    struct plan_step step[] = {{.row = row, .n_rows = 2}, {.row = row + 1, .n_rows = 1}};
    const struct driver_job job = {.plan = {.step = step, .n = 2}};
    cr_assert_eq(driver_count_rows(&step[0]), 5);
    cr_assert(driver_needs(&job, 0, 1));
    cr_assert_not(driver_needs(&job, 1, 1));
    cr_assert(driver_needs(&job, 1, 2));
    cr_assert_not(driver_needs(&job, 2, 2));
}
