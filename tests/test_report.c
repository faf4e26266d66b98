/* SPDX-License-Identifier: Apache-2.0
 *
 * What people and programs read after a run, from results made by hand.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/report/explanation.h"
#include "sim/report/requests_csv.h"
#include "sim/report/result_json.h"
#include "sim/report/summary.h"
#include "tests/report_sink.h"

enum { TP, CP, DP, LAYOUTS, MOVER = -1 };

static const struct layout layouts[LAYOUTS] = {{.name = "tp"}, {.name = "cp"}, {.name = "dp"}};

enum { ROWS_MAX = 5 };

/* A field of runs in which every request took the same time. */
struct field {
    int n;
    struct summary_row row[ROWS_MAX];
    struct run_result result[ROWS_MAX];
};

static struct run_result *add_row(struct field *f, const char *policy, int fixed_layout,
                                  int64_t completed, int64_t e2e_ms)
{
    struct run_result *r = &f->result[f->n];
    *r = (struct run_result){.requests = 10, .completed = completed, .rejected = 10 - completed};
    hist_init(&r->queued_ps);
    hist_init(&r->ttft_ps);
    hist_init(&r->tpot_ps);
    hist_init(&r->e2e_ps);
    if (completed > 0)
        hist_add(&r->e2e_ps, e2e_ms * PS_PER_MS, (uint64_t)completed);
    f->row[f->n++] = (struct summary_row){policy, fixed_layout, false, r, false};
    return r;
}

static struct summary summary_of(const struct field *f)
{
    return (struct summary){.row = f->row, .n = f->n, .layouts = layouts, .n_layouts = LAYOUTS};
}

static void field_release(struct field *f)
{
    for (int i = 0; i < f->n; i++)
        run_result_release(&f->result[i]);
}

static const struct verdict_case {
    struct {
        const char *policy;
        int layout;
        int64_t completed, e2e_ms;
    } run[ROWS_MAX];
    const char *verdict;
} verdict_cases[] = {
    {{{"fixed:tp", TP, 10, 2800}, {"fixed:dp", DP, 10, 2400}, {"splash", MOVER, 10, 2000}},
     "splash wins: it is 1.20 times as fast as the best fixed layout (dp), and is 1.40 times as "
     "fast as the worst (tp), by mean E2E latency.\n"},
    {{{"fixed:tp", TP, 10, 1500}, {"fixed:dp", DP, 10, 1000}, {"splash", MOVER, 10, 1010}},
     "splash ties within 1% with the best fixed layout (dp), and is 1.49 times as fast as the "
     "worst (tp), by mean E2E "
     "latency.\n"},
    {{{"fixed:dp", DP, 10, 1000}, {"splash", MOVER, 10, 990}},
     "splash ties within 1% with the best fixed layout (dp), by mean E2E latency.\n"},
    {{{"fixed:dp", DP, 10, 1000}, {"splash", MOVER, 10, 1011}},
     "Fixed dp wins: splash takes 1.01 times as long as it, by mean E2E latency.\n"},
    {{{"fixed:dp", DP, 10, 1000}, {"splash", MOVER, 10, 2000}, {"greedy", MOVER, 10, 500}},
     "greedy wins: it is 2.00 times as fast as the best fixed layout (dp), by mean E2E latency.\n"},
    {{{"fixed:dp", DP, 7, 1000}, {"fixed:tp", TP, 0, 0}, {"splash", MOVER, 10, 5000}},
     "splash wins: it completes 3 more requests than the best fixed layout (dp), and completes 10 "
     "more requests than the worst (tp).\n"},
    {{{"fixed:dp", DP, 10, 1000}, {"splash", MOVER, 9, 10}},
     "Fixed dp wins: splash completes 1 fewer request than it.\n"},
    {{{"fixed:cp", CP, 10, 3000}, {"fixed:dp", DP, 10, 1000}},
     "Fixed dp is the best layout: it is 3.00 times as fast as the worst (cp), by mean E2E "
     "latency.\n"},
    {{{"fixed:cp", CP, 10, 3000}}, "Only fixed cp ran: nothing to compare it with.\n"},
    {{{"splash", MOVER, 10, 3000}},
     "No fixed layout ran to compare with: add --policy best-fixed.\n"},
    {{{"fixed:cp", CP, 0, 0}, {"splash", MOVER, 0, 0}},
     "No policy completed a request: \"wavetank explain\" shows what fits.\n"},
};

