/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of coding agents: turns, sub-agents, ids that mean something in their session only, and
 * what the public files hold. Runs in the root of the repository, for the samples.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

static struct trace loaded(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_quoted(&t, text, &err) == 0, "%s", err.text);
    cr_assert_str_eq(t.format, "weka");
    return t;
}

/* The request with so many input tokens, which tests make unique. */
static const struct trace_request *find(const struct trace *t, int64_t input_tokens)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].input_tokens == input_tokens)
            return &t->request[i];
    cr_assert_fail("no request with %lld tokens", (long long)input_tokens);
    return NULL;
}

static bool waits_for(const struct trace *t, int64_t input_tokens, int64_t other)
{
    const struct trace_request *r = find(t, input_tokens);
    for (uint32_t k = 0; k < r->n_after; k++)
        if (t->request[t->after[r->after_at + k]].input_tokens == other)
            return true;
    return false;
}

Test(trace_weka, turns_wait_for_the_one_before_and_then_think)
{
    struct trace t = loaded(
        "{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
        "{'t':2,'type':'n','in':130,'out':5,'api_time':3,'hash_ids':[1,2]},"
        "{'t':9,'type':'n','in':200,'out':6,'api_time':1,'think_time':4,'hash_ids':[1,2,3]}]}\n");
    cr_assert_eq(t.n, 2);
    cr_expect(t.origin_ps == 2 * PS_PER_S && t.request[0].n_after == 0);
    cr_expect_eq(t.request[1].delay_ps, 4 * PS_PER_S);
    cr_expect(waits_for(&t, 200, 130));
    cr_expect_eq(t.request[0].session, 0);
    cr_expect_eq(t.request[1].session, 0);
    cr_expect_eq(t.block_tokens, 64);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 2);
    trace_release(&t);
}

Test(trace_weka, thinking_that_is_not_told_is_what_the_clock_leaves)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':100,'out':5,'api_time':3.25},"
                            "{'t':9,'type':'n','in':101,'out':6},"
                            "{'t':20,'type':'n','in':102,'out':6,'think_time':null},"
                            "{'t':30,'type':'n','in':103,'out':6,'think_time':0}]}\n");
    cr_expect_eq(find(&t, 101)->delay_ps, 5750 * PS_PER_MS, "9 - 0 - 3.25 s");
    cr_expect_eq(find(&t, 102)->delay_ps, 0, "when 101 ended is not known");
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1, "a think time of 0 is a time");
    trace_release(&t);
}

Test(trace_weka, ids_are_their_sessions_own)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':130,'out':5,'hash_ids':[1,2]}]}\n"
                            "{'id':'b','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':131,'out':5,'hash_ids':[1,2,3]}]}\n"
                            "{'id':'c','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':66,'out':5,'hash_ids':[0]}]}\n");
    cr_assert_eq(t.n, 3);
    cr_expect_eq(t.session.n, 3);
    cr_expect_eq(find(&t, 131)->line, 2);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 0);
    cr_expect_eq(find(&t, 130)->n_hashes, 2, "one for each whole block");
    cr_expect_eq(find(&t, 131)->n_hashes, 3, "or for each that is begun");
    trace_release(&t);

    t = loaded("{'id':'a','hash_id_scope':'global','requests':["
               "{'t':0,'type':'n','in':130,'out':5,'hash_ids':[1,2]}]}\n"
               "{'id':'b','hash_id_scope':'global','requests':["
               "{'t':0,'type':'n','in':131,'out':5,'hash_ids':[1,2]}]}\n");
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 2);
    trace_release(&t);
}

Test(trace_weka, sessions_that_repeat_another_are_left_out)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':130,'out':5}]}\n"
                            "{'id':'b','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':130,'out':5}]}\n"
                            "{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':131,'out':5}]}\n");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.skipped[SKIP_DUPLICATE], 1);
    cr_expect_eq(t.session.n, 2, "one name, two sessions");
    trace_release(&t);
}

Test(trace_weka, what_waits_for_a_skipped_turn_waits_for_the_one_before)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':100,'out':5,'api_time':1},"
                            "{'t':5,'type':'n','in':101,'out':0,'api_time':2,'think_time':4},"
                            "{'t':10,'type':'n','in':90,'out':5,'think_time':3}]}\n");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 1);
    cr_expect(waits_for(&t, 90, 100));
    cr_expect_eq(find(&t, 90)->delay_ps, 9 * PS_PER_S, "10 - 0 - 1 s, not 3");
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    trace_release(&t);
}

