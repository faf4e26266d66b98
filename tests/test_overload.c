/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens when there is too little: room for KV, time, or both.
 */
#include "tests/engine_world.h"

static void make(struct world *w, const char *layouts, int ranks)
{
    world_init(w, "tiny-mla", layouts, ranks);
    world_compile(w, 0);
}

/* From admission to the last token, of n requests alike that run alone. */
static int64_t service_ps(const struct world *w, int n, int64_t input_tokens, int64_t output_tokens)
{
    int64_t ps = world_step_ps(w, n, input_tokens, (int)input_tokens);
    for (int64_t made = 1; made < output_tokens; made++)
        ps += world_step_ps(w, n, input_tokens + made, 1);
    return ps;
}

/* Three requests come at a time, twice as fast as three can be served, and KV holds no fourth. The
 * j-th three wait for the j before them to be served, less the time at which they came:
 * j D - j D / 2, and over N of them 3 (D / 2) N (N - 1) / 2 in all. */
Test(overload, queueing_times_are_those_of_the_closed_form)
{
    enum { AT_ONCE = 3, N = 20, INPUT = 40, OUTPUT = 24, PAGES = 4 };
    struct world w;
    make(&w, "tp", 1);
    w.config.kv_blocks = AT_ONCE * PAGES;
    cr_assert_eq(PAGES * w.config.page_tokens, INPUT + OUTPUT);
    int64_t served_ps = service_ps(&w, AT_ONCE, INPUT, OUTPUT), gap_ps = served_ps / 2;
    for (int i = 0; i < AT_ONCE * N; i++)
        world_ask(&w, i / AT_ONCE * gap_ps, INPUT, OUTPUT);
    for (int exact = 0; exact <= 1; exact++) {
        struct run_result r;
        int64_t queued_ps = 0;
        world_run(&w, "fixed:tp", exact, &r);
        for (int64_t i = 0; i < w.n; i++) {
            int64_t j = i / AT_ONCE;
            cr_expect_eq(r.request[i].queued_ps, j * (served_ps - gap_ps));
            cr_expect_eq(r.request[i].finish_ps, (j + 1) * served_ps);
            queued_ps += r.request[i].queued_ps;
        }
        cr_expect_eq(queued_ps, AT_ONCE * (served_ps - gap_ps) * N * (N - 1) / 2);
        cr_expect_eq(r.completed, AT_ONCE * N);
        cr_expect_eq(r.makespan_ps, N * served_ps);
        cr_expect_eq(r.busy_ps, r.makespan_ps);
        cr_expect_eq(r.kv_peak_frac, 1);
        run_result_release(&r);
    }
    world_release(&w);
}

static int64_t count_rejected(struct world *w, const char *policy, int64_t tokens)
{
    struct run_result r;
    w->n = 0;
    world_ask(w, 0, tokens - 1, 1);
    world_run(w, policy, false, &r);
    int64_t n = r.rejected;
    run_result_release(&r);
    return n;
}

/* Ten pages a rank: 160 tokens of one request, or of two where each rank has its share. */
Test(overload, kv_room_is_counted_in_what_each_rank_stores)
{
    struct world w;
    make(&w, "tp,cp,dp", 2);
    w.config.kv_tokens = 160;
    cr_expect_eq(engine_config_pages(&w.config), 10);
    cr_expect_eq(count_rejected(&w, "fixed:tp", 160), 0);
    cr_expect_eq(count_rejected(&w, "fixed:tp", 161), 1);
    cr_expect_eq(count_rejected(&w, "fixed:cp", 320), 0);
    cr_expect_eq(count_rejected(&w, "fixed:cp", 321), 1);
    cr_expect_eq(count_rejected(&w, "fixed:dp", 160), 0);
    cr_expect_eq(count_rejected(&w, "fixed:dp", 161), 1);
    struct run_result tp, dp;
    w.n = 0;
    world_ask(&w, 0, 150, 10);
    world_ask(&w, 0, 150, 10);
    world_run(&w, "fixed:tp", false, &tp);
    world_run(&w, "fixed:dp", false, &dp);
    cr_expect_eq(tp.request[1].queued_ps, tp.request[0].finish_ps);
    cr_expect_eq(dp.request[1].queued_ps, 0, "the other rank has room");
    run_result_release(&tp);
    run_result_release(&dp);
    world_release(&w);
}

