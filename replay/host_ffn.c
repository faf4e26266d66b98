/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "replay/host_pass.h"
#include "sim/base/mem.h"

/* Some rows between gate and down: gate, up [inter][hidden], down [hidden][inter]. */
struct ffn {
    const double *gate, *up, *down;
    int inter, hidden;
};

/* y += weight * down(silu(gate x) * up x) */
static void add_ffn(const struct ffn *f, double weight, const double *x, double *y)
{
    double *act = xcalloc((size_t)f->inter + 1, sizeof *act);
    for (int i = 0; i < f->inter; i++) {
        double gate = host_dot(f->gate + (int64_t)i * f->hidden, x, f->hidden);
        double up = host_dot(f->up + (int64_t)i * f->hidden, x, f->hidden);
        act[i] = gate / (1 + exp(-gate)) * up;
    }
    for (int j = 0; j < f->hidden; j++)
        y[j] += weight * host_dot(f->down + (int64_t)j * f->inter, act, f->inter);
    free(act);
}

/* This rank's rows of a dense FFN or of the shared expert. */
static struct ffn share_of_ffn(const struct host_pass *p, enum matrix gate)
{
    const struct store *s = p->store;
    int inter = slice_rows(s->slice, p->layer, gate);
    struct store_span mine = store_span_of(inter, s->rank, s->ranks);
    return (struct ffn){store_weight(s, p->layer, gate), store_weight(s, p->layer, gate + 1),
                        store_weight(s, p->layer, gate + 2), mine.end - mine.first,
                        s->slice->model.hidden};
}

/* Expert e, which this rank holds. */
static struct ffn expert_of(const struct host_pass *p, int e)
{
    const struct model *m = &p->store->slice->model;
    struct store_span mine = store_span_of(m->moe.experts, p->store->rank, p->store->ranks);
    int64_t first = (int64_t)(e - mine.first) * m->moe.inter * m->hidden;
    return (struct ffn){store_weight(p->store, p->layer, MAT_GATE) + first,
                        store_weight(p->store, p->layer, MAT_UP) + first,
                        store_weight(p->store, p->layer, MAT_DOWN) + first, m->moe.inter,
                        m->hidden};
}

/* The expert of the largest logit that is not taken; ties go to the lower index. */
static int next_expert(const double *logit, const bool *taken, int experts)
{
    int best = -1;
    for (int e = 0; e < experts; e++) {
        if (!taken[e] && (best < 0 || logit[e] > logit[best]))
            best = e;
    }
    return best;
}

/* weight[expert] = softmax over the top k, zero for the others. */
static void route(const struct host_pass *p, const double *x, double *weight)
{
    const struct model *m = &p->store->slice->model;
    int experts = m->moe.experts;
    double *logit = xcalloc((size_t)experts, sizeof *logit), sum = 0;
    bool *taken = xcalloc((size_t)experts, sizeof *taken);
    host_multiply(logit, store_weight(p->store, p->layer, MAT_ROUTER), x, experts, m->hidden);
    int first = next_expert(logit, taken, experts);
    for (int k = 0; k < m->moe.topk; k++) {
        int e = next_expert(logit, taken, experts);
        taken[e] = true;
        sum += exp(logit[e] - logit[first]);
    }
    for (int e = 0; e < experts; e++)
        weight[e] = taken[e] ? exp(logit[e] - logit[first]) / sum : 0;
    free(logit);
    free(taken);
}

static void add_experts(const struct host_pass *p, const double *x, double *y)
{
    const struct model *m = &p->store->slice->model;
    struct store_span mine = store_span_of(m->moe.experts, p->store->rank, p->store->ranks);
    double *weight = xcalloc((size_t)m->moe.experts, sizeof *weight);
    route(p, x, weight);
    for (int e = mine.first; e < mine.end; e++) {
        struct ffn f = expert_of(p, e);
        if (weight[e] != 0)
            add_ffn(&f, weight[e], x, y);
    }
    free(weight);
}

void host_ffn(const struct host_pass *p, const double *x, double *y)
{
    const struct model *m = &p->store->slice->model;
    bool is_moe = slice_is_moe(p->store->slice, p->layer), is_dense = !is_moe;
    struct ffn always = share_of_ffn(p, is_moe ? MAT_SHARED_GATE : MAT_GATE);
    for (int64_t i = 0; i < p->rows.n; i++) {
        const double *in = x + i * m->hidden;
        double *out = y + i * m->hidden;
        for (int j = 0; j < m->hidden; j++)
            out[j] = 0;
        if (is_dense || m->moe.shared > 0)
            add_ffn(&always, 1, in, out);
        if (is_moe)
            add_experts(p, in, out);
    }
}