/* The turn of 100 ends at 2; sub-agents began at 20 - 17 = 3 and at 40 - 36 = 4, and their last
 * turns ended at 3 + 10 + 5 = 18 and 4 + 30 + 4 = 38. */

Test(trace_weka, the_next_turn_waits_for_sub_agents)
{
    struct trace t =
        loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
               "{'t':0,'type':'n','in':100,'out':5,'api_time':2},"
               "{'t':20,'type':'subagent','duration_ms':17000,'status':'completed','requests':["
               "{'t':0,'type':'n','in':50,'out':5,'api_time':1,'think_time':0},"
               "{'t':10,'type':'n','in':51,'out':5,'api_time':5,'think_time':9}]},"
               "{'t':40,'type':'subagent','duration_ms':36000,'status':'completed','requests':["
               "{'t':0,'type':'n','in':60,'out':5,'api_time':1,'think_time':0},"
               "{'t':30,'type':'n','in':61,'out':5,'api_time':4,'think_time':29}]},"
               "{'t':45,'type':'n','in':110,'out':5,'api_time':1,'think_time':43}]}\n");
    cr_assert_eq(t.n, 6);
    cr_expect(waits_for(&t, 50, 100) && waits_for(&t, 60, 100));
    cr_expect_eq(find(&t, 50)->delay_ps, 1 * PS_PER_S);
    cr_expect_eq(find(&t, 60)->delay_ps, 2 * PS_PER_S);
    cr_expect_eq(find(&t, 60)->n_after, 1, "not for its sibling");
    cr_expect(waits_for(&t, 51, 50) && find(&t, 51)->delay_ps == 9 * PS_PER_S);
    cr_expect_eq(find(&t, 110)->n_after, 3);
    cr_expect(waits_for(&t, 110, 100) && waits_for(&t, 110, 51) && waits_for(&t, 110, 61));
    cr_expect_eq(find(&t, 110)->delay_ps, 7 * PS_PER_S, "45 - 38 s");
    cr_expect_eq(t.session.n, 1);
    cr_expect_eq(t.noted[NOTE_SHRUNK], 0, "a sub-agent's context is its own");
    trace_release(&t);
}

Test(trace_weka, nothing_waits_for_sub_agents_launched_on_the_side)
{
    struct trace t =
        loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
               "{'t':0,'type':'n','in':100,'out':5,'api_time':2},"
               "{'t':3,'type':'subagent','duration_ms':null,'status':'async_launched','requests':["
               "{'t':0,'type':'n','in':50,'out':5,'api_time':60}]},"
               "{'t':9,'type':'n','in':110,'out':5,'think_time':7}]}\n");
    cr_expect(waits_for(&t, 50, 100) && find(&t, 50)->delay_ps == PS_PER_S);
    cr_expect_eq(find(&t, 110)->n_after, 1);
    cr_expect(waits_for(&t, 110, 100) && find(&t, 110)->delay_ps == 7 * PS_PER_S);
    trace_release(&t);
}

/* Some collections put the session's clock inside, and the start on the entry. */
Test(trace_weka, sub_agents_may_count_from_the_sessions_start)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':100,'out':5,'api_time':2},"
                            "{'t':3,'type':'subagent','duration_ms':17000,'requests':["
                            "{'t':3,'type':'n','in':50,'out':5,'api_time':1},"
                            "{'t':14,'type':'n','in':51,'out':5,'api_time':5,'think_time':10}]},"
                            "{'t':25,'type':'n','in':110,'out':5,'think_time':23}]}\n");
    cr_expect_eq(find(&t, 50)->delay_ps, PS_PER_S);
    cr_expect_eq(find(&t, 110)->delay_ps, 6 * PS_PER_S, "25 - 14 - 5 s");
    trace_release(&t);
}

Test(trace_weka, sub_agents_of_unknown_length_end_when_their_entry_says)
{
    struct trace t = loaded("{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
                            "{'t':0,'type':'n','in':100,'out':5,'api_time':2},"
                            "{'t':20,'type':'subagent','duration_ms':null,'requests':["
                            "{'t':0,'type':'n','in':50,'out':5,'api_time':1}]},"
                            "{'t':30,'type':'subagent','requests':[]},"
                            "{'t':25,'type':'n','in':110,'out':5}]}\n");
    cr_expect_eq(find(&t, 50)->delay_ps, 0);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1);
    cr_expect_eq(find(&t, 110)->delay_ps, 5 * PS_PER_S);
    cr_expect_eq(t.skipped[SKIP_NO_LENGTH], 1, "a sub-agent without turns");
    trace_release(&t);
}

