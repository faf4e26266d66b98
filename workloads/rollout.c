/* SPDX-License-Identifier: Apache-2.0
 *
 * Rollout steps of reinforcement learning. A step samples each of its prompts several times; all
 * samples come together and those of one prompt share its blocks. The next step comes when every
 * sample has ended and the model has been trained on them. With partial rollouts it does not wait
 * for the longest samples, which run on beside it.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/base/draw.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "workloads/dist.h"
#include "workloads/preset.h"
#include "workloads/workload.h"

#define SAMPLES_MAX    1000000LL
#define CARRY_FRAC_MAX 0.99

struct rollout {
    int64_t steps, prompts, group;
    double group_frac; /* share of the variance of a sample's score that its group has in common */
    double carry_frac; /* of a step's samples, the longest, that the next step does not wait for */
    struct dist input, output, train_s;
};

static int parse(struct rollout *p, struct jobj *o, struct err *err)
{
    if (preset_i64(o, "steps", 1, PRESET_COUNT_MAX, &p->steps, err) < 0 ||
        preset_i64(o, "prompts", 1, PRESET_COUNT_MAX, &p->prompts, err) < 0 ||
        preset_i64(o, "group", 1, PRESET_COUNT_MAX, &p->group, err) < 0 ||
        preset_f64(o, "group_frac", 0, 1, &p->group_frac, err) < 0 ||
        preset_f64(o, "carry_frac", 0, CARRY_FRAC_MAX, &p->carry_frac, err) < 0)
        return -1;
    if (dist_parse(&p->input, o, "input_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&p->output, o, "output_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&p->train_s, o, "train_s", PRESET_SECONDS, err) < 0)
        return -1;
    if (p->output.kind == DIST_GAMMA)
        return jobj_fail(o, "output_tokens", err,
                         "a gamma's draws cannot be correlated within a group; use a table or a "
                         "log-normal");
    return jobj_done(o, err);
}

struct making {
    const struct rollout *p;
    struct trace *t;
    struct rng tokens, times;
    struct workload_size size;
    struct sample {
        int64_t output_tokens;
        size_t request;
    } * before;      /* the samples that this step waits for */
    size_t n_before; /* 0 in the first step */
    size_t first;    /* request of this step, whose list of these the others share */
};

static int add_sample(struct making *m, int64_t input, double group_score, int64_t delay_ps,
                      struct err *err)
{
    double of_group = m->p->group_frac;
    double score = sqrt(of_group) * group_score + sqrt(1 - of_group) * draw_normal(&m->tokens);
    int64_t output = max_i64(llround(dist_at(&m->p->output, score)), 1);
    int rc = m->n_before > 0 ? trace_add_waiting(m->t, delay_ps, input, output, 0, err)
                             : trace_add(m->t, 0, input, output, 0, err);
    if (rc <= 0)
        return -1;
    if (m->t->n - 1 > m->first) {
        trace_wait_like(m->t, m->first);
        return 0;
    }
    for (size_t i = 0; i < m->n_before; i++)
        trace_wait_for(m->t, m->before[i].request);
    return 0;
}

/* The samples of one prompt share every whole block, so all but the first take no memory. */
static int add_group(struct making *m, int64_t delay_ps, struct err *err)
{
    size_t first = m->t->n;
    int64_t input = dist_count(&m->p->input, &m->tokens);
    double group_score = draw_normal(&m->tokens);
    for (int64_t i = 0; i < m->p->group; i++) {
        if (add_sample(m, input, group_score, delay_ps, err) < 0)
            return -1;
        if (m->t->block_tokens > 0)
            trace_grow_prompt(m->t, first, i > 0 ? input : 0);
    }
    return workload_check_size(&m->size, m->t, err);
}

static int by_length(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->output_tokens != y->output_tokens)
        return x->output_tokens < y->output_tokens ? -1 : 1;
    return (x->request > y->request) - (x->request < y->request);
}

/* The next step waits for the samples of this one, but for the longest. */
static void set_barrier(struct making *m)
{
    size_t from = m->first, n = m->t->n - from;
    for (size_t i = 0; i < n; i++)
        m->before[i] = (struct sample){m->t->request[from + i].output_tokens, from + i};
    qsort(m->before, n, sizeof *m->before, by_length);
    m->n_before = n - (size_t)(m->p->carry_frac * (double)n);
}

static int add_steps(struct making *m, struct err *err)
{
    for (int64_t step = 0; step < m->p->steps; step++) {
        m->first = m->t->n;
        int64_t delay_ps = dist_ps(&m->p->train_s, &m->times);
        for (int64_t i = 0; i < m->p->prompts; i++)
            if (add_group(m, delay_ps, err) < 0)
                return -1;
        set_barrier(m);
    }
    return 0;
}

static int check_size(const struct rollout *p, struct err *err)
{
    int64_t batch = p->prompts * p->group;
    if (batch > SAMPLES_MAX || p->steps > SAMPLES_MAX / batch)
        return err_set(err, "gen: %lld steps of %lld samples; at most %lld samples in all",
                       (long long)p->steps, (long long)batch, SAMPLES_MAX);
    return 0;
}

static int generate(struct trace *t, struct jobj *preset, const struct workload_ask *ask,
                    struct err *err)
{
    struct rollout p;
    struct making m = {.p = &p, .t = t};
    if (ask->rate_per_s > 0)
        return err_set(err, "--rate: a rollout's steps follow one another; it has no rate");
    if (parse(&p, preset, err) < 0)
        return -1;
    p.steps = ask->count > 0 ? ask->count : p.steps;
    if (check_size(&p, err) < 0)
        return -1;
    workload_stream(&m.tokens, &workload_rollout, "tokens", ask->seed);
    workload_stream(&m.times, &workload_rollout, "times", ask->seed);
    m.before = xcalloc((size_t)(p.prompts * p.group), sizeof *m.before);
    int rc = add_steps(&m, err);
    free(m.before);
    return rc;
}

const struct workload workload_rollout = {
    .name = "rollout",
    .preset = "deepseek-r1",
    .what = "reinforcement learning: groups of samples, long tails, a barrier at each step's end",
    .generate = generate,
};
