/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>

#include "kernels/kv_append.h"
#include "kernels/lse_combine.h"
#include "kernels/pick.h"
#include "kernels/rows.h"
#include "replay/cuda/rank.h"

/* One layer's attention under way. */
struct attending {
    struct gpu_rank *r;
    const struct pass *p;
    int layer, kind;
    const struct scheme *s;
    const struct exchanges *e;
    const struct model *m;
    struct scratch *x;
    struct head_dims d;
    struct marks *marks;
};

static uint16_t *weight(const struct attending *a, enum matrix m)
{
    return a->r->weights.layer[a->layer].at[m];
}

static int mark(const struct attending *a, enum stage stage, struct err *err)
{
    return marks_add(a->marks, stage, a->r->stream, err);
}

static int launched(cudaError_t e, const char *what, struct err *err)
{
    return gpu_try(e, what, err);
}

static int exchange(const struct attending *a, const struct link_exchange *e, struct err *err)
{
    if (e == NULL)
        return 0;
    return mark(a, ON_EXCHANGE, err) < 0 || rank_exchange(a->r, e, err) < 0 ? -1 : 0;
}

static int norm_rows(const struct attending *a, const struct link_exchange *to_all, struct err *err)
{
    struct scheme_range home = scheme_home(a->s, a->s->rank);
    int64_t first = home.first_row * a->m->hidden;
    if (launched(
            rows_norm(a->x->normed + first, a->x->x + first, home.rows, a->m->hidden, a->r->stream),
            "norm", err) < 0)
        return -1;
    return exchange(a, to_all, err);
}

/* Numbers of heads side by side in rows. */
struct head_rows {
    uint16_t *first;
    int64_t row, head; /* distances */
};

static int rotate(const struct attending *a, const struct scheme_range *rows, struct head_rows from,
                  struct head_rows to, int width, struct err *err)
{
    struct rows_rotate rot = {.from = from.first,
                              .to = to.first,
                              .position = a->x->device.position + rows->first_row,
                              .rows = rows->rows,
                              .from_row = from.row,
                              .from_head = from.head,
                              .to_row = to.row,
                              .to_head = to.head,
                              .heads = rows->heads,
                              .width = width};
    return launched(rows_rotate(&rot, a->r->stream), "rotary embedding", err);
}

/* Queries are taken through K_B into the latent, which all heads share as key. */
static int absorb(const struct attending *a, const struct scheme_range *rows, struct err *err)
{
    int64_t nope = a->m->nope_dim, lora = a->m->kv_lora, width = nope + a->m->rope_dim;
    struct gemm g = {
        .x = a->x->q,
        .w = weight(a, MAT_K_B) + rows->first_head * nope * lora,
        .y = a->x->query,
        .rows = rows->rows,
        .n = lora,
        .k = nope,
        .x_row = rows->heads * width,
        .w_row = lora,
        .y_row = (int64_t)rows->heads * a->d.query,
        .batch = rows->heads,
        .x_batch = width,
        .w_batch = nope * lora,
        .y_batch = a->d.query,
        .k_first = true,
    };
    if (rank_product(a->r, &g, err) < 0)
        return -1;
    return rotate(a, rows, (struct head_rows){a->x->q + nope, g.x_row, width},
                  (struct head_rows){a->x->query + lora, g.y_row, a->d.query}, a->m->rope_dim, err);
}

/* A matrix [n][k] without gaps. */
struct dense {
    const uint16_t *w;
    int64_t n, k;
};

/* y [rows][n] = x [rows][k] w', without gaps too. */
static int product(const struct attending *a, const uint16_t *x, struct dense w, uint16_t *y,
                   int64_t rows, struct err *err)
{
    struct gemm g = {.x = x,
                     .w = w.w,
                     .y = y,
                     .rows = rows,
                     .n = w.n,
                     .k = w.k,
                     .x_row = w.k,
                     .w_row = w.k,
                     .y_row = w.n};
    return rank_product(a->r, &g, err);
}