Test(summary, verdict_names_the_winner_and_is_honest_about_ties)
{
    for (size_t i = 0; i < sizeof verdict_cases / sizeof *verdict_cases; i++) {
        const struct verdict_case *c = &verdict_cases[i];
        struct field f = {0};
        struct sink s;
        for (int k = 0; k < ROWS_MAX && c->run[k].policy != NULL; k++)
            add_row(&f, c->run[k].policy, c->run[k].layout, c->run[k].completed, c->run[k].e2e_ms);
        struct summary summary = summary_of(&f);
        sink_open(&s);
        summary_print_verdict(&summary, s.f);
        cr_expect_str_eq(sink_text(&s), c->verdict);
        free(s.text);
        field_release(&f);
    }
}

/* In 80 columns; by itself, for a page, it is one line. */
Test(summary, verdict_is_broken_below_the_tables)
{
    struct field f = {0};
    struct sink s;
    add_row(&f, "fixed:tp", TP, 10, 2800);
    add_row(&f, "fixed:dp", DP, 10, 2400);
    add_row(&f, "splash", MOVER, 10, 2000);
    struct summary summary = summary_of(&f);
    sink_open(&s);
    summary_print(&summary, s.f);
    cr_expect_not_null(strstr(sink_text(&s),
                              "\n\nsplash wins: it is 1.20 times as fast as the best fixed layout "
                              "(dp), and is 1.40\n"
                              "times as fast as the worst (tp), by mean E2E latency.\n"));
    free(s.text);
    field_release(&f);
}

Test(summary, more_completed_requests_rank_above_lower_latency)
{
    struct field f = {0};
    struct run_result *few = add_row(&f, "a", TP, 9, 1), *many = add_row(&f, "b", CP, 10, 9000);
    struct run_result *fast = add_row(&f, "c", DP, 10, 8999);
    cr_expect(summary_is_better(many, few));
    cr_expect_not(summary_is_better(few, many));
    cr_expect(summary_is_better(fast, many));
    cr_expect_not(summary_is_better(fast, fast));
    field_release(&f);
}

static void fill_times(struct run_result *r, int64_t ttft_ms, int64_t tpot_us)
{
    r->makespan_ps = 10 * PS_PER_S;
    r->input_tokens = 90000;
    r->output_tokens = 10000;
    hist_add(&r->queued_ps, 100 * PS_PER_MS, 1);
    hist_add(&r->ttft_ps, ttft_ms * PS_PER_MS, 1);
    hist_add(&r->tpot_ps, tpot_us * PS_PER_US, 1);
}

Test(summary, tables_and_notes_read_as_written_here)
{
    struct field f = {0};
    struct sink s;
    struct run_result *dp = add_row(&f, "fixed:dp", DP, 8, 1500);
    struct run_result *splash = add_row(&f, "splash", MOVER, 10, 1000);
    f.row[f.n++] = (struct summary_row){"best-fixed:dp", DP, true, dp, false};
    fill_times(dp, 250, 40000);
    fill_times(splash, 125, 20500);
    dp->requests = 14;
    dp->cancelled = 4;
    dp->ended_by[REJECT_TOO_LONG] = 2;
    dp->ended_by[CANCEL_DEADLINE] = 1;
    dp->ended_by[CANCEL_SESSION] = 3;
    splash->makespan_ps = 8 * PS_PER_S;
    splash->busy_ps = 4 * PS_PER_S;
    splash->layout_ps[TP] = splash->busy_ps / 4;
    splash->layout_ps[DP] = splash->busy_ps / 4 * 3;
    splash->switches = 1200;
    splash->switches_refused = 2;
    splash->switch_exposed_ps = 250 * PS_PER_MS;
    splash->preemptions = 5;
    splash->cached_tokens = 30000;
    splash->cache_block_tokens = 512;
    splash->cache_evictions = 1234;
    splash->slo_met = 4;
    struct summary summary = summary_of(&f);
    summary.has_slo = true;
    sink_open(&s);
    summary_print(&summary, s.f);
    f.n = 2;
    cr_expect_str_eq(
        sink_text(&s),
        "                     tok/s          TTFT s         TPOT ms                  goodput\n"
        "policy        done   total  output     p50    p99      p50   p99  switches    req/s\n"
        "fixed:dp         8  10,000   1,000   0.250  0.250     40.0  40.0         0        0\n"
        "splash          10  12,500   1,250   0.125  0.125     20.5  20.5     1,200    0.500\n"
        "best-fixed (dp)\n"
        "                 8  10,000   1,000   0.250  0.250     40.0  40.0         0        0\n"
        "\n"
        "                                 tp  cp      dp\n"
        "splash  time in layout          25%  0%     75%\n"
        "        E2E speedup over fixed    -   -  1.50x*\n"
        "        tok/s over fixed          -   -  1.25x*\n"
        "* over different requests: the two completed unlike numbers of them\n"
        "\n"
        "fixed:dp: rejected 2 and cancelled 4 of 14 requests (2: longer than the model's\n"
        "context; 1: not finished by its deadline; 3: waited for one that was rejected or\n"
        "cancelled)\n"
        "splash: 5 preemptions\n"
        "splash: 1,200 switches added 250 ms of exposed time; 2 did not fit in memory\n"
        "splash: 30,000 of 90,000 prompt tokens (33.3%) were cached; 1,234 blocks of 512\n"
        "evicted\n"
        "splash wins: it completes 2 more requests than the best fixed layout (dp).\n");
    free(s.text);
    field_release(&f);
}