Test(overload, kv_room_is_said_once_and_holds_a_page)
{
    struct err err = ERR_NONE;
    struct engine_config c = {.page_tokens = 16, .kv_tokens = 16};
    cr_expect_eq(engine_config_check(&c, &err), 0);
    c.kv_tokens = 15;
    cr_expect_eq(engine_config_check(&c, &err), -1);
    cr_expect(strstr(err.text, "--page-tokens") != NULL, "%s", err.text);
    err = ERR_NONE;
    c = (struct engine_config){.page_tokens = 16, .kv_tokens = 160, .kv_blocks = 10};
    cr_expect_eq(engine_config_check(&c, &err), -1);
}

static void expect_end(const struct run_result *r, int64_t i, enum request_state state,
                       int64_t finish_ps)
{
    cr_expect_eq(r->request[i].state, state, "request %d", (int)i);
    cr_expect_eq(r->request[i].finish_ps, finish_ps, "request %d", (int)i);
}

/* Its client leaves in the middle of the third step, which goes on. */
Test(overload, a_request_is_cancelled_where_the_step_of_its_deadline_ends)
{
    struct world w;
    make(&w, "tp", 1);
    world_ask(&w, 0, 100, 50);
    w.config.deadline_ps = service_ps(&w, 1, 100, 2) + 1;
    for (int exact = 0; exact <= 1; exact++) {
        struct run_result r;
        world_run(&w, "fixed:tp", exact, &r);
        expect_end(&r, 0, REQ_CANCELLED, service_ps(&w, 1, 100, 3));
        cr_expect_eq(r.request[0].reason, CANCEL_DEADLINE);
        cr_expect_eq(r.request[0].first_token_ps, service_ps(&w, 1, 100, 1));
        cr_expect_eq(r.cancelled, 1);
        cr_expect_eq(r.completed, 0);
        cr_expect_eq(r.steps, 3);
        cr_expect_eq(r.slo_met, 0);
        run_result_release(&r);
    }
    world_release(&w);
}

Test(overload, finishing_at_the_deadline_is_in_time)
{
    struct world w;
    make(&w, "tp", 1);
    world_ask(&w, 0, 100, 50);
    int64_t served_ps = service_ps(&w, 1, 100, 50);
    for (int early = 0; early <= 1; early++) {
        struct run_result r;
        w.config.deadline_ps = served_ps - early;
        world_run(&w, "fixed:tp", false, &r);
        expect_end(&r, 0, early ? REQ_CANCELLED : REQ_COMPLETED, served_ps);
        run_result_release(&r);
    }
    world_release(&w);
}

/* One runs at a time. The second leaves the queue with its client, while the first decodes; the
 * third, which came later, then runs in time. */
Test(overload, a_request_is_cancelled_in_the_queue)
{
    struct world w;
    struct run_result r;
    make(&w, "tp", 1);
    w.config.max_running = 1;
    int64_t served_ps = service_ps(&w, 1, 100, 50), last_ps = world_step_ps(&w, 1, 149, 1);
    world_ask(&w, 0, 100, 50);
    world_ask(&w, 0, 10, 2);
    world_ask(&w, served_ps - last_ps, 10, 2);
    w.config.deadline_ps = served_ps - last_ps;
    world_run(&w, "fixed:tp", false, &r);
    expect_end(&r, 0, REQ_CANCELLED, served_ps - last_ps);
    expect_end(&r, 1, REQ_CANCELLED, served_ps - last_ps);
    cr_expect_eq(r.request[1].queued_ps, r.request[1].finish_ps);
    cr_expect_eq(r.request[1].first_token_ps, r.request[1].finish_ps);
    expect_end(&r, 2, REQ_COMPLETED, served_ps - last_ps + service_ps(&w, 1, 10, 2));
    cr_expect_eq(r.request[2].queued_ps, 0);
    run_result_release(&r);
    world_release(&w);
}