static int make_queries(const struct attending *a, struct err *err)
{
    const struct model *m = a->m;
    const struct scheme_range *rows = &a->s->at[SHARE_PROJECT];
    const uint16_t *in = a->x->normed + rows->first_row * m->hidden;
    int64_t width = m->nope_dim + m->rope_dim, n = rows->heads * width;
    int64_t columns = m->attention == ATTN_MLA ? m->q_lora : m->hidden;
    struct dense q_b = {weight(a, MAT_Q_B) + rows->first_head * width * columns, n, columns};
    if (m->attention == ATTN_MLA) {
        struct dense q_a = {weight(a, MAT_Q_A), m->q_lora, m->hidden};
        if (product(a, in, q_a, a->x->q_a, rows->rows, err) < 0 ||
            product(a, a->x->q_a, q_b, a->x->q, rows->rows, err) < 0)
            return -1;
        return absorb(a, rows, err);
    }
    struct head_rows heads = {a->x->query, n, width};
    if (product(a, in, q_b, a->x->query, rows->rows, err) < 0)
        return -1;
    return rotate(a, rows, heads, heads, (int)width, err);
}

/* K or V of every KV head, side by side in the stored row. */
static int make_heads(const struct attending *a, enum matrix m, const struct scheme_range *rows,
                      int64_t at, struct err *err)
{
    int64_t dim = a->m->nope_dim, hidden = a->m->hidden;
    struct gemm g = {
        .x = a->x->normed + rows->first_row * hidden,
        .w = weight(a, m) + rows->first_head * dim * hidden,
        .y = a->x->kv + at,
        .rows = rows->rows,
        .n = dim,
        .k = hidden,
        .x_row = hidden,
        .w_row = hidden,
        .y_row = (int64_t)rows->heads * a->d.kv_dim,
        .batch = rows->heads,
        .x_batch = 0,
        .w_batch = dim * hidden,
        .y_batch = a->d.kv_dim,
    };
    return rank_product(a->r, &g, err);
}

static int make_kv(const struct attending *a, struct err *err)
{
    const struct model *m = a->m;
    struct scheme_range rows = a->s->at[SHARE_KV];
    int64_t width = (int64_t)rows.heads * a->d.kv_dim;
    if (m->attention == ATTN_MLA) {
        struct head_rows rotary = {a->x->kv + m->kv_lora, width, width};
        struct dense kv_a = {weight(a, MAT_KV_A), width, m->hidden};
        if (product(a, a->x->normed + rows.first_row * m->hidden, kv_a, a->x->kv, rows.rows, err) <
            0)
            return -1;
        return rotate(a, &rows, rotary, rotary, m->rope_dim, err);
    }
    struct head_rows keys = {a->x->kv, width, a->d.kv_dim};
    if (make_heads(a, MAT_K_B, &rows, 0, err) < 0 ||
        make_heads(a, MAT_V_B, &rows, a->d.value_at, err) < 0)
        return -1;
    return rotate(a, &rows, keys, keys, m->nope_dim, err);
}

static int append_kv(const struct attending *a, struct err *err)
{
    const struct cache *c = &a->r->cache;
    struct scheme_range made = a->s->at[SHARE_KV], kept = a->s->at[SHARE_STORE];
    struct kv_shard k = kv_shard_of(a->r->slice, &a->s->layout, a->s->rank, a->s->rank);
    int64_t width = (int64_t)kept.heads * a->d.kv_dim;
    assert(a->e->kv != NULL || (made.first_head == kept.first_head && made.heads == kept.heads));
    struct kv_append append = {
        .from =
            a->e->kv != NULL ? a->x->kv_in : a->x->kv + (kept.first_row - made.first_row) * width,
        .request = a->x->device.request + kept.first_row,
        .position = a->x->device.position + kept.first_row,
        .table = cache_table(c, a->layer),
        .pages = (uint16_t *)c->pool,
        .rows = kept.rows,
        .table_pages = c->table_pages,
        .width = (int)width,
        .shard = k.shard,
        .shards = k.shards,
    };
    return launched(kv_append(&append, a->r->stream), "KV append", err);
}