/* 2.0 s and 1.5 s against the oracle's 1.6 s, which looks ahead but is no policy that could win. */
Test(summary, an_oracle_makes_regret_a_column_and_does_not_win)
{
    struct field f = {0};
    struct sink s;
    add_row(&f, "fixed:dp", DP, 10, 2000);
    add_row(&f, "fixed:cp", CP, 9, 1000);
    add_row(&f, "splash", MOVER, 10, 1800);
    struct run_result *oracle = add_row(&f, "oracle", MOVER, 10, 1600);
    f.row[3].looks_ahead = true;
    oracle->forks = 1234;
    oracle->searches_cut = 5;
    struct summary summary = summary_of(&f);
    cr_expect_eq(summary_yardstick(&summary), oracle);
    sink_open(&s);
    summary_print(&summary, s.f);
    const char *text = sink_text(&s);
    cr_expect_not_null(strstr(text, "switches  regret\n"));
    cr_expect_not_null(strstr(text, "0   25.0%\n")); /* 2.0 / 1.6 */
    cr_expect_not_null(strstr(text, "0   12.5%\n")); /* 1.8 / 1.6 */
    cr_expect_not_null(strstr(text, "0    0.0%\n"));
    cr_expect_not_null(strstr(text, "0       -\n")); /* other requests */
    cr_expect_not_null(
        strstr(text, "oracle: looked ahead in 1,234 forks; its budget cut 5 decisions short\n"));
    cr_expect_not_null(strstr(text, "\nsplash wins: it is 1.11 times as fast as the best fixed"));
    free(s.text);
    field_release(&f);
}

Test(summary, regret_is_against_the_best_of_hindsight_and_foresight)
{
    struct field f = {0};
    double frac = 7;
    struct run_result *dp = add_row(&f, "fixed:dp", DP, 10, 2000);
    struct run_result *splash = add_row(&f, "splash", MOVER, 10, 1500);
    struct run_result *fewer = add_row(&f, "greedy", MOVER, 9, 1500);
    struct summary summary = summary_of(&f);
    cr_expect_null(summary_yardstick(&summary));
    f.row[f.n++] = (struct summary_row){"best-fixed:dp", DP, true, dp, false};
    summary = summary_of(&f);
    cr_assert_eq(summary_yardstick(&summary), dp);
    cr_expect_not(summary_regret(fewer, dp, &frac));
    cr_expect_eq(frac, 7);
    cr_expect(summary_regret(splash, dp, &frac));
    cr_expect_float_eq(frac, -0.25, 1e-12);
    f.n = 3;
    field_release(&f);
}

/* The second waited for the first, and could have come at once. */
static const struct engine_request requests[] = {
    {.input_tokens = 100, .output_tokens = 3},
    {.input_tokens = 20, .output_tokens = 1, .n_after = 1},
    {.arrival_ps = PS_PER_S * 2 + 1, .input_tokens = 9000, .output_tokens = 5},
    {.input_tokens = 10, .output_tokens = 9}};

