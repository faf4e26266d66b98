/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/exchange.h"
#include "replay/host_pass.h"
#include "replay/move.h"
#include "sim/base/mem.h"

/* Attention as the KV is stored. MLA is absorbed: queries are taken through K_B into the latent,
 * which is key (with its rotary part) and value of all heads; V_B follows the combination. */
struct widths {
    int query, output; /* numbers of one head */
    int key_heads;     /* heads of a stored row */
    int key, value_at; /* of one stored head: its width, and where its value starts */
};

static struct widths widths_of(const struct model *m)
{
    if (m->attention == ATTN_MLA)
        return (struct widths){m->kv_lora + m->rope_dim, m->kv_lora, 1, m->kv_lora + m->rope_dim,
                               0};
    return (struct widths){m->nope_dim, m->v_dim, m->kv_heads, 2 * m->nope_dim, m->nope_dim};
}

static const struct model *model_of(const struct host_pass *p)
{
    return &p->store->slice->model;
}

static const double *weight(const struct host_pass *p, enum matrix m)
{
    return store_weight(p->store, p->layer, m);
}

static struct share share(const struct host_pass *p, enum share_stage stage)
{
    return share_of(p->store->slice, &p->layout, stage, p->comm->rank);
}

static double *rows_of(const struct host_pass *p, int heads, int width)
{
    return host_poison((size_t)p->rows.n * (size_t)heads * (size_t)width);
}