static const struct {
    const char *text, *message;
} malformed[] = {
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':1,'out':1}]}\n"
     "{'id':'b','block_size':64,'requests':[7]}\n",
     ":2: .requests[0]: must be an object, got a number"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1},"
     "{'t':1,'type':'n','in':-1,'out':1}]}\n",
     ":1: .requests[1].in: must be "},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1.5}]}\n",
     ".requests[0].out: must be a whole number, got 1.5"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':-1,'type':'n','in':64,'out':1}]}\n",
     ".requests[0].t: must be in [0, 8640000], got -1"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1,'think_time':1e9}]}\n",
     ".requests[0].think_time: must be in [0, 8640000]"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':null,'type':'n','in':64,'out':1}]}\n",
     ".requests[0].t: required key is missing"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':'0','type':'n','in':64,'out':1}]}\n",
     ".requests[0].t: must be a number, got a string"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1,'in':3}]}\n",
     ":1: column "},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1,'hash_ids':[1,2]}]}\n",
     ".requests[0].hash_ids: has 2 ids, but 64 tokens make 1 blocks of 64 tokens"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':64,'out':1,'hash_ids':[-1]}]}\n",
     ".requests[0].hash_ids: element 0 must be a whole number"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'type':'x'}]}\n",
     ".requests[0].type: must be one of n, s, subagent, got \"x\""},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':5,'type':'subagent','requests':["
     "{'t':0,'type':'n','in':1,'out':1},3]}]}\n",
     ".requests[0].requests[1]: must be an object"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':0,'type':'n','in':1,'out':1}]}\n"
     "{'id':'b','block_size':32,'requests':["
     "{'t':0,'type':'n','in':2,'out':1}]}",
     ":2: .block_size: is 32, other sessions have 64"},
    {"{'hash_id_scope':'local',\n"
     "'requests':[\n",
     ":3: column "},
    {"{'hash_id_scope':'local',\n"
     "'requests':[]}\n",
     ": .id: required key is missing"},
    {"{'id':'a','hash_id_scope':'planet','requests':[]}\n", ".hash_id_scope: must be one of"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':[]}\n",
     ": holds no request with input and output tokens"},
    {"{'id':'a','block_size':64,'hash_id_scope':'local','requests':["
     "{'t':3,'type':'subagent','requests':[]}]}\n",
     "; rows skipped: 1 (1 with no token counts)"},
};

Test(trace_weka, refuses_malformed_sessions_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect(load_quoted(&t, malformed[i].text, &err) == -1, "read: %s", malformed[i].text);
        cr_expect(err.set && strstr(err.text, malformed[i].message), "expected \"%s\", got \"%s\"",
                  malformed[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && t.n == 77);
    }
}

Test(trace_weka, refuses_sub_agents_without_end)
{
    char text[1 << 16] = "", *end = text;
    struct trace t;
    struct err err = ERR_NONE;
    end += sprintf(end, "{'id':'a','hash_id_scope':'local','requests':[");
    for (int i = 0; i < 17; i++)
        end += sprintf(end, "{'t':1,'type':'subagent','requests':[");
    end += sprintf(end, "{'t':0,'type':'n','in':1,'out':1}");
    for (int i = 0; i < 17; i++)
        end += sprintf(end, "]}");
    strcpy(end, "]}");
    cr_expect_eq(load_quoted(&t, text, &err), -1);
    cr_expect_not_null(strstr(err.text, "is a sub-agent more than 16 deep"), "%s", err.text);

    err = ERR_NONE;
    end = text + sprintf(text, "{'id':'a','hash_id_scope':'local','requests':["
                               "{'t':0,'type':'n','in':1,'out':1}");
    for (int i = 0; i < 256; i++)
        end += sprintf(end, ","
                            "{'t':5,'type':'subagent','requests':["
                            "{'t':0,'type':'n','in':1,'out':1}]}");
    strcpy(end, "]}");
    cr_expect_eq(load_quoted(&t, text, &err), -1);
    cr_expect_not_null(
        strstr(err.text, ".requests[256]: is one of more than 255 sub-agents at once"), "%s",
        err.text);
}

