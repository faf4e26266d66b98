/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "replay/cuda/oracle_pass.h"
#include "sim/base/mem.h"

/* y = down(silu(gate x) * up x), n rows; the three matrices follow each other in enum matrix. */
static void run_ffn(const struct oracle_pass *p, enum matrix gate, int expert, int64_t n,
                    const double *x, double *y)
{
    const struct oracle_buffers *at = &p->o->at;
    int inter = slice_rows(p->o->slice, p->layer, gate);

    oracle_project(p, gate, expert, n, x, at->gate);
    oracle_project(p, gate + 1, expert, n, x, at->up);
    oracle_try(p->err, exact_swiglu(at->gate, at->up, n * inter), "swiglu");
    oracle_project(p, gate + 2, expert, n, at->gate, y);
}

static void choose_best(const double *logit, int experts, int topk, bool *chosen)
{
    for (int k = 0; k < topk; k++) {
        int best = -1;
        for (int e = 0; e < experts; e++) {
            if (!chosen[e] && (best < 0 || logit[e] > logit[best]))
                best = e;
        }
        chosen[best] = true;
    }
}

/* By how much the best expert left out beats the worst one chosen. */
static double shortfall(const double *logit, const bool *chosen, int experts)
{
    double worst_in = INFINITY, best_out = -INFINITY;
    for (int e = 0; e < experts; e++) {
        if (chosen[e])
            worst_in = fmin(worst_in, logit[e]);
        else
            best_out = fmax(best_out, logit[e]);
    }
    return best_out - worst_in;
}

static int choose_given(const struct model *m, const double *logit, const int32_t *given,
                        double tie, bool *chosen, struct err *err)
{
    for (int k = 0; k < m->moe.topk; k++) {
        if (given[k] < 0 || given[k] >= m->moe.experts)
            return err_run(err, "there is no expert %" PRId32, given[k]);
        if (chosen[given[k]])
            return err_run(err, "expert %" PRId32 " is chosen twice", given[k]);
        chosen[given[k]] = true;
    }
    double short_by = shortfall(logit, chosen, m->moe.experts);
    if (short_by > tie)
        return err_run(err, "an expert left out is better by %g, more than %g", short_by, tie);
    return 0;
}

/* Turn a row's logits into the experts' weights: softmax over the chosen, 0 for the others. */
static void weigh(double *logit, const bool *chosen, int experts)
{
    double max = -INFINITY, sum = 0;
    for (int e = 0; e < experts; e++) {
        if (chosen[e])
            max = fmax(max, logit[e]);
    }
    for (int e = 0; e < experts; e++)
        sum += logit[e] = chosen[e] ? exp(logit[e] - max) : 0;
    for (int e = 0; e < experts; e++)
        logit[e] /= sum;
}

/* One row's experts, from logits to weights. */
static void route_row(const struct oracle_pass *p, int i, const int32_t *given, double tie,
                      double *logit)
{
    const struct model *m = &p->o->slice->model;
    struct err why = ERR_NONE;
    bool *chosen = xcalloc((size_t)m->moe.experts, sizeof *chosen);

    if (given)
        choose_given(m, logit, given, tie, chosen, &why);
    else
        choose_best(logit, m->moe.experts, m->moe.topk, chosen);
    weigh(logit, chosen, m->moe.experts);
    free(chosen);
    if (why.set)
        err_run(p->err, "request %" PRId64 ", position %" PRId64 ", layer %d: %s", p->row[i].req,
                p->row[i].position, p->layer, why.text);
}

/* weight [n][experts]; fails as oracle_step() does. */
static int route(const struct oracle_pass *p, const int32_t *experts, double tie, double *weight)
{
    const struct model *m = &p->o->slice->model;

    oracle_project(p, MAT_ROUTER, 0, p->n, p->o->at.normed, p->o->at.logit);
    oracle_copy(p->err, weight, p->o->at.logit, (int64_t)p->n * m->moe.experts);
    for (int i = 0; i < p->n && !p->err->set; i++)
        route_row(p, i, experts ? experts + (int64_t)i * m->moe.topk : NULL, tie,
                  weight + (int64_t)i * m->moe.experts);
    return p->err->set ? -1 : 0;
}

/* Add one expert's part to the rows that chose it. */
static void run_expert(const struct oracle_pass *p, int expert, const double *weight)
{
    const struct model *m = &p->o->slice->model;
    const struct oracle_buffers *at = &p->o->at;
    int64_t n = 0;

    for (int64_t i = 0; i < p->n; i++)
        if (weight[i * m->moe.experts + expert] > 0)
            oracle_copy(p->err, at->chosen + n++ * m->hidden, at->normed + i * m->hidden,
                        m->hidden);
    if (n == 0)
        return;
    run_ffn(p, MAT_GATE, expert, n, at->chosen, at->expert);
    const double *next = at->expert;
    for (int64_t i = 0; i < p->n; i++) {
        double share = weight[i * m->moe.experts + expert];
        if (share > 0) {
            oracle_try(p->err, exact_add(at->added + i * m->hidden, share, next, m->hidden),
                       "add an expert's part");
            next += m->hidden;
        }
    }
}

static void run_moe(const struct oracle_pass *p, const int32_t *experts, double tie)
{
    const struct model *m = &p->o->slice->model;
    const struct oracle_buffers *at = &p->o->at;
    double *weight = xcalloc((size_t)p->n * (size_t)m->moe.experts, sizeof *weight);

    if (m->moe.shared > 0)
        run_ffn(p, MAT_SHARED_GATE, 0, p->n, at->normed, at->added);
    else
        oracle_try(p->err,
                   cudaMemset(at->added, 0, (size_t)p->n * (size_t)m->hidden * sizeof(double)),
                   "clear rows");
    if (route(p, experts, tie, weight) == 0)
        for (int e = 0; e < m->moe.experts; e++)
            run_expert(p, e, weight);
    free(weight);
}

void oracle_ffn(const struct oracle_pass *p, const int32_t *experts, double tie)
{
    if (slice_is_moe(p->o->slice, p->layer))
        run_moe(p, experts, tie);
    else
        run_ffn(p, MAT_GATE, 0, p->n, p->o->at.normed, p->o->at.added);
}
