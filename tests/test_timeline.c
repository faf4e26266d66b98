/* SPDX-License-Identifier: Apache-2.0
 *
 * Timelines are what Perfetto reads, and add up to what their run says.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/timeline.h"
#include "tests/engine_world.h"
#include "tests/timeline_reader.h"
#include "traces/trace.h"

static const struct timeline_about about = {"0", "m", "c", "p"};

/* A file of this test's own. */
static char path[64];

static void name_file(void)
{
    snprintf(path, sizeof path, "/tmp/wavetank-timeline-%ld.json", (long)getpid());
}

static void remove_file(void)
{
    remove(path);
}

static char *read_text(void)
{
    struct lines l;
    struct err err = ERR_NONE;
    char *text = xstrdup("");
    cr_assert_eq(lines_open(&l, path, &err), 0);
    while (lines_next(&l, &err) == 1) {
        char *more = xasprintf("%s%s\n", text, l.line);
        free(text);
        text = more;
    }
    lines_close(&l);
    return text;
}

TestSuite(timeline, .init = name_file, .fini = remove_file);

static const struct layout two_layouts[] = {{.name = "tp"}, {.name = "dp"}};

static void open_timeline(struct timeline *t, const struct timeline_options *o,
                          const struct engine_config *config, const struct layout *layouts)
{
    struct err err = ERR_NONE;
    cr_assert_eq(timeline_open(t, o, &about, config, layouts, &err), 0, "%s", err.text);
}

static void close_timeline(struct timeline *t, const struct engine_request *request,
                           const struct run_result *result)
{
    struct err err = ERR_NONE;
    cr_assert_eq(timeline_close(t, request, result, &err), 0, "%s", err.text);
}

/* Two steps of tp that grow by 2 ns, then, 10 ns later, one of dp after a switch. The stages of
 * the first take 10, 20, 0 and 30 ns of 65, of the second 10, 22, 0 and 30 of 67. */
static void draw_by_hand(const struct timeline_options *o)
{
    const struct engine_config config = {.replicas = 1};
    static const struct batch_item item[] = {{100, 1, 0}, {200, 1, 1}, {64, 32, 0}};
    struct batch decode = {2, 2, item}, mixed = {2, 3, item};
    struct span_record r = {
        .index = 0,
        .n = 2,
        .start_ps = 1000000,
        .end_ps = 1132000,
        .from = -1,
        .n_waiting = 1,
        .kv_pages = 5,
        .cost = {.proj = {10000, 0, 9},
                 .attn = {20000, 2000, 9},
                 .exchange = {0, 0, 9},
                 .ffn = {30000, 0, 9}},
        .batch = &decode,
    };
    struct engine_request asked = {.arrival_ps = 900000, .input_tokens = 98, .output_tokens = 4};
    struct request_result done = {.arrival_ps = 900000,
                                  .admitted_ps = 1000000,
                                  .first_token_ps = 1132000,
                                  .finish_ps = 1212499,
                                  .state = REQ_COMPLETED};
    struct run_result result = {.requests = 1, .request = &done};
    struct timeline t;
    open_timeline(&t, o, &config, two_layouts);
    timeline_span(&t, &r);
    r.index = 2;
    r.n = 1;
    r.start_ps = 1142000;
    r.end_ps = 1212499;
    r.exposed_ps = 5499;
    r.layout = 1;
    r.from = 0;
    r.mechanism = MECH_BLOCKING;
    r.batch = &mixed;
    timeline_span(&t, &r);
    close_timeline(&t, &asked, &result);
}

/* The part of the text that begins with the first counter. */
static const char *past_names(const char *text)
{
    return strstr(text, "{\"ph\":\"C\"");
}

