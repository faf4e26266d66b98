/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of coding agents. A session is a chain of calls: each prompt is the one before and what
 * has come since, until the context is compacted. A call starts when the one before it has ended
 * and a tool, or the user, has answered. Some calls send sub-agents, chains of their own side by
 * side; the next call waits for all of them.
 */
#include <math.h>

#include "sim/base/draw.h"
#include "sim/base/ints.h"
#include "sim/base/units.h"
#include "workloads/dist.h"
#include "workloads/preset.h"
#include "workloads/workload.h"

enum { WIDTH_MAX = 64 };

struct agents {
    double sessions_frac; /* sessions that send any */
    double call_frac;     /* of such a session's calls, those that do */
    int64_t fixed_tokens; /* that all sub-agents' prompts begin with */
    struct dist width, calls, first_input, output;
};

struct agentic {
    int64_t sessions, fixed_tokens, limit_tokens, large_limit_tokens;
    double rate_per_s, large_frac, break_frac;
    double calls_correlation; /* between the ranks of a first prompt and of the number of calls */
    struct dist calls, calls_per_turn, first_input, growth, shrink, output, tool_s, user_s;
    struct agents agents;
};

static int parse_agents(struct agents *a, struct jobj *up, struct err *err)
{
    struct jobj o;
    int there = jobj_open(&o, up, "agents", false, err);
    if (there <= 0)
        return there;
    if (preset_f64(&o, "sessions_frac", 0, 1, &a->sessions_frac, err) < 0 ||
        preset_f64(&o, "call_frac", 0, 1, &a->call_frac, err) < 0 ||
        preset_i64(&o, "fixed_tokens", 0, PRESET_TOKENS_MAX, &a->fixed_tokens, err) < 0 ||
        dist_parse(&a->width, &o, "width", WIDTH_MAX, err) < 0 ||
        dist_parse(&a->calls, &o, "calls", PRESET_COUNT_MAX, err) < 0 ||
        dist_parse(&a->first_input, &o, "first_input_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&a->output, &o, "output_tokens", PRESET_TOKENS_MAX, err) < 0)
        return -1;
    return jobj_done(&o, err);
}

static int parse_numbers(struct agentic *a, struct jobj *o, struct err *err)
{
    if (preset_i64(o, "sessions", 1, PRESET_COUNT_MAX, &a->sessions, err) < 0 ||
        preset_f64(o, "rate_per_s", 1e-6, 1e6, &a->rate_per_s, err) < 0 ||
        preset_i64(o, "fixed_tokens", 0, PRESET_TOKENS_MAX, &a->fixed_tokens, err) < 0 ||
        preset_i64(o, "limit_tokens", 1, PRESET_TOKENS_MAX, &a->limit_tokens, err) < 0 ||
        preset_i64(o, "large_limit_tokens", 1, PRESET_TOKENS_MAX, &a->large_limit_tokens, err) < 0)
        return -1;
    if (preset_f64(o, "large_frac", 0, 1, &a->large_frac, err) < 0 ||
        preset_f64(o, "calls_correlation", -1, 1, &a->calls_correlation, err) < 0)
        return -1;
    return preset_f64(o, "break_frac", 0, 1, &a->break_frac, err);
}

static int parse(struct agentic *a, struct jobj *o, struct err *err)
{
    const struct {
        const char *key;
        double limit;
        struct dist *to;
    } dists[] = {
        {"calls", PRESET_COUNT_MAX, &a->calls},
        {"calls_per_turn", PRESET_COUNT_MAX, &a->calls_per_turn},
        {"first_input_tokens", PRESET_TOKENS_MAX, &a->first_input},
        {"growth_tokens", PRESET_TOKENS_MAX, &a->growth},
        {"shrink_tokens", PRESET_TOKENS_MAX, &a->shrink},
        {"output_tokens", PRESET_TOKENS_MAX, &a->output},
        {"tool_s", PRESET_SECONDS, &a->tool_s},
        {"user_s", PRESET_SECONDS, &a->user_s},
    };
    if (parse_numbers(a, o, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof dists / sizeof *dists; i++)
        if (dist_parse(dists[i].to, o, dists[i].key, dists[i].limit, err) < 0)
            return -1;
    if (a->calls.kind == DIST_GAMMA || a->first_input.kind == DIST_GAMMA)
        return jobj_fail(o, NULL, err,
                         "calls and first_input_tokens are drawn together, which a gamma cannot "
                         "be; use a table or a log-normal");
    return parse_agents(&a->agents, o, err) < 0 ? -1 : jobj_done(o, err);
}

/* The request whose prompt has most of what all prompts of a kind begin with. */
struct common {
    int64_t tokens;
    size_t request;
    int64_t has_tokens; /* 0: no request yet */
};

struct making {
    const struct agentic *a;
    struct trace *t;
    struct rng arrivals, shape, tokens, delays, agents;
    struct common sessions, sub_agents;
    struct workload_size size;
    char name[32]; /* of the session */
};

static void hash_first(struct trace *t, struct common *c, int64_t input_tokens)
{
    if (t->block_tokens == 0)
        return;
    trace_grow_prompt(t, c->request, c->has_tokens);
    int64_t has = min_i64(c->tokens, input_tokens);
    if (has > c->has_tokens)
        *c = (struct common){c->tokens, t->n - 1, has};
}

static void hash_next(struct trace *t, size_t before, int64_t shared_tokens)
{
    if (t->block_tokens > 0)
        trace_grow_prompt(t, before, shared_tokens);
}

/* A chain of calls under way. */
struct thread {
    size_t last; /* call, by number of addition */
    int64_t input_tokens, limit_tokens;
    int64_t fixed_tokens; /* of the prompt, what stays when the rest does not */
};

/* The next prompt's length; *shared_tokens of it are the last one's. */
static int64_t grow(struct making *m, const struct thread *th, int64_t *shared_tokens)
{
    int64_t input = th->input_tokens + dist_count(&m->a->growth, &m->tokens);
    bool breaks = rng_f64(&m->tokens) < m->a->break_frac;
    *shared_tokens = breaks ? th->fixed_tokens : th->input_tokens;
    if (input <= th->limit_tokens)
        return input;
    *shared_tokens = th->fixed_tokens;
    int64_t left = th->input_tokens - dist_count(&m->a->shrink, &m->tokens);
    return min_i64(max_i64(left, max_i64(th->fixed_tokens, 1)), th->limit_tokens);
}

static int add_next(struct making *m, struct thread *th, const struct dist *output,
                    int64_t delay_ps, struct err *err)
{
    int64_t shared, input = grow(m, th, &shared);
    if (trace_add_waiting(m->t, delay_ps, input, dist_count(output, &m->tokens), 0, err) < 0)
        return -1;
    trace_set_session(m->t, m->name);
    hash_next(m->t, th->last, shared);
    th->last = m->t->n - 1;
    th->input_tokens = input;
    return workload_check_size(&m->size, m->t, err);
}

/* One sub-agent, from the end of the call that sends it. */
static int add_agent(struct making *m, size_t parent, size_t *last, struct err *err)
{
    const struct agents *a = &m->a->agents;
    int64_t calls = dist_count(&a->calls, &m->agents);
    struct thread th = {.input_tokens = dist_count(&a->first_input, &m->tokens),
                        .limit_tokens = m->a->limit_tokens};
    th.fixed_tokens = min_i64(a->fixed_tokens, th.input_tokens);
    int64_t output = dist_count(&a->output, &m->tokens);
    if (trace_add_waiting(m->t, 0, th.input_tokens, output, 0, err) < 0)
        return -1;
    trace_wait_for(m->t, parent);
    trace_set_session(m->t, m->name);
    hash_first(m->t, &m->sub_agents, th.input_tokens);
    th.last = m->t->n - 1;
    for (int64_t i = 1; i < calls; i++) {
        size_t before = th.last;
        if (add_next(m, &th, &a->output, dist_ps(&m->a->tool_s, &m->delays), err) < 0)
            return -1;
        trace_wait_for(m->t, before);
    }
    *last = th.last;
    return 0;
}

/* Between a call and the next: that one waits for all of the sub-agents, and starts at once. */
static int add_agents(struct making *m, size_t parent, int64_t width, struct err *err)
{
    size_t last[WIDTH_MAX];
    for (int64_t i = 0; i < width; i++)
        if (add_agent(m, parent, &last[i], err) < 0)
            return -1;
    m->t->request[parent + 1].delay_ps = 0;
    trace_wait_later(m->t, parent + 1, parent);
    for (int64_t i = 0; i < width; i++)
        trace_wait_later(m->t, parent + 1, last[i]);
    return 0;
}

/* What the calls of a session wait for, and the sub-agents between them. */
static int add_waits(struct making *m, size_t first, size_t end, struct err *err)
{
    const struct agents *a = &m->a->agents;
    bool sends = rng_f64(&m->agents) < a->sessions_frac;
    int64_t width = sends ? dist_count(&a->width, &m->agents) : 0;
    for (size_t call = first; call + 1 < end; call++) {
        if (sends && rng_f64(&m->agents) < a->call_frac) {
            if (add_agents(m, call, width, err) < 0)
                return -1;
        } else {
            trace_wait_later(m->t, call + 1, call);
        }
    }
    return 0;
}

static int64_t count_at(const struct dist *d, double score)
{
    return max_i64(llround(dist_at(d, score)), 1);
}

/* A session's first prompt and number of calls. */
static struct thread start(struct making *m, int64_t *calls)
{
    const struct agentic *a = m->a;
    double with = a->calls_correlation, score = draw_normal(&m->shape);
    struct thread th = {.input_tokens = count_at(&a->first_input, score)};
    score = with * score + sqrt(1 - with * with) * draw_normal(&m->shape);
    *calls = count_at(&a->calls, score);
    bool large = rng_f64(&m->shape) < a->large_frac || th.input_tokens > a->limit_tokens;
    th.limit_tokens = large ? a->large_limit_tokens : a->limit_tokens;
    th.fixed_tokens = min_i64(a->fixed_tokens, th.input_tokens);
    return th;
}

/* The chain is added first, call behind call, so that its growing prompts share their memory. */
static int add_session(struct making *m, __int128 arrival_ps, struct err *err)
{
    const struct agentic *a = m->a;
    int64_t calls;
    struct thread th = start(m, &calls);
    int64_t of_turn = dist_count(&a->calls_per_turn, &m->shape);
    size_t first = m->t->n;
    int64_t output = dist_count(&a->output, &m->tokens);
    if (trace_add(m->t, arrival_ps, th.input_tokens, output, 0, err) < 0)
        return -1;
    trace_set_session(m->t, m->name);
    hash_first(m->t, &m->sessions, th.input_tokens);
    th.last = first;
    for (int64_t i = 1; i < calls; i++) {
        bool by_user = --of_turn == 0;
        if (by_user)
            of_turn = dist_count(&a->calls_per_turn, &m->shape);
        int64_t delay_ps = dist_ps(by_user ? &a->user_s : &a->tool_s, &m->delays);
        if (add_next(m, &th, &a->output, delay_ps, err) < 0)
            return -1;
    }
    return add_waits(m, first, m->t->n, err);
}

static int generate(struct trace *t, struct jobj *preset, const struct workload_ask *ask,
                    struct err *err)
{
    struct agentic a = {0};
    struct making m = {.a = &a, .t = t};
    __int128 at_ps = 0;
    if (parse(&a, preset, err) < 0)
        return -1;
    workload_stream(&m.arrivals, &workload_agentic, "arrivals", ask->seed);
    workload_stream(&m.shape, &workload_agentic, "shape", ask->seed);
    workload_stream(&m.tokens, &workload_agentic, "tokens", ask->seed);
    workload_stream(&m.delays, &workload_agentic, "delays", ask->seed);
    workload_stream(&m.agents, &workload_agentic, "agents", ask->seed);
    m.sessions.tokens = a.fixed_tokens;
    m.sub_agents.tokens = a.agents.fixed_tokens;
    double rate_per_s = ask->rate_per_s > 0 ? ask->rate_per_s : a.rate_per_s;
    int64_t sessions = ask->count > 0 ? ask->count : a.sessions;
    for (int64_t i = 0; i < sessions; i++) {
        snprintf(m.name, sizeof m.name, "%lld", (long long)i);
        if (add_session(&m, at_ps, err) < 0 || workload_check_size(&m.size, t, err) < 0)
            return -1;
        at_ps += llround(-log(1 - rng_f64(&m.arrivals)) / rate_per_s * (double)PS_PER_S);
    }
    return 0;
}

const struct workload workload_agentic = {
    .name = "agentic",
    .preset = "claude-code",
    .what = "sessions of coding agents: growing contexts, tools, sub-agents",
    .generate = generate,
};
