/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about long documents, with short answers. The prompts of one document begin with it.
 * Its questions come one after another, each some time after the answer to the one before, or all
 * at once. Between them, short chats may come on their own.
 */
#include <math.h>

#include "sim/base/units.h"
#include "workloads/dist.h"
#include "workloads/preset.h"
#include "workloads/workload.h"

struct longdoc {
    int64_t documents;
    double rate_per_s, gap_cv; /* of documents */
    double burst_frac;         /* of documents whose questions come at once */
    struct dist document, questions, question, output, think_s;
    double chats_per_document; /* so many in the time that a document takes to come */
    struct dist chat_input, chat_output;
};

static int parse_chats(struct longdoc *l, struct jobj *up, struct err *err)
{
    struct jobj o;
    int there = jobj_open(&o, up, "chats", false, err);
    if (there <= 0)
        return there;
    if (preset_f64(&o, "per_document", 0, PRESET_COUNT_MAX, &l->chats_per_document, err) < 0 ||
        dist_parse(&l->chat_input, &o, "input_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&l->chat_output, &o, "output_tokens", PRESET_TOKENS_MAX, err) < 0)
        return -1;
    return jobj_done(&o, err);
}

static int parse(struct longdoc *l, struct jobj *o, struct err *err)
{
    if (preset_i64(o, "documents", 1, PRESET_COUNT_MAX, &l->documents, err) < 0 ||
        preset_f64(o, "rate_per_s", 1e-6, 1e6, &l->rate_per_s, err) < 0 ||
        preset_f64(o, "gap_cv", 0.1, 10, &l->gap_cv, err) < 0 ||
        preset_f64(o, "burst_frac", 0, 1, &l->burst_frac, err) < 0 ||
        dist_parse(&l->document, o, "document_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&l->questions, o, "questions", PRESET_COUNT_MAX, err) < 0)
        return -1;
    if (dist_parse(&l->question, o, "question_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&l->output, o, "output_tokens", PRESET_TOKENS_MAX, err) < 0 ||
        dist_parse(&l->think_s, o, "think_s", PRESET_SECONDS, err) < 0)
        return -1;
    return parse_chats(l, o, err) < 0 ? -1 : jobj_done(o, err);
}

struct making {
    const struct longdoc *l;
    struct trace *t;
    struct rng arrivals, tokens, delays, chats;
    struct workload_size size;
};

static int add_question(struct making *m, __int128 at_ps, int64_t document, size_t first,
                        bool waits, struct err *err)
{
    int64_t input = document + dist_count(&m->l->question, &m->tokens);
    int64_t output = dist_count(&m->l->output, &m->tokens);
    size_t before = m->t->n - 1;
    int rc =
        waits ? trace_add_waiting(m->t, dist_ps(&m->l->think_s, &m->delays), input, output, 0, err)
              : trace_add(m->t, at_ps, input, output, 0, err);
    if (rc < 0)
        return -1;
    if (waits)
        trace_wait_for(m->t, before);
    if (m->t->block_tokens > 0)
        trace_grow_prompt(m->t, first, m->t->n - 1 > first ? document : 0);
    return workload_check_size(&m->size, m->t, err);
}

static int add_document(struct making *m, __int128 at_ps, int64_t number, struct err *err)
{
    char name[32];
    size_t first = m->t->n;
    int64_t document = dist_count(&m->l->document, &m->tokens);
    int64_t questions = dist_count(&m->l->questions, &m->tokens);
    bool at_once = rng_f64(&m->arrivals) < m->l->burst_frac;
    snprintf(name, sizeof name, "%lld", (long long)number);
    for (int64_t i = 0; i < questions; i++) {
        if (add_question(m, at_ps, document, first, i > 0 && !at_once, err) < 0)
            return -1;
        trace_set_session(m->t, name);
    }
    return 0;
}

/* A Poisson process up to the last document. */
static int add_chats(struct making *m, double per_s, __int128 until_ps, struct err *err)
{
    const struct longdoc *l = m->l;
    __int128 at_ps = 0;
    while (per_s > 0) {
        at_ps += llround(-log(1 - rng_f64(&m->chats)) / per_s * (double)PS_PER_S);
        if (at_ps >= until_ps)
            break;
        int64_t input = dist_count(&l->chat_input, &m->chats);
        int64_t output = dist_count(&l->chat_output, &m->chats);
        if (trace_add(m->t, at_ps, input, output, 0, err) < 0)
            return -1;
        if (m->t->block_tokens > 0)
            trace_grow_prompt(m->t, 0, 0);
        if (workload_check_size(&m->size, m->t, err) < 0)
            return -1;
    }
    return 0;
}

static int add_all(struct making *m, int64_t documents, double rate_per_s, struct err *err)
{
    const struct dist gap = {.kind = DIST_GAMMA,
                             .centre = 1 / rate_per_s,
                             .shape = 1 / (m->l->gap_cv * m->l->gap_cv),
                             .max = PRESET_SECONDS};
    __int128 at_ps = 0;
    for (int64_t i = 0; i < documents; i++) {
        at_ps += i > 0 ? dist_ps(&gap, &m->arrivals) : 0;
        if (add_document(m, at_ps, i, err) < 0)
            return -1;
    }
    return add_chats(m, m->l->chats_per_document * rate_per_s, at_ps, err);
}

static int generate(struct trace *t, struct jobj *preset, const struct workload_ask *ask,
                    struct err *err)
{
    struct longdoc l = {0};
    struct making m = {.l = &l, .t = t};
    if (parse(&l, preset, err) < 0)
        return -1;
    workload_stream(&m.arrivals, &workload_longdoc, "arrivals", ask->seed);
    workload_stream(&m.tokens, &workload_longdoc, "tokens", ask->seed);
    workload_stream(&m.delays, &workload_longdoc, "delays", ask->seed);
    workload_stream(&m.chats, &workload_longdoc, "chats", ask->seed);
    return add_all(&m, ask->count > 0 ? ask->count : l.documents,
                   ask->rate_per_s > 0 ? ask->rate_per_s : l.rate_per_s, err);
}

const struct workload workload_longdoc = {
    .name = "longdoc",
    .preset = "long-documents",
    .what = "questions about documents of up to a million tokens, with short answers",
    .generate = generate,
};