Test(timeline, says_of_steps_and_requests_what_they_were)
{
    struct timeline_options o = {.path = path};
    draw_by_hand(&o);
    char *text = read_text();
    cr_expect_str_eq(
        past_names(text),
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.000,\"name\":\"queue\",\"args\":{\"requests\":1}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.000,\"name\":\"batch\","
        "\"args\":{\"decode\":2,\"prefill\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.000,\"name\":\"KV of the fullest rank\","
        "\"args\":{\"pages\":5}},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":20,\"ts\":1.000,\"dur\":0.132,\"name\":\"tp\","
        "\"args\":{\"step\":0,\"steps\":2,\"decode\":2,\"prefill\":0,\"prefill_rows\":0,"
        "\"ctx_tokens\":300}},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":22,\"ts\":1.000,\"dur\":0.020,\"name\":\"projections\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":23,\"ts\":1.020,\"dur\":0.042,\"name\":\"attention\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":25,\"ts\":1.062,\"dur\":0.060,\"name\":\"FFN\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":26,\"ts\":1.122,\"dur\":0.010,\"name\":\"rest\"},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.132,\"name\":\"queue\",\"args\":{\"requests\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.132,\"name\":\"batch\","
        "\"args\":{\"decode\":0,\"prefill\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.132,\"name\":\"KV of the fullest rank\","
        "\"args\":{\"pages\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.142,\"name\":\"queue\",\"args\":{\"requests\":1}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.142,\"name\":\"batch\","
        "\"args\":{\"decode\":2,\"prefill\":1}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.142,\"name\":\"KV of the fullest rank\","
        "\"args\":{\"pages\":5}},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":20,\"ts\":1.142,\"dur\":0.070,\"name\":\"dp\","
        "\"args\":{\"step\":2,\"steps\":1,\"decode\":2,\"prefill\":1,\"prefill_rows\":32,"
        "\"ctx_tokens\":364}},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":22,\"ts\":1.147,\"dur\":0.010,\"name\":\"projections\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":23,\"ts\":1.157,\"dur\":0.020,\"name\":\"attention\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":25,\"ts\":1.177,\"dur\":0.030,\"name\":\"FFN\"},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":26,\"ts\":1.207,\"dur\":0.005,\"name\":\"rest\"},\n"
        "{\"ph\":\"i\",\"s\":\"t\",\"pid\":2,\"tid\":21,\"ts\":1.142,\"name\":\"tp to dp\","
        "\"args\":{\"from\":\"tp\",\"to\":\"dp\",\"mechanism\":\"blocking\","
        "\"exposed_ps\":5499}},\n"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":21,\"ts\":1.142,\"dur\":0.005,\"name\":\"exposed\"},\n"
        "{\"ph\":\"s\",\"pid\":2,\"tid\":20,\"ts\":1.131,\"cat\":\"flow\",\"name\":\"switch\","
        "\"id\":0},\n"
        "{\"ph\":\"f\",\"bp\":\"e\",\"pid\":2,\"tid\":20,\"ts\":1.142,\"cat\":\"flow\","
        "\"name\":\"switch\",\"id\":0},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.212,\"name\":\"queue\",\"args\":{\"requests\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.212,\"name\":\"batch\","
        "\"args\":{\"decode\":0,\"prefill\":0}},\n"
        "{\"ph\":\"C\",\"pid\":2,\"ts\":1.212,\"name\":\"KV of the fullest rank\","
        "\"args\":{\"pages\":0}},\n"
        "{\"ph\":\"b\",\"pid\":1,\"ts\":0.900,\"cat\":\"async\",\"name\":\"request\",\"id\":\"0\","
        "\"args\":{\"request\":0,\"state\":\"completed\",\"reason\":\"\",\"input_tokens\":98,"
        "\"output_tokens\":4,\"cached_tokens\":0,\"preemptions\":0}},\n"
        "{\"ph\":\"b\",\"pid\":1,\"ts\":0.900,\"cat\":\"async\",\"name\":\"queue\",\"id\":\"0\"},\n"
        "{\"ph\":\"e\",\"pid\":1,\"ts\":1.000,\"cat\":\"async\",\"name\":\"queue\",\"id\":\"0\"},\n"
        "{\"ph\":\"b\",\"pid\":1,\"ts\":1.000,\"cat\":\"async\",\"name\":\"prefill\","
        "\"id\":\"0\"},\n"
        "{\"ph\":\"e\",\"pid\":1,\"ts\":1.132,\"cat\":\"async\",\"name\":\"prefill\","
        "\"id\":\"0\"},\n"
        "{\"ph\":\"b\",\"pid\":1,\"ts\":1.132,\"cat\":\"async\",\"name\":\"decode\","
        "\"id\":\"0\"},\n"
        "{\"ph\":\"e\",\"pid\":1,\"ts\":1.212,\"cat\":\"async\",\"name\":\"decode\","
        "\"id\":\"0\"},\n"
        "{\"ph\":\"e\",\"pid\":1,\"ts\":1.212,\"cat\":\"async\",\"name\":\"request\","
        "\"id\":\"0\"}\n]}\n");
    free(text);
    struct timeline_totals sum = timeline_read(path);
    cr_expect_eq(sum.steps, 3);
    cr_expect_eq(sum.busy_ns, 132 + 70);
    cr_expect_eq(sum.part_ns, 132 + 65);
}

