/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about long documents. Runs in the root of the repository.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "sim/base/units.h"
#include "tests/made_trace.h"

static struct trace made(const char *preset, struct workload_ask ask)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(make_trace(&t, preset, "longdoc", ask, &err), 0, "%s", err.text);
    return t;
}

/* Per session, which is one document. */
static int64_t *count_questions(const struct trace *t)
{
    int64_t *questions = xcalloc(t->session.n, sizeof *questions);
    for (size_t i = 0; i < t->n; i++)
        if (t->request[i].session != TRACE_NO_SESSION)
            questions[t->request[i].session]++;
    return questions;
}

/* L-Eval: p50 3, p90 10.7, mean 4.9 questions for a document. */
Test(gen_longdoc, documents_have_the_published_number_of_questions)
{
    struct trace t = made("long-documents", (struct workload_ask){.count = 20000});
    int64_t *questions = count_questions(&t);
    cr_assert_eq(t.session.n, 20000);
    cr_expect_leq(error_frac((double)t.n / 20000, 4.9), 0.05);
    cr_expect_eq(quantile_of(questions, t.session.n, 0.5), 3);
    cr_expect_leq(fabs(quantile_of(questions, t.session.n, 0.9) - 10.7), 0.7);
    free(questions);
    trace_release(&t);
}

/* Documents of 32K to 1M, with a question of at most 2K; answers of at most 1.1K. */
Test(gen_longdoc, inputs_are_long_and_outputs_short)
{
    struct trace t = made("long-documents", (struct workload_ask){.count = 2000});
    for (size_t i = 0; i < t.n; i++) {
        cr_assert(t.request[i].input_tokens > 32768 && t.request[i].input_tokens <= 1050624);
        cr_assert_leq(t.request[i].output_tokens, 1100);
    }
    trace_release(&t);
}

/* One cold prompt a document: the questions behind it find all whole blocks of the document, that
 * is all but their own tokens and part of a block. */
Test(gen_longdoc, questions_share_their_document)
{
    struct trace t =
        made("long-documents", (struct workload_ask){.count = 500, .block_tokens = 64});
    bool *seen = xcalloc(t.session.n, sizeof *seen);
    int64_t cold = 0, all = 0;
    for (size_t i = 0; i < t.n; i++) {
        cold += seen[t.request[i].session] ? 0 : t.request[i].input_tokens;
        all += t.request[i].input_tokens;
        seen[t.request[i].session] = true;
    }
    double most = 1 - (double)cold / (double)all, hits = trace_prefix_hit_frac_max(&t);
    cr_expect(hits <= most && hits > most - 0.002, "%g of %g", hits, most);
    cr_expect(hits > 0.7 && hits < 0.9, "%g", hits);
    free(seen);
    trace_release(&t);
}

/* A quarter of the documents get all questions at once, the others one by one. */
Test(gen_longdoc, questions_come_at_once_or_one_by_one)
{
    struct trace t = made("long-documents", (struct workload_ask){.count = 20000});
    int64_t *questions = count_questions(&t), *at_once = xcalloc(t.session.n, sizeof *at_once);
    size_t several = 0, bursts = 0;
    for (size_t i = 0; i < t.n; i++)
        at_once[t.request[i].session] += t.request[i].n_after == 0;
    for (size_t i = 0; i < t.session.n; i++) {
        cr_assert(at_once[i] == 1 || at_once[i] == questions[i]);
        several += questions[i] > 1;
        bursts += questions[i] > 1 && at_once[i] > 1;
    }
    cr_expect_leq(error_frac((double)bursts / (double)several, 0.25), 0.05);
    free(questions);
    free(at_once);
    trace_release(&t);
}

/* Gaps between documents: mean 1 / rate, coefficient of variation 2. */
Test(gen_longdoc, documents_come_in_bursts)
{
    struct trace t = made("long-documents", (struct workload_ask){.count = 20000, .rate_per_s = 2});
    bool *seen = xcalloc(t.session.n, sizeof *seen);
    double sum = 0, squares = 0, last_s = 0;
    for (size_t i = 0; i < t.n; i++) {
        if (seen[t.request[i].session])
            continue;
        double at_s = (double)t.request[i].arrival_ps / (double)PS_PER_S, gap_s = at_s - last_s;
        seen[t.request[i].session] = true;
        last_s = at_s;
        sum += gap_s;
        squares += gap_s * gap_s;
    }
    double mean = sum / 19999, cv = sqrt(squares / 19999 - mean * mean) / mean;
    cr_expect_leq(error_frac(mean, 0.5), 0.05, "%g", mean);
    cr_expect_leq(error_frac(cv, 2), 0.05, "%g", cv);
    free(seen);
    trace_release(&t);
}

Test(gen_longdoc, chats_come_between_documents)
{
    struct trace t = made("mixed-chat", (struct workload_ask){.count = 200, .block_tokens = 64});
    int64_t chats = 0, last_ps = 0;
    for (size_t i = 0; i < t.n; i++) {
        const struct trace_request *r = &t.request[i];
        if (r->session != TRACE_NO_SESSION) {
            last_ps = r->n_after == 0 && r->arrival_ps > last_ps ? r->arrival_ps : last_ps;
            continue;
        }
        chats++;
        cr_assert(r->input_tokens == 100 && r->output_tokens <= 511 && r->n_hashes == 1);
    }
    /* one a second up to the last document */
    cr_expect_leq(error_frac((double)chats, (double)last_ps / (double)PS_PER_S), 0.05);
    trace_release(&t);
}