/* Rotary embedding by position, pairs (2i, 2i + 1). */
static void rotate(double *x, int n, int64_t position)
{
    for (int i = 0; i + 1 < n; i += 2) {
        double angle = (double)position * pow(10000, -(double)i / n);
        double a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

/* latent = K_B' q: scores against the latent are then scores against K_B latent. */
static void absorb(const struct host_pass *p, int head, const double *q, double *query)
{
    const struct model *m = model_of(p);
    const double *k_b = weight(p, MAT_K_B) + (int64_t)head * m->nope_dim * m->kv_lora;
    memset(query, 0, (size_t)m->kv_lora * sizeof *query);
    for (int64_t d = 0; d < m->nope_dim; d++)
        host_add(query, q[d], k_b + d * m->kv_lora, m->kv_lora);
    memcpy(query + m->kv_lora, q + m->nope_dim, (size_t)m->rope_dim * sizeof *query);
}

/* One head of one row, `in` being q_a's output (MLA) or the row itself. */
static void make_query(const struct host_pass *p, const struct share_row *row, int head,
                       const double *in, double *query)
{
    const struct model *m = model_of(p);
    bool mla = m->attention == ATTN_MLA;
    int width = m->nope_dim + m->rope_dim, columns = mla ? m->q_lora : m->hidden;
    const double *q_b = weight(p, MAT_Q_B) + (int64_t)head * width * columns;
    double *q = xcalloc((size_t)width, sizeof *q);
    host_multiply(q, q_b, in, width, columns);
    if (mla) {
        rotate(q + m->nope_dim, m->rope_dim, row->position);
        absorb(p, head, q, query);
    } else {
        rotate(q, width, row->position);
        memcpy(query, q, (size_t)width * sizeof *q);
    }
    free(q);
}

static double *make_queries(const struct host_pass *p, const double *x)
{
    const struct model *m = model_of(p);
    bool mla = m->attention == ATTN_MLA;
    struct share mine = share(p, SHARE_PROJECT);
    int width = widths_of(m).query;
    double *query = rows_of(p, m->heads, width), *q_a = host_poison((size_t)m->q_lora);
    for (int i = 0; i < p->rows.n; i++) {
        const double *in = x + (int64_t)i * m->hidden;
        if (!share_has_row(&mine, &p->rows, i))
            continue;
        if (mla)
            host_multiply(q_a, weight(p, MAT_Q_A), in, m->q_lora, m->hidden);
        for (int head = mine.first_head; head < mine.end_head; head++)
            make_query(p, &p->rows.row[i], head, mla ? q_a : in,
                       query + ((int64_t)i * m->heads + head) * width);
    }
    free(q_a);
    return query;
}

/* One stored head of a row. */
static void make_kv_head(const struct host_pass *p, const struct share_row *row, int head,
                         const double *in, double *kv)
{
    const struct model *m = model_of(p);
    if (m->attention == ATTN_MLA) {
        host_multiply(kv, weight(p, MAT_KV_A), in, m->kv_lora + m->rope_dim, m->hidden);
        rotate(kv + m->kv_lora, m->rope_dim, row->position);
        return;
    }
    int64_t first = (int64_t)head * m->nope_dim * m->hidden;
    host_multiply(kv, weight(p, MAT_K_B) + first, in, m->nope_dim, m->hidden);
    host_multiply(kv + m->nope_dim, weight(p, MAT_V_B) + first, in, m->nope_dim, m->hidden);
    rotate(kv, m->nope_dim, row->position);
}

static double *make_kv(const struct host_pass *p, const double *x)
{
    struct share mine = share(p, SHARE_KV);
    struct widths w = widths_of(model_of(p));
    double *kv = rows_of(p, w.key_heads, w.key);
    for (int i = 0; i < p->rows.n; i++) {
        if (!share_has_row(&mine, &p->rows, i))
            continue;
        for (int head = mine.first_head; head < mine.end_head; head++)
            make_kv_head(p, &p->rows.row[i], head, x + (int64_t)i * model_of(p)->hidden,
                         kv + ((int64_t)i * w.key_heads + head) * w.key);
    }
    return kv;
}

/* Take rows from where they were made to where they are used. Replaces *array. */
static int hand_over(const struct host_pass *p, enum share_stage from, enum share_stage to,
                     int heads, int width, double **array, struct err *err)
{
    struct exchange e = {p->store->slice, &p->layout, &p->rows,        from, to,
                         heads,           width,      exchange_replace};
    if (share_stays(p->store->slice, &p->layout, from, to))
        return 0;
    double *received = rows_of(p, heads, width);
    int result = exchange_run(&e, *array, received, p->comm, err);
    free(*array);
    *array = received;
    return result;
}

static int append_kv(const struct host_pass *p, const double *x, struct err *err)
{
    struct widths w = widths_of(model_of(p));
    double *kv = make_kv(p, x);
    int result = hand_over(p, SHARE_KV, SHARE_STORE, w.key_heads, w.key, &kv, err);
    for (int i = 0; result == 0 && i < p->rows.n; i++) {
        const struct share_row *row = &p->rows.row[i];
        store_put(p->store, &p->layout, row->request, p->layer, row->position,
                  kv + (int64_t)i * w.key_heads * w.key);
    }
    free(kv);
    return result;
}

/* What this rank sees of a request's positions 0 .. tokens - 1 through one query head. */
struct view {
    const double *kv; /* the head of position 0 */
    int stride;       /* from position to position */
    int64_t tokens;
    bool *block_held;
    struct widths w;
};

static bool sees(const struct view *v, int64_t position)
{
    return v->block_held[position / STORE_BLOCK_TOKENS];
}

/* Softmax-weighted values and their LSE, over what is seen. */
static void attend(const struct view *v, double scale, const double *query, double *output)
{
    const struct widths *w = &v->w;
    double *score = xcalloc((size_t)v->tokens, sizeof *score), max = -INFINITY, sum = 0;
    for (int64_t p = 0; p < v->tokens; p++) {
        if (!sees(v, p))
            continue;
        score[p] = scale * host_dot(query, v->kv + p * v->stride, w->query);
        max = fmax(max, score[p]);
    }
    memset(output, 0, (size_t)w->output * sizeof *output);
    for (int64_t p = 0; p < v->tokens; p++) {
        if (!sees(v, p))
            continue;
        double e = exp(score[p] - max);
        sum += e;
        host_add(output, e, v->kv + p * v->stride + w->value_at, w->output);
    }
    for (int i = 0; i < w->output && sum != 0; i++)
        output[i] /= sum;
    output[w->output] = sum == 0 ? -INFINITY : max + log(sum);
    free(score);
}

static void find_held_blocks(const struct host_pass *p, const struct layout *seen,
                             const struct share_row *row, int key_head, bool *held)
{
    struct store_cell c = {
        .part = STORE_KV, .layer = p->layer, .head = key_head, .owner = row->owner};
    for (; c.block <= row->position / STORE_BLOCK_TOKENS; c.block++)
        held[c.block] = store_holds(p->store->slice, &c, seen, p->comm->rank);
}

static void attend_row(const struct host_pass *p, const struct layout *seen, int i,
                       const double *query, double *partial)
{
    const struct model *m = model_of(p);
    const struct share_row *row = &p->rows.row[i];
    struct share mine = share(p, SHARE_ATTEND);
    struct view v = {.tokens = row->position + 1, .w = widths_of(m)};
    double scale = 1 / sqrt(m->nope_dim + m->rope_dim);
    v.stride = v.w.key_heads * v.w.key;
    v.block_held = xcalloc((size_t)(row->position / STORE_BLOCK_TOKENS + 1), sizeof(bool));
    for (int64_t head = mine.first_head; head < mine.end_head; head++) {
        int key_head = (int)head * v.w.key_heads / m->heads;
        v.kv = p->store->request[row->request].kv[p->layer] + (int64_t)key_head * v.w.key;
        find_held_blocks(p, seen, row, key_head, v.block_held);
        attend(&v, scale, query + ((int64_t)i * m->heads + head) * v.w.query,
               partial + ((int64_t)i * m->heads + head) * (v.w.output + 1));
    }
    free(v.block_held);
}

/* Outputs and LSE over the positions that this rank sees. KV stored by layer is first fetched,
 * whole, and afterwards dropped. */
static int attend_rows(const struct host_pass *p, const double *query, double *partial,
                       struct err *err)
{
    struct layout pair[2] = {p->layout, p->layout};
    struct store_cells cells = {0};
    struct share mine = share(p, SHARE_ATTEND);
    int result = 0;
    pair[1].kv_layer_shards = 1;
    stopwatch_enter(p->comm->watch, ON_ATTN);
    if (p->layout.kv_layer_shards > 1) {
        store_list_kv(p->store, p->layer, &cells);
        result = move_fetch(p->store, p->comm, &cells, pair, err);
    }
    for (int i = 0; result == 0 && i < p->rows.n; i++) {
        if (share_has_row(&mine, &p->rows, i))
            attend_row(p, &pair[1], i, query, partial);
    }
    move_retire(p->store, &cells, &p->layout);
    free(cells.cell);
    return result;
}

/* Bring all partial outputs of this rank's rows and heads together. */
static int combine(const struct host_pass *p, const double *partial, double *whole, struct err *err)
{
    const struct model *m = model_of(p);
    int width = widths_of(m).output + 1;
    struct exchange e = {p->store->slice, &p->layout, &p->rows, SHARE_ATTEND,
                         SHARE_OUT,       m->heads,   width,    exchange_combine};
    for (int64_t i = 0; i < (int64_t)p->rows.n * m->heads; i++) {
        memset(whole + i * width, 0, (size_t)width * sizeof *whole);
        whole[(i + 1) * width - 1] = -INFINITY;
    }
    return exchange_run(&e, partial, whole, p->comm, err);
}

/* y += O v of one head. */
static void add_out(const struct host_pass *p, int head, const double *output, double *y)
{
    const struct model *m = model_of(p);
    const double *o = weight(p, MAT_O) + (int64_t)head * m->v_dim;
    double *v = xcalloc((size_t)m->v_dim, sizeof *v);
    if (m->attention == ATTN_MLA)
        host_multiply(v, weight(p, MAT_V_B) + (int64_t)head * m->v_dim * m->kv_lora, output,
                      m->v_dim, m->kv_lora);
    else
        memcpy(v, output, (size_t)m->v_dim * sizeof *v);
    for (int64_t j = 0; j < m->hidden; j++)
        y[j] += host_dot(o + j * m->heads * m->v_dim, v, m->v_dim);
    free(v);
}

static void project_out(const struct host_pass *p, const double *whole, double *y)
{
    const struct model *m = model_of(p);
    struct share mine = share(p, SHARE_OUT);
    int width = widths_of(m).output + 1;
    for (int64_t i = 0; i < p->rows.n; i++) {
        bool here = share_has_row(&mine, &p->rows, (int)i);
        for (int j = 0; j < m->hidden; j++)
            y[i * m->hidden + j] = here ? 0 : NAN;
        for (int64_t head = mine.first_head; here && head < mine.end_head; head++)
            add_out(p, (int)head, whole + (i * m->heads + head) * width, y + i * m->hidden);
    }
}

int host_attention(const struct host_pass *p, const double *x, double *y, struct err *err)
{
    const struct model *m = model_of(p);
    struct widths w = widths_of(m);
    int result = -1;
    stopwatch_enter(p->comm->watch, ON_PROJ);
    double *query = make_queries(p, x);
    double *partial = rows_of(p, m->heads, w.output + 1);
    double *whole = rows_of(p, m->heads, w.output + 1);
    if (append_kv(p, x, err) < 0 ||
        hand_over(p, SHARE_PROJECT, SHARE_ATTEND, m->heads, w.query, &query, err) < 0 ||
        attend_rows(p, query, partial, err) < 0 || combine(p, partial, whole, err) < 0)
        goto out;
    stopwatch_enter(p->comm->watch, ON_PROJ);
    project_out(p, whole, y);
    result = 0;
out:
    stopwatch_enter(p->comm->watch, ON_OTHER);
    free(query);
    free(partial);
    free(whole);
    return result;
}