Test(requests_csv, times_are_exact_and_empty_where_there_are_none)
{
    struct request_result result[] = {
        {.first_token_ps = 1000000000001,
         .transfer_start_ps = 1000000000002,
         .transfer_end_ps = 1000000000003,
         .finish_ps = 1000000000004,
         .state = REQ_COMPLETED},
        {.arrival_ps = 1500000000000,
         .first_token_ps = 1750000000000,
         .finish_ps = 1750000000000,
         .state = REQ_COMPLETED,
         .cached_tokens = 16,
         .preemptions = 2},
        {.arrival_ps = PS_PER_S * 2 + 1,
         .first_token_ps = PS_PER_S * 2 + 1,
         .finish_ps = PS_PER_S * 2 + 1,
         .state = REQ_REJECTED,
         .reason = REJECT_TOO_LONG},
        {.first_token_ps = 1, .finish_ps = 2, .state = REQ_CANCELLED, .reason = CANCEL_DEADLINE},
    };
    struct run_result r = {.requests = 4, .request = result};
    struct sink s;
    sink_open(&s);
    requests_csv_header(s.f);
    requests_csv_run(s.f, "splash:margin=0.1,\"x\"", requests, &r);
    cr_expect_str_eq(
        sink_text(&s),
        "policy,request,arrival_s,input_tokens,output_tokens,state,reason,first_token_s,finish_s,"
        "ttft_s,tpot_s,e2e_s,preemptions,cached_tokens,transfer_start_s,transfer_end_s\n"
        "\"splash:margin=0.1,\"\"x\"\"\",0,0,100,3,completed,,1.000000000001,1.000000000004,"
        "1.000000000001,0.000000000001,1.000000000004,0,0,1.000000000002,1.000000000003\n"
        "\"splash:margin=0.1,\"\"x\"\"\",1,1.5,20,1,completed,,1.75,1.75,0.25,,0.25,2,16,,\n"
        "\"splash:margin=0.1,\"\"x\"\"\",2,2.000000000001,9000,5,rejected,"
        "longer than the model's context,,,,,,0,0,,\n"
        "\"splash:margin=0.1,\"\"x\"\"\",3,0,10,9,cancelled,not finished by its "
        "deadline,,,,,,0,0,,\n");
    free(s.text);
}

Test(result_json, keys_and_their_order_are_the_contract)
{
    struct field f = {0};
    struct run_result *r = add_row(&f, "splash", MOVER, 4, 2000);
    fill_times(r, 250, 40000);
    r->busy_ps = 8;
    r->layout_ps[TP] = 2;
    r->layout_ps[DP] = 6;
    r->rejected = 4;
    r->cancelled = 2;
    r->slo_met = 3;
    r->slo_output_tokens = 750;
    r->steps = 100;
    r->events = 120;
    r->switches = 3;
    r->switches_refused = 1;
    r->switch_exposed_ps = PS_PER_MS;
    r->kv_peak_frac = 0.5;
    r->cached_tokens = r->input_tokens / 4;
    r->cache_block_tokens = 512;
    r->cache_evictions = 7;
    r->wall_ns = 1500000000;
    json_t *run = result_json("splash", r, layouts, LAYOUTS);
    char *text = json_dumps(run, JSON_COMPACT | JSON_REAL_PRECISION(9));
    cr_expect_str_eq(
        text,
        "{\"policy\":\"splash\",\"requests\":10,\"completed\":4,\"rejected\":4,\"cancelled\":2,"
        "\"preemptions\":0,"
        "\"makespan_s\":10.0,\"total_tok_s\":10000.0,\"output_tok_s\":1000.0,\"goodput_req_s\":0.3,"
        "\"goodput_tok_s\":75.0,"
        "\"queued_s\":{\"mean\":0.1,\"p50\":0.1,\"p90\":0.1,\"p99\":0.1},"
        "\"ttft_s\":{\"mean\":0.25,\"p50\":0.25,\"p90\":0.25,\"p99\":0.25},"
        "\"tpot_s\":{\"mean\":0.04,\"p50\":0.04,\"p90\":0.04,\"p99\":0.04},"
        "\"e2e_s\":{\"mean\":2.0,\"p50\":2.0,\"p90\":2.0,\"p99\":2.0},"
        "\"steps\":100,\"events\":120,\"switches\":3,\"switches_refused\":1,"
        "\"switch_exposed_s\":0.001,\"layout_time_frac\":{\"tp\":0.25,\"cp\":0.0,\"dp\":0.75},"
        "\"kv_peak_frac\":0.5,\"prefix_hit_frac\":0.25,\"prefix_cached_tokens\":22500,"
        "\"prefix_block_tokens\":512,\"prefix_evicted_blocks\":7,\"sim_wall_s\":1.5}");
    free(text);
    json_decref(run);
    field_release(&f);
}

/* A tiny model on eight ranks, for explanations. */
struct world {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    struct cost *cost;
};