/* A public file and what it holds. */
struct oracle {
    const char *path;
    size_t rows, sessions;
    int64_t input, output;
    size_t blocks;
    int64_t distinct, thought_ps;
};

static int64_t count_distinct(const struct trace *t)
{
    uint64_t most = 0; /* ids of a session's files are handed out without holes */
    for (size_t i = 0; i < t->n_hashes; i++)
        most = t->hash[i] > most ? t->hash[i] : most;
    return (int64_t)most;
}

static struct trace expect(const struct oracle *o)
{
    struct trace t;
    struct err err = ERR_NONE;
    int64_t input = 0, output = 0, thought_ps = 0;
    cr_assert(trace_load(&t, o->path, &(struct trace_reading){0}, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < t.n; i++) {
        input += t.request[i].input_tokens;
        output += t.request[i].output_tokens;
        thought_ps += t.request[i].delay_ps;
    }
    cr_expect_eq(t.n, o->rows);
    cr_expect_eq(t.session.n, o->sessions);
    cr_expect_eq(input, o->input);
    cr_expect_eq(output, o->output);
    cr_expect_eq(t.n_hashes, o->blocks);
    cr_expect_eq(count_distinct(&t), o->distinct);
    cr_expect_eq(thought_ps, o->thought_ps, "%.3f s", ps_to_s(thought_ps));
    cr_expect_eq(t.noted[NOTE_NO_TIME] + t.noted[NOTE_WENT_BACK] + t.skipped[SKIP_DUPLICATE], 0);
    return t;
}

Test(trace_weka, samples_hold_what_their_readme_says)
{
    static const struct oracle single = {"traces/samples/weka/trace_0002.json.gz",
                                         33,
                                         1,
                                         1508817,
                                         18463,
                                         23559,
                                         1539,
                                         1778 * PS_PER_S};
    static const struct oracle nested = {"traces/samples/weka/trace_0277.json.gz",
                                         53,
                                         1,
                                         2576410,
                                         31862,
                                         40230,
                                         5091,
                                         573085 * PS_PER_MS};
    struct trace t = expect(&single);
    struct trace_prefix p = trace_prefix_max(&t);
    struct trace_sessions s = trace_sessions(&t);
    cr_expect_eq(p.hit_blocks, 22020, "all but the first time that an id is there");
    cr_expect_eq(p.hit_tokens, 1409280);
    cr_expect(s.waiting == 32 && s.chain_max == 33);
    trace_release(&t);

    t = expect(&nested);
    s = trace_sessions(&t);
    cr_expect_eq(s.waiting, 52);
    cr_expect_eq(s.chain_max, 1 + 17 + 6 + 11 + 2, "by way of the longest sub-agents");
    cr_expect_eq(find(&t, 32182)->n_after, 4, "three sub-agents at once");
    cr_expect_eq(find(&t, 32182)->delay_ps, 20466 * PS_PER_MS);
    cr_expect_eq(find(&t, 90506)->delay_ps, 44580 * PS_PER_MS);
    cr_expect_eq(find(&t, 11651)->delay_ps, 694 * PS_PER_MS, "79.224 - 59.750 - 18.780 s");
    trace_release(&t);
}

Test(trace_weka, a_folder_is_a_trace_of_many_sessions)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(trace_load(&t, "traces/samples/weka", &(struct trace_reading){0}, &err) == 0, "%s",
              err.text);
    cr_expect_eq(t.n, 33 + 53);
    cr_expect_eq(t.session.n, 2);
    cr_expect_eq(t.out_of_order, 0);
    cr_expect_eq(t.request[1].arrival_ps, 0, "all sessions begin at once");
    cr_expect_eq(trace_prefix_max(&t).hit_blocks >= 22020, true);
    trace_release(&t);
}

Test(trace_weka, whole_public_sessions_match_their_oracles)
{
    static const struct oracle whole[] = {
        {"../shared/traces/weka/traces/trace_0002.json", 33, 1, 1508817, 18463, 23559, 1539,
         1778 * PS_PER_S},
        {"../shared/traces/weka/traces/trace_0015.json", 48, 1, 2224116, 15561, 34724, 1079,
         1198 * PS_PER_S},
        {"../shared/traces/weka/traces/trace_0277.json", 53, 1, 2576410, 31862, 40230, 5091,
         573085 * PS_PER_MS},
    };
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        struct trace t = expect(&whole[i]);
        trace_release(&t);
    }
}