/* 0 is too long for the model; 1 waits for it, 2 for 1; 3 waits for none of them. */
static void make_session(struct world *w)
{
    world_init(w, "tiny-mla", "tp", 1);
    w->model.max_context_tokens = 1000;
    world_compile(w, 0);
    for (int i = 0; i < 4; i++)
        world_ask(w, 0, i == 0 ? 1000 : 10, 1);
    for (uint32_t i = 1; i < 3; i++) {
        w->request[i].n_after = 1;
        w->request[i].after_at = i - 1;
        w->after[i - 1] = i - 1;
        w->request[i].delay_ps = 7;
    }
}

Test(overload, a_session_ends_with_a_request_that_was_rejected)
{
    struct world w;
    struct run_result r;
    make_session(&w);
    world_run(&w, "fixed:tp", false, &r);
    expect_end(&r, 0, REQ_REJECTED, 0);
    expect_end(&r, 1, REQ_CANCELLED, 7);
    expect_end(&r, 2, REQ_CANCELLED, 14);
    cr_expect_eq(r.request[2].reason, CANCEL_SESSION);
    cr_expect_eq(r.ended_by[CANCEL_SESSION], 2);
    cr_expect_eq(r.completed, 1);
    run_result_release(&r);
    world_release(&w);
}

Test(overload, a_session_goes_on_where_that_is_asked_for)
{
    struct world w;
    struct run_result r;
    make_session(&w);
    w.config.failed_session = SESSION_GO_ON;
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.rejected, 1);
    cr_expect_eq(r.cancelled, 0);
    cr_expect_eq(r.completed, 3);
    run_result_release(&r);
    world_release(&w);
}

/* Of four alike that come one behind the other, alone at a time, the second waits one service and
 * ends after two. */
Test(overload, goodput_counts_what_meets_every_limit)
{
    struct world w;
    struct run_result r;
    make(&w, "tp", 1);
    w.config.max_running = 1;
    for (int i = 0; i < 4; i++)
        world_ask(&w, 0, 100, 50);
    w.config.slo_e2e_ps = 2 * service_ps(&w, 1, 100, 50);
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.slo_met, 2);
    cr_expect_eq(r.slo_output_tokens, 100);
    run_result_release(&r);
    w.config.slo_ttft_ps = w.config.slo_e2e_ps / 2;
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.slo_met, 1);
    run_result_release(&r);
    world_release(&w);
}

/* Two wait for the same three by one list, two by another that says the same. */
Test(overload, a_shared_list_is_as_good_as_its_copy)
{
    struct world w;
    struct run_result r;
    make(&w, "tp", 1);
    for (int i = 0; i < 7; i++)
        world_ask(&w, 0, 10, i < 3 ? 5 * (i + 1) : 3);
    for (uint32_t k = 0; k < 6; k++)
        w.after[k] = k % 3;
    for (int i = 3; i < 7; i++) {
        w.request[i].n_after = 3;
        w.request[i].after_at = i % 2 ? 0 : 3;
        w.request[i].delay_ps = 5;
    }
    world_run(&w, "fixed:tp", false, &r);
    cr_expect_eq(r.completed, 7);
    for (int i = 3; i < 7; i++) {
        cr_expect_eq(r.request[i].arrival_ps, r.request[2].finish_ps + 5);
        cr_expect_eq(r.request[i].finish_ps, r.request[3].finish_ps);
    }
    run_result_release(&r);
    world_release(&w);
}
