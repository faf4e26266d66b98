/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectories of agents: OpenHands, mini-swe-agent, SWE-agent.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "tests/trace_text.h"
#include "traces/trace.h"

static struct trace loaded(const char *text, const char *format)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load_quoted(&t, text, &err) == 0, "%s", err.text);
    cr_assert_str_eq(t.format, format);
    return t;
}

static const struct trace_request *find(const struct trace *t, int64_t input_tokens)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].input_tokens == input_tokens)
            return &t->request[i];
    cr_assert_fail("no request with %lld tokens", (long long)input_tokens);
    return NULL;
}

/* a ended at 10 s; b at 40 s after 12.5 s: 17.5 s lie between. Of c no event is told. */
static const char two_runs[] =
    "{'instance_id':'i','metrics':{'token_usages':["
    "{'prompt_tokens':5920,'completion_tokens':128,'cache_read_tokens':0,'response_id':'a'},"
    "{'prompt_tokens':6736,'completion_tokens':81,'cache_read_tokens':5888,'response_id':'b'},"
    "{'prompt_tokens':6000,'completion_tokens':76,'cache_read_tokens':6001,'response_id':'c'}],"
    "'response_latencies':["
    "{'response_id':'b','latency':12.5},"
    "{'response_id':'x','latency':1},"
    "{'response_id':'c','latency':2}]},"
    "'history':[{'source':'user'},"
    "{'timestamp':'2025-03-01T12:00:10.0','tool_call_metadata':{'model_response':{'id':'a'}}},"
    "{'timestamp':'2025-03-01T12:00:40.0','tool_call_metadata':{'model_response':{'id':'b'}}},"
    "{'timestamp':'2025-03-01T12:00:41.0','tool_call_metadata':{'model_response':{'id':'b'}}},[3]]}"
    "\n"
    "{'instance_id':'j','metrics':{'token_usages':["
    "{'prompt_tokens':10,'completion_tokens':1,'cache_read_tokens':0,'response_id':'a'}]}}\n";

Test(trace_agents, openhands_calls_wait_for_one_another)
{
    struct trace t = loaded(two_runs, "openhands");
    cr_assert_eq(t.n, 4);
    cr_expect_eq(t.session.n, 2);
    cr_expect_eq(find(&t, 5920)->n_after, 0);
    cr_expect_eq(find(&t, 10)->n_after, 0);
    cr_expect_eq(find(&t, 10)->arrival_ps, 0, "sessions begin at once");
    cr_expect_eq(find(&t, 6736)->n_after, 1);
    cr_expect_eq(find(&t, 6736)->delay_ps, 17500 * PS_PER_MS);
    cr_expect_eq(find(&t, 6000)->delay_ps, 0);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1);
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    trace_release(&t);
}

/* Of b 5888 tokens are 92 blocks of a, which has 92 and a half; c has 94 blocks, of which b shares
 * 93 whole ones: 6001 of 64. */
Test(trace_agents, openhands_prompts_share_what_was_cached)
{
    struct trace t = loaded(two_runs, "openhands");
    cr_expect_eq(t.block_tokens, 64);
    cr_expect_eq(trace_prefix_max(&t).hit_blocks, 92 + 93);
    cr_expect_eq(t.noted[NOTE_CACHED_CUT], 1);
    trace_release(&t);
}

Test(trace_agents, openhands_calls_without_counts_are_left_out)
{
    struct trace t =
        loaded("{'instance_id':'i','metrics':{'token_usages':["
               "{'prompt_tokens':50,'completion_tokens':1,'cache_read_tokens':0,'response_id':'a'},"
               "{'prompt_tokens':7},"
               "{'prompt_tokens':60,'completion_tokens':0},"
               "{'prompt_tokens':70,'completion_tokens':2}]}}\n"
               "{'instance_id':'j',"
               "'history':[],'metrics':null}\n",
               "openhands");
    cr_assert_eq(t.n, 2);
    cr_expect_eq(t.skipped[SKIP_NO_LENGTH], 2);
    cr_expect_eq(t.skipped[SKIP_NO_OUTPUT], 1);
    cr_expect_eq(t.request[1].n_after, 1);
    cr_expect_eq(t.request[0].n_hashes, 1);
    cr_expect_eq(t.request[1].n_hashes, 0, "nothing is told of its cache");
    trace_release(&t);
}