static int attend(const struct attending *a, int part, struct err *err)
{
    const struct cache *c = &a->r->cache;
    const struct scheme_range *all = &a->s->at[SHARE_ATTEND];
    struct scheme_range rows = pass_part(a->p, a->kind, part);
    struct kv_shard k = kv_shard_of(a->r->slice, &a->s->layout, a->s->rank, a->s->rank);
    int64_t before = (rows.first_row - all->first_row) * all->heads;
    struct attention at = {
        .query = (a->e->query != NULL ? a->x->query_in : a->x->query) + before * a->d.query,
        .pages = (const uint16_t *)c->pool,
        .table = cache_table(c, a->layer),
        .row_request = a->x->device.request + rows.first_row,
        .row_slots = a->x->device.slots[a->kind] + rows.first_row,
        .rows = rows.rows,
        .plan = a->x->device.plan[a->kind][part],
        .workspace = a->x->workspace,
        .out = a->x->out + before * a->d.value,
        .lse_base_e = a->x->lse + before,
        .scale = (float)(1 / sqrt(a->m->nope_dim + a->m->rope_dim)),
        .table_pages = c->table_pages,
        .bounds = a->p->bounds[a->kind],
        .heads = all->heads,
        .kv_heads = k.heads,
        .key_dim = a->d.query,
        .value_dim = a->d.value,
    };
    if (rows.rows == 0)
        return 0;
    return launched(a->m->attention == ATTN_MLA ? mla_attention(&at, a->r->stream)
                                                : gqa_attention(&at, a->r->stream),
                    "attention", err);
}

/* HOP-B: a part's results travel on the side stream while the next part attends. */
static int send_part(const struct attending *a, int part, struct err *err)
{
    struct gpu_rank *r = a->r;
    if (gpu_try(cudaEventRecord(r->forked, r->stream), "fork", err) < 0 ||
        gpu_try(cudaStreamWaitEvent(r->side, r->forked, 0), "fork", err) < 0 ||
        rank_exchange_beside(r, a->e->out[part], err) < 0)
        return -1;
    return gpu_try(cudaEventRecord(r->joined[part], r->side), "join", err);
}

static int attend_parts(const struct attending *a, struct err *err)
{
    int parts = a->p->parts;
    for (int part = 0; part < parts; part++) {
        if (attend(a, part, err) < 0 || (parts > 1 && send_part(a, part, err) < 0))
            return -1;
    }
    if (parts == 1)
        return exchange(a, a->e->out[0], err);
    if (mark(a, ON_EXCHANGE, err) < 0)
        return -1;
    return gpu_try(cudaStreamWaitEvent(a->r->stream, a->r->joined[parts - 1], 0), "join", err);
}

/* Whole results of this rank's rows and heads at SHARE_OUT. */
struct results {
    const uint16_t *out;
    const float *lse;
};

static int combine(const struct attending *a, struct results *res, struct err *err)
{
    const struct scheme_range *rows = &a->s->at[SHARE_OUT];
    const struct scratch *x = a->x;
    if (a->e->out[0] == NULL)
        *res = (struct results){x->out, x->lse};
    else if (a->s->partials == 1)
        *res = (struct results){x->parts, x->parts_lse};
    else
        *res = (struct results){x->whole, x->whole_lse};
    if (res->out != x->whole || rows->rows == 0)
        return 0;
    struct lse_combine c = {
        .partial = x->parts,
        .partial_lse_base_e = x->parts_lse,
        .out = x->whole,
        .out_lse_base_e = x->whole_lse,
        .rows = rows->rows,
        .partials = a->s->partials,
        .heads = rows->heads,
        .dim = a->d.value,
        .partial_is_bf16 = true,
    };
    return launched(lse_combine(&c, a->r->stream), "combining parts", err);
}

static int project_out(const struct attending *a, const uint16_t *out, struct err *err)
{
    const struct model *m = a->m;
    const struct scheme_range *rows = &a->s->at[SHARE_OUT];
    int64_t width = (int64_t)rows->heads * m->v_dim;
    struct gemm values = {
        .x = out,
        .w = weight(a, MAT_V_B) + (int64_t)rows->first_head * m->v_dim * m->kv_lora,
        .y = a->x->v,
        .rows = rows->rows,
        .n = m->v_dim,
        .k = m->kv_lora,
        .x_row = (int64_t)rows->heads * m->kv_lora,
        .w_row = m->kv_lora,
        .y_row = width,
        .batch = rows->heads,
        .x_batch = m->kv_lora,
        .w_batch = (int64_t)m->v_dim * m->kv_lora,
        .y_batch = m->v_dim,
    };
    if (m->attention == ATTN_MLA && rank_product(a->r, &values, err) < 0)
        return -1;
    struct gemm o = {
        .x = m->attention == ATTN_MLA ? a->x->v : out,
        .w = weight(a, MAT_O) + (int64_t)rows->first_head * m->v_dim * m->hidden,
        .y = a->x->y + rows->first_row * m->hidden,
        .rows = rows->rows,
        .n = m->hidden,
        .k = width,
        .x_row = width,
        .w_row = m->hidden,
        .y_row = m->hidden,
        .k_first = true,
    };
    return rank_product(a->r, &o, err);
}