/* The first span lasts to 1.132 us, the second begins at 1.142 us; the request is in all. */
Test(timeline, draws_what_touches_the_part_asked_for)
{
    static const struct {
        int64_t from_ps, to_ps, spans, switches, arrows, requests;
    } cases[] = {
        {0, 0, 2, 1, 1, 1},       {1132000, 0, 2, 1, 1, 1}, {1132001, 0, 1, 1, 0, 1},
        {0, 1141999, 1, 0, 0, 1}, {0, 1142000, 2, 1, 1, 1}, {1132001, 1141999, 0, 0, 0, 1},
        {1212500, 0, 0, 0, 0, 0}, {0, 899999, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct timeline_options o = {path, cases[i].from_ps, cases[i].to_ps};
        draw_by_hand(&o);
        struct timeline_totals sum = timeline_read(path);
        cr_expect_eq(sum.spans, cases[i].spans, "case %zu", i);
        cr_expect_eq(sum.switches, cases[i].switches, "case %zu", i);
        cr_expect_eq(sum.events['s'], cases[i].arrows, "case %zu", i);
        cr_expect_eq(sum.requests, cases[i].requests, "case %zu", i);
    }
}

Test(timeline, names_every_group_and_its_tracks)
{
    const struct engine_config config = {.replicas = 2, .prefill_replicas = 1};
    struct timeline_options o = {.path = path};
    struct run_result nothing = {0};
    struct timeline t;
    open_timeline(&t, &o, &config, two_layouts);
    close_timeline(&t, NULL, &nothing);
    char *text = read_text();
    cr_expect_not_null(strstr(text, "\"pid\":3,\"name\":\"process_name\","
                                    "\"args\":{\"name\":\"replica 1\"}"));
    cr_expect_not_null(strstr(text, "\"pid\":4,\"name\":\"process_name\","
                                    "\"args\":{\"name\":\"prefill replica 0\"}"));
    cr_expect_not_null(strstr(text, "\"pid\":4,\"tid\":43,\"name\":\"thread_name\","
                                    "\"args\":{\"name\":\"attention\"}"));
    free(text);
    cr_expect_eq(timeline_read(path).events['M'], 2 * (1 + 3 * (1 + 7)));
}

Test(timeline, refuses_what_contradicts_itself)
{
    static const struct {
        struct timeline_options options;
        bool is_one_run, is_right;
    } cases[] = {
        {{NULL, 0, 0}, false, true}, {{path, 0, 0}, true, true},   {{path, 1, 2}, true, true},
        {{path, 5, 0}, true, true},  {{path, 0, 0}, false, false}, {{NULL, 1, 0}, true, false},
        {{NULL, 0, 1}, true, false}, {{path, 2, 2}, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_NONE;
        int rc = timeline_check(&cases[i].options, cases[i].is_one_run, &err);
        cr_expect_eq(rc == 0, cases[i].is_right, "case %zu", i);
    }
}

/* Each of `n` durations may be off by its rounding to a nanosecond. */
static void expect_time(int64_t ns, int64_t ps, int64_t n)
{
    cr_expect_leq(llabs(ns * PS_PER_NS - ps), n * PS_PER_NS, "%lld ns, %lld ps, %lld of them",
                  (long long)ns, (long long)ps, (long long)n);
}

/* Groups are busy without a pause but for so many gaps: roundings between do not add up. */
static void expect_totals(const struct run_result *r, const struct timeline_totals *sum)
{
    int64_t queued_ps = 0, spent_ps = 0;
    cr_expect_eq(sum->steps, r->steps);
    cr_expect_eq(sum->switches, r->switches);
    cr_expect_eq(sum->exposed_ps, r->switch_exposed_ps);
    cr_expect_eq(sum->requests, r->requests);
    cr_expect_eq(sum->completed, r->completed);
    expect_time(sum->busy_ns, r->busy_ps, sum->idle_gaps);
    expect_time(sum->exposed_ns, r->switch_exposed_ps, r->switches);
    expect_time(sum->part_ns + sum->exposed_ns, r->busy_ps, sum->spans + r->switches);
    for (int64_t i = 0; i < r->requests; i++) {
        queued_ps += r->request[i].queued_ps;
        spent_ps += r->request[i].finish_ps - r->request[i].arrival_ps;
    }
    expect_time(sum->queue_ns + sum->prefill_ns + sum->decode_ns, spent_ps, r->requests);
    if (r->preemptions == 0 && sum->transfers == 0)
        expect_time(sum->queue_ns, queued_ps, r->requests);
}

static void run_timeline(const struct world *w, struct engine_input in, const char *policy,
                         struct run_result *out)
{
    struct timeline_options o = {.path = path};
    struct timeline t;
    struct engine_observer observer = {.span = timeline_span, .context = &t};
    in.observer = &observer;
    open_timeline(&t, &o, in.config, w->layout);
    world_run_input(w, in, policy, out);
    close_timeline(&t, in.request, out);
}

static struct engine_request *requests_of(const struct trace *t)
{
    struct engine_request *request = xcalloc(t->n, sizeof *request);
    for (size_t i = 0; i < t->n; i++)
        request[i] = (struct engine_request){.arrival_ps = t->request[i].arrival_ps,
                                             .input_tokens = t->request[i].input_tokens,
                                             .output_tokens = t->request[i].output_tokens};
    return request;
}

/* The README's hour under SPLASH. */
Test(timeline, of_a_recorded_hour_is_whole_and_adds_up_to_the_run, .timeout = 60)
{
    static struct world w;
    struct err err = ERR_NONE;
    struct trace trace;
    struct run_result result;
    world_init(&w, "deepseek-v3.2", "tp,cp,dp,dop", 8);
    profile_release(&w.profile);
    cluster_load(&w.cluster, "b200x8", &err);
    profile_load(&w.profile, w.cluster.profile, &err);
    cr_assert_not(err.set, "%s", err.text);
    w.config.max_running = 256;
    w.config.page_tokens = 64;
    cr_assert_eq(trace_load(&trace, "traces/samples/mooncake_conversation.jsonl.gz",
                            &(struct trace_reading){0}, &err),
                 0, "%s", err.text);
    world_compile(&w, 0);
    struct engine_request *request = requests_of(&trace);
    struct engine_input in = world_input(&w);
    in.request = request;
    in.n_requests = (int64_t)trace.n;
    run_timeline(&w, in, "splash", &result);
    struct timeline_totals sum = timeline_read(path);
    expect_totals(&result, &sum);
    cr_expect_eq(sum.completed, 12031);
    cr_expect_eq(sum.switches, 2352);
    cr_expect_eq(sum.events['s'], 2351); /* no step comes before the first */
    cr_expect_lt(2 * sum.spans, sum.steps);
    free(request);
    run_result_release(&result);
    trace_release(&trace);
    world_release(&w);
}

/* Two pools, requests that are cancelled or rejected: the file is as sound as any. */
Test(timeline, of_pools_and_deadlines_adds_up_too)
{
    static struct world w;
    struct run_result result;
    world_init(&w, "tiny-mla", "tp,cp,dp,dop", 2);
    w.config.token_budget = 256;
    w.config.replicas = 2;
    w.config.prefill_replicas = 2;
    w.config.kv_link_gb_per_s = 0.05;
    w.config.deadline_ps = 60 * PS_PER_MS;
    world_compile(&w, 0);
    for (int i = 0; i < 100; i++)
        world_ask(&w, i * PS_PER_MS / 4, 100 + 37 * (i % 11), 1 + i % 40);
    world_ask(&w, 26 * PS_PER_MS, 1 << 30, 1);
    run_timeline(&w, world_input(&w), "splash", &result);
    struct timeline_totals sum = timeline_read(path);
    expect_totals(&result, &sum);
    cr_expect_eq(result.rejected, 1);
    cr_expect_gt(result.cancelled, 0);
    cr_expect_gt(sum.completed, 0);
    cr_expect_gt(sum.transfers, 0);
    cr_expect_leq(sum.transfers, result.link.transfers);
    run_result_release(&result);
    world_release(&w);
}

/* Little KV, which grows page by page: who is preempted waits again. */
Test(timeline, of_an_exact_run_with_preemptions_has_a_slice_for_every_step)
{
    static struct world w;
    struct run_result result;
    struct engine_input in;
    world_init(&w, "tiny-mla", "tp,dp", 2);
    w.config.kv_tokens = 1024;
    w.config.admission = ADMIT_ON_DEMAND;
    w.config.exact = true;
    world_compile(&w, 0);
    for (int i = 0; i < 20; i++)
        world_ask(&w, 0, 150, 100);
    in = world_input(&w);
    run_timeline(&w, in, "splash", &result);
    struct timeline_totals sum = timeline_read(path);
    expect_totals(&result, &sum);
    cr_expect_gt(result.preemptions, 0);
    cr_expect_eq(sum.spans, result.steps);
    run_result_release(&result);
    world_release(&w);
}