/* A call begins when what it answers was said: 7.5 s and 0 s after the answer before. */
Test(trace_agents, mini_swe_agent_calls_wait_for_tools)
{
    struct trace t = loaded("{'info':{'mini_version':'2'},\n"
                            "'messages':["
                            "{'role':'system','content':'x','extra':{'timestamp':100}},"
                            "{'role':'assistant','content':'x','extra':{'timestamp':110,'response':"
                            "{'usage':{'prompt_tokens':1000,'completion_tokens':30}}}},"
                            "{'role':'tool','content':'x','extra':{'timestamp':112}},"
                            "{'role':'tool','content':'x','extra':{'timestamp':117.5}},"
                            "{'role':'assistant','content':'x','extra':{'timestamp':130,'response':"
                            "{'usage':{'prompt_tokens':1500,'completion_tokens':40}}}},"
                            "{'role':'tool','content':'x','extra':{'timestamp':129}},"
                            "{'role':'assistant','content':'x','extra':{'timestamp':140,'response':"
                            "{'usage':{'prompt_tokens':1600,'completion_tokens':50}}}},"
                            "{'role':'user','content':'y'},"
                            "{'role':'assistant','content':'x','extra':{'timestamp':150,'response':"
                            "{'usage':{'prompt_tokens':900,'completion_tokens':60}}}},"
                            "{'role':'assistant','content':'x','extra':{'timestamp':160}}]}",
                            "swe-agent");
    cr_assert_eq(t.n, 4);
    cr_expect_eq(t.session.n, 1);
    cr_expect_eq(find(&t, 1000)->n_after, 0);
    cr_expect_eq(find(&t, 1500)->delay_ps, 7500 * PS_PER_MS);
    cr_expect_eq(find(&t, 1600)->delay_ps, 0);
    cr_expect_eq(find(&t, 900)->delay_ps, 0);
    cr_expect_eq(t.noted[NOTE_NO_TIME], 1, "when the user spoke is not told");
    cr_expect_eq(t.noted[NOTE_SHRUNK], 1);
    cr_expect_eq(t.skipped[SKIP_NO_LENGTH], 1);
    trace_release(&t);
}

#define NO_COUNTS(n)                                                                               \
    ": holds no request with input and output tokens; rows skipped: " n " (" n                     \
    " with no token counts)"

static const struct {
    const char *text, *message;
} malformed[] = {
    {"{\n"
     "'trajectory': [{'action': 'ls'}, {'action': 'rm'}]\n"
     "}\n",
     NO_COUNTS("2")},
    {"[\n"
     "{'role': 'assistant', 'content': 'x'}\n"
     "]\n",
     NO_COUNTS("1")},
    {"["
     "{'role':'assistant','content':'x'},3]\n",
     ":1: .messages[1]: must be an object"},
    {"{'mini_version':1}\n", ":1: .messages: required key is missing"},
    {"{'mini_version':1,'messages':["
     "{'role':'assistant','content':'x','extra':{'timestamp':1,'response':{'usage':{'prompt_tokens'"
     ":-4,'completion_tokens':1}}}}]}\n",
     ".messages[0].extra.response.usage.prompt_tokens: must be "},
    {"{'mini_version':1,'messages':["
     "{'role':'assistant','content':'x','extra':{'timestamp':1,'response':{'usage':{'prompt_tokens'"
     ":4,'completion_tokens':1}}}},"
     "{'role':'user','content':'x','extra':{'timestamp':1e300}},"
     "{'role':'assistant','content':'x','extra':{'timestamp':1,'response':{'usage':{'prompt_tokens'"
     ":4,'completion_tokens':1}}}}]}\n",
     ".messages[2].extra: comes 100 days or more after the answer before"},
    {"{'instance_id':'i','metrics':{'token_usages':["
     "{'prompt_tokens':4,'completion_tokens':1,'cache_read_tokens':-1,'response_id':'a'}]}}\n",
     ".cache_read_tokens: must be "},
    {"{'instance_id':'i','metrics':{'token_usages':[],"
     "'response_latencies':[{'latency':'x'}]}}\n",
     ".metrics.response_latencies[0].latency: must be a number, got a string"},
    {"{'instance_id':'i','metrics':{'token_usages':["
     "{'prompt_tokens':4,'completion_tokens':1,'cache_read_tokens':0,'response_id':'a'},"
     "{'prompt_tokens':4,'completion_tokens':1,'cache_read_tokens':0,'response_id':'b'}],"
     "'response_latencies':["
     "{'response_id':'b','latency':0}]},"
     "'history':["
     "{'timestamp':'2025-03-01T12:00:00','tool_call_metadata':{'model_response':{'id':'a'}}},"
     "{'timestamp':'2026-01-01T00:00:00','tool_call_metadata':{'model_response':{'id':'b'}}}]}\n",
     ":1: waits 100 days or more"},
    {"{'instance_id':'i','metrics':{'token_usages':[]}}\n", NO_COUNTS("1")},
};

Test(trace_agents, refuses_malformed_files_with_place_and_cause)
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

Test(trace_agents, public_trajectories_without_counts_are_refused)
{
    static const char *const paths[] = {
        "../shared/traces/agents/swe-agent_marshmallow-1867_function_calling.traj",
        "../shared/traces/agents/mini-swe-agent_github_issue.traj.json"};
    static const char *const counts[] = {"11 with no token counts", "10 with no token counts"};
    if (access("../shared/traces", R_OK) != 0)
        cr_skip("no public traces beside the repository");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct trace t;
        struct err err = ERR_NONE;
        cr_expect_eq(trace_load(&t, paths[i], &(struct trace_reading){0}, &err), -1);
        cr_expect_not_null(strstr(err.text, counts[i]), "%s", err.text);
    }
}