/* Afterwards y is whole in the rows that live here. */
static int bring_home(const struct attending *a, struct err *err)
{
    struct scheme_range home = scheme_home(a->s, a->s->rank);
    int64_t hidden = a->m->hidden;
    if (a->e->sums_out != NULL) {
        if (exchange(a, a->e->sums_out, err) < 0)
            return -1;
        return launched(rows_sum(a->x->y + home.first_row * hidden, a->x->y_parts,
                                 a->s->layout.ranks, home.rows * hidden, a->r->stream),
                        "sum", err);
    }
    if (a->s->layout.out_shards == 1)
        return exchange(a, a->e->rows_out, err);
    if (mark(a, ON_EXCHANGE, err) < 0)
        return -1;
    return rank_all_reduce(a->r, a->x->y, a->s->rows.n * hidden, err);
}

static int tap(const struct attending *a, const float *lse, struct err *err)
{
    const struct scheme_range *rows = &a->s->at[SHARE_OUT];
    const struct taps *t = &a->x->taps;
    int64_t hidden = a->m->hidden, first = (int64_t)a->layer * ORACLE_ROWS_MAX;
    int64_t heads = rows->heads;
    if (a->r->sample == NULL)
        return 0;
    if (launched(pick_rows(t->attention + first * hidden, a->x->y, a->x->device.sample_home,
                           ORACLE_ROWS_MAX, hidden * 2, a->r->stream),
                 "tap", err) < 0)
        return -1;
    return launched(pick_rows(t->lse + first * a->m->heads, lse, a->x->device.sample_out[a->kind],
                              ORACLE_ROWS_MAX, heads * 4, a->r->stream),
                    "tap", err);
}

static int add_attention(const struct attending *a, struct err *err)
{
    struct results res;
    struct scheme_range home = scheme_home(a->s, a->s->rank);
    int64_t first = home.first_row * a->m->hidden;
    if (mark(a, ON_PROJ, err) < 0 || norm_rows(a, a->e->rows_in, err) < 0 ||
        mark(a, ON_PROJ, err) < 0 || make_queries(a, err) < 0 || make_kv(a, err) < 0 ||
        exchange(a, a->e->kv, err) < 0 || mark(a, ON_ATTN, err) < 0 || append_kv(a, err) < 0 ||
        exchange(a, a->e->query, err) < 0 || mark(a, ON_ATTN, err) < 0 ||
        attend_parts(a, err) < 0 || mark(a, ON_ATTN, err) < 0 || combine(a, &res, err) < 0 ||
        mark(a, ON_PROJ, err) < 0 || project_out(a, res.out, err) < 0 || bring_home(a, err) < 0 ||
        mark(a, ON_OTHER, err) < 0 || tap(a, res.lse, err) < 0)
        return -1;
    return launched(
        rows_add(a->x->x + first, a->x->y + first, 1, home.rows * a->m->hidden, a->r->stream),
        "residual", err);
}

int layer_enqueue(struct gpu_rank *r, struct pass *p, int layer, struct marks *marks,
                  struct err *err)
{
    int kind = pass_kind(p, r->slice, layer);
    struct attending a = {
        .r = r,
        .p = p,
        .layer = layer,
        .kind = kind,
        .s = &p->scheme[kind],
        .e = &p->exchanges[kind],
        .m = &r->slice->model,
        .x = &r->scratch,
        .d = head_dims_of(&r->slice->model),
        .marks = marks,
    };
    if (rank_tap_hidden(r, layer, err) < 0 || add_attention(&a, err) < 0)
        return -1;
    return ffn_enqueue(r, p, layer, marks, err);
}