static void world_init(struct world *w)
{
    struct err err = ERR_NONE;
    model_load(&w->model, "tiny-mla", &err);
    cluster_load(&w->cluster, "h200x8", &err);
    profile_load(&w->profile, w->cluster.profile, &err);
    int n = layout_parse_list(w->layout, "tp,dp,dop", &w->model, 8, &err);
    cr_assert_not(err.set, "%s", err.text);
    w->cost = cost_new(&w->model, &w->cluster, &w->profile, w->layout, n, 64);
}

static void world_release(struct world *w)
{
    cost_free(w->cost);
    profile_release(&w->profile);
}

static const struct explained_batch small_batch = {
    .requests = 10, .ctx_tokens = 1000, .q = 1, .decode = true, .page_tokens = 64};

Test(explanation, memory_is_of_the_busiest_rank_in_whole_pages)
{
    struct world w;
    struct explanation e;
    world_init(&w);
    explanation_make(&e, w.cost, &small_batch);
    /* 640 B a token: ten requests of 16 pages on every rank, or two at the busiest owner. */
    cr_expect_eq(e.layout[0].kv_bytes, 10 * 16 * 64 * 640.0);
    cr_expect_eq(e.layout[1].kv_bytes, 2 * 16 * 64 * 640.0);
    cr_expect_eq(e.layout[2].kv_bytes, e.layout[1].kv_bytes);
    cr_expect_lt(e.layout[0].weights_bytes, e.layout[1].weights_bytes);
    cr_expect(e.layout[0].feasible);
    world_release(&w);
}

Test(explanation, a_batch_fits_up_to_the_longest_context_and_not_beyond)
{
    struct world w;
    struct explanation e;
    world_init(&w);
    explanation_make(&e, w.cost, &small_batch);
    for (int l = 0; l < e.n; l++) {
        struct explained_batch batch = small_batch;
        struct explanation at_limit;
        batch.ctx_tokens = e.layout[l].max_context_tokens;
        explanation_make(&at_limit, w.cost, &batch);
        cr_expect(at_limit.layout[l].feasible);
        batch.ctx_tokens++;
        explanation_make(&at_limit, w.cost, &batch);
        cr_expect_not(at_limit.layout[l].feasible);
    }
    world_release(&w);
}

Test(explanation, switches_by_discard_are_free_and_the_others_are_not)
{
    struct world w;
    struct explanation e;
    world_init(&w);
    explanation_make(&e, w.cost, &small_batch);
    enum { TO_TP, TO_DP, TO_DOP };
    cr_expect_eq(e.change[TO_TP][TO_DOP].transition.blocking_ps, 0);
    cr_expect_eq(e.change[TO_DP][TO_DOP].transition.blocking_ps, 0);
    cr_expect_eq(e.change[TO_DP][TO_DOP].weights, PRIM_DISCARD);
    cr_expect_eq(e.change[TO_DOP][TO_TP].kv, PRIM_ALL_GATHER);
    cr_expect_gt(e.change[TO_DOP][TO_TP].transition.exposed_ps, 0);
    world_release(&w);
}

Test(explanation, json_has_the_keys_of_the_contract_in_order)
{
    static const char *const parts[] = {
        "{\"layouts\":{\"tp\":{\"weights_bytes\":",
        ",\"kv_bytes\":6553600.0,\"feasible\":true,\"max_context_tokens\":",
        ",\"step_ns\":",
        ",\"stages\":{\"proj_ns\":",
        ",\"attn_ns\":",
        ",\"exchange_ns\":",
        ",\"ffn_ns\":",
        "}},\"dp\":{\"weights_bytes\":",
        "}},\"dop\":{\"weights_bytes\":",
        "}}},\"switches\":[{\"from\":\"tp\",\"to\":\"dp\",\"weights\":\"all-gather\",",
        "\"kv\":\"discard\",\"weights_recv_bytes_per_rank_layer\":",
        ",\"kv_recv_bytes_per_rank_layer\":0.0,\"exposed_ns\":",
        ",\"blocking_ns\":",
        "},{\"from\":\"tp\",\"to\":\"dop\",\"weights\":\"keep\"",
        "{\"from\":\"dop\",\"to\":\"dp\"",
        "}]}",
    };
    struct world w;
    struct explanation e;
    world_init(&w);
    explanation_make(&e, w.cost, &small_batch);
    json_t *json = explanation_json(&e);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(at, parts[i]);
        cr_assert(found != NULL, "%s is missing in %s", parts[i], at);
        cr_expect(i > 0 || found == text);
        at = found + strlen(parts[i]);
    }
    cr_expect_str_eq(at, "");
    cr_expect_eq(json_array_size(json_object_get(json, "switches")), 6);
    free(text);
    json_decref(json);
    world_release(&w);
}
