/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/moe.h"
#include "kernels/pick.h"
#include "kernels/rows.h"
#include "replay/cuda/rank.h"
#include "replay/store.h"

static int dense(struct gpu_rank *r, int layer, enum matrix gate, int64_t rows, uint16_t *y,
                 struct err *err)
{
    const struct weights_layer *w = &r->weights.layer[layer];
    const struct scratch *x = &r->scratch;
    int64_t hidden = r->slice->model.hidden, inter = weights_inter(&r->weights, layer, gate);
    struct gemm up = {.x = x->normed,
                      .w = w->at[gate],
                      .y = x->gate_up,
                      .rows = rows,
                      .n = 2 * inter,
                      .k = hidden,
                      .x_row = hidden,
                      .w_row = hidden,
                      .y_row = 2 * inter};
    struct gemm down = {.x = x->act,
                        .w = w->at[gate + 2],
                        .y = y,
                        .rows = rows,
                        .n = hidden,
                        .k = inter,
                        .x_row = inter,
                        .w_row = inter,
                        .y_row = hidden};
    if (rank_product(r, &up, err) < 0 ||
        gpu_try(rows_swiglu(x->act, x->gate_up, rows, (int)inter, r->stream), "activation", err) <
            0)
        return -1;
    return rank_product(r, &down, err);
}

static int route(struct gpu_rank *r, int layer, int64_t rows, struct store_span mine,
                 struct err *err)
{
    const struct model *m = &r->slice->model;
    struct gemm logits = {.x = r->scratch.normed,
                          .w = r->weights.layer[layer].at[MAT_ROUTER],
                          .y = r->scratch.logits,
                          .rows = rows,
                          .n = m->moe.experts,
                          .k = m->hidden,
                          .x_row = m->hidden,
                          .w_row = m->hidden,
                          .y_row = m->moe.experts,
                          .y_is_fp32 = true};
    if (rank_product(r, &logits, err) < 0 ||
        gpu_try(moe_route(&r->scratch.routes, r->scratch.logits, rows, m->moe.experts, m->moe.topk,
                          mine.first, mine.end, r->stream),
                "routing", err) < 0)
        return -1;
    if (r->sample == NULL)
        return 0;
    int64_t first = (int64_t)layer * ORACLE_ROWS_MAX * m->moe.topk;
    return gpu_try(pick_rows(r->scratch.taps.experts + first, r->scratch.routes.expert,
                             r->scratch.device.sample_all, ORACLE_ROWS_MAX,
                             (int64_t)m->moe.topk * 4, r->stream),
                   "tap", err);
}

static int experts(struct gpu_rank *r, int layer, int64_t rows, struct store_span mine,
                   struct err *err)
{
    const struct model *m = &r->slice->model;
    const struct scratch *x = &r->scratch;
    int64_t slots = rows * m->moe.topk;
    struct moe_gemm up = {.x = x->normed,
                          .w = r->weights.layer[layer].at[MAT_GATE],
                          .y = x->gate_up,
                          .first = x->routes.first,
                          .slot_row = x->routes.slot_row,
                          .slots_max = slots,
                          .experts = mine.end - mine.first,
                          .n = 2 * m->moe.inter,
                          .k = m->hidden};
    struct moe_gemm down = {.x = x->act,
                            .w = r->weights.layer[layer].at[MAT_DOWN],
                            .y = x->slot_out,
                            .first = x->routes.first,
                            .slots_max = slots,
                            .experts = mine.end - mine.first,
                            .n = m->hidden,
                            .k = m->moe.inter};
    if (gpu_try(moe_gemm(&up, r->stream), "experts", err) < 0 ||
        gpu_try(rows_swiglu(x->act, x->gate_up, slots, m->moe.inter, r->stream), "activation",
                err) < 0)
        return -1;
    return gpu_try(moe_gemm(&down, r->stream), "experts", err);
}

static int mixture(struct gpu_rank *r, int layer, int64_t rows, struct err *err)
{
    const struct model *m = &r->slice->model;
    struct scratch *x = &r->scratch;
    struct store_span mine = store_span_of(m->moe.experts, r->comm->rank, r->comm->ranks);
    bool shared = m->moe.shared > 0;
    if (route(r, layer, rows, mine, err) < 0 ||
        (shared && dense(r, layer, MAT_SHARED_GATE, rows, x->shared, err) < 0) ||
        experts(r, layer, rows, mine, err) < 0)
        return -1;
    return gpu_try(moe_combine(x->y, shared ? x->shared : NULL, x->slot_out, &x->routes, rows,
                               m->moe.topk, m->hidden, r->stream),
                   "combining experts", err);
}

/* The ranks' partial sums of y, whole where the rows live. */
static int bring_home(struct gpu_rank *r, const struct scheme *s, const struct link_exchange *out,
                      struct err *err)
{
    struct scheme_range home = scheme_home(s, s->rank);
    int64_t hidden = r->slice->model.hidden;
    if (out == NULL)
        return rank_all_reduce(r, r->scratch.y, s->rows.n * hidden, err);
    if (rank_exchange(r, out, err) < 0)
        return -1;
    return gpu_try(rows_sum(r->scratch.y + home.first_row * hidden, r->scratch.y_parts,
                            s->layout.ranks, home.rows * hidden, r->stream),
                   "sum", err);
}

static int tap(struct gpu_rank *r, int layer, struct err *err)
{
    int64_t hidden = r->slice->model.hidden, first = (int64_t)layer * ORACLE_ROWS_MAX * hidden;
    if (r->sample == NULL)
        return 0;
    return gpu_try(pick_rows(r->scratch.taps.ffn + first, r->scratch.y,
                             r->scratch.device.sample_home, ORACLE_ROWS_MAX, hidden * 2, r->stream),
                   "tap", err);
}

int ffn_enqueue(struct gpu_rank *r, struct pass *p, int layer, struct marks *marks, struct err *err)
{
    int kind = pass_kind(p, r->slice, layer);
    const struct scheme *s = &p->scheme[kind];
    const struct exchanges *e = &p->exchanges[kind];
    struct scheme_range home = scheme_home(s, s->rank);
    int64_t hidden = r->slice->model.hidden, first = home.first_row * hidden;
    struct scratch *x = &r->scratch;
    if (marks_add(marks, ON_FFN, r->stream, err) < 0 ||
        gpu_try(rows_norm(x->normed + first, x->x + first, home.rows, (int)hidden, r->stream),
                "norm", err) < 0 ||
        (e->ffn_in != NULL &&
         (marks_add(marks, ON_EXCHANGE, r->stream, err) < 0 ||
          rank_exchange(r, e->ffn_in, err) < 0 || marks_add(marks, ON_FFN, r->stream, err) < 0)))
        return -1;
    int rc = slice_is_moe(r->slice, layer) ? mixture(r, layer, s->rows.n, err)
                                           : dense(r, layer, MAT_GATE, s->rows.n, x->y, err);
    if (rc < 0 || marks_add(marks, ON_EXCHANGE, r->stream, err) < 0 ||
        bring_home(r, s, e->ffn_out, err) < 0 || marks_add(marks, ON_OTHER, r->stream, err) < 0 ||
        tap(r, layer, err) < 0)
        return -1;
    return gpu_try(rows_add(x->x + first, x->y + first, 1, home.rows * hidden, r->stream),
                   "residual", err);
}
