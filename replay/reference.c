/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/reference.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/values.h"
#include "sim/base/mem.h"

struct context {
    int64_t req, tokens;
    size_t cap; /* tokens that kv has room for */
    double *kv; /* [tokens][layers][slice_kv_width] */
};

struct reference {
    struct slice slice;
    struct context *context;
    size_t n, cap;
};

/* The rows of a step on their way through one layer. */
struct pass {
    struct reference *r;
    int layer;
    const struct reference_row *row;
    int n;
};

/* Keys and values of a whole context as attention sees them. */
struct expanded {
    int heads;     /* MLA: every head its own; GQA: the KV heads */
    double *key;   /* [tokens][heads][nope + rope] */
    double *value; /* [tokens][heads][v] */
};

struct reference *reference_new(const struct slice *s)
{
    assert(s->layers > 0 && s->layers <= s->model.layers);
    assert(s->model.indexer.heads == 0 && s->model.linear.layers == 0);

    struct reference *r = xcalloc(1, sizeof(*r));
    r->slice = *s;
    return r;
}

void reference_free(struct reference *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->context[i].kv);
    free(r->context);
    free(r);
}

static struct context *find_context(const struct reference *r, int64_t req)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->context[i].req == req)
            return &r->context[i];
    return NULL;
}

void reference_forget(struct reference *r, int64_t req)
{
    struct context *c = find_context(r, req);
    if (c == NULL)
        return;
    free(c->kv);
    *c = r->context[--r->n];
}

static struct context *add_context(struct reference *r, int64_t req)
{
    r->context = xgrow(r->context, &r->cap, r->n + 1, sizeof(*r->context));
    r->context[r->n] = (struct context){.req = req};
    return &r->context[r->n++];
}

static double *kv_row(const struct reference *r, const struct context *c, int layer, int64_t token)
{
    return c->kv + (token * r->slice.layers + layer) * slice_kv_width(&r->slice);
}

/* Let the context end with this row; what is missing before it is history. */
static void extend_context(struct reference *r, const struct reference_row *row)
{
    const struct slice *s = &r->slice;
    int width = slice_kv_width(s);
    struct context *c = find_context(r, row->req);

    if (!c)
        c = add_context(r, row->req);
    c->kv = xgrow(c->kv, &c->cap, (size_t)row->position + 1,
                  (size_t)s->layers * (size_t)width * sizeof(*c->kv));
    for (int64_t t = c->tokens; t < row->position; t++)
        for (int layer = 0; layer < s->layers; layer++)
            for (int i = 0; i < width; i++)
                kv_row(r, c, layer, t)[i] = value_at(s->seed, VALUE_HISTORY, row->req, t, layer, i);
    c->tokens = row->position + 1;
}

const double *reference_kv(const struct reference *r, int64_t req, int layer, int64_t position)
{
    const struct context *c = find_context(r, req);
    assert(c && layer >= 0 && layer < r->slice.layers && position >= 0 && position < c->tokens);
    return kv_row(r, c, layer, position);
}

static double *new_rows(int64_t n, int width)
{
    return xcalloc((size_t)n, (size_t)width * sizeof(double));
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *y, double scale, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

static void norm_row(const double *x, int n, double *y)
{
    double rms = sqrt(dot(x, x, n) / n + 1e-6);
    for (int i = 0; i < n; i++)
        y[i] = x[i] / rms;
}

static void rotate(double *x, int n, int64_t position)
{
    for (int i = 0; i + 1 < n; i += 2) {
        double angle = (double)position * pow(10000, -(double)i / n);
        double a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

/* In place; returns the log of the sum of exponentials. */
static double softmax(double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
    return max + log(sum);
}

/* y[n][rows] = x[n][columns] times the transposed matrix. Weights are made row by row and used for
 * all n, so that real shapes need no memory. */
static void project(const struct pass *p, enum matrix m, int expert, int64_t n, const double *x,
                    double *y)
{
    const struct slice *s = &p->r->slice;
    int rows = slice_rows(s, p->layer, m), columns = slice_columns(s, p->layer, m);
    double *weight = new_rows(1, columns);

    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < columns; i++)
            weight[i] = slice_weight(s, p->layer, m, (int64_t)expert * rows + row, i);
        for (int64_t i = 0; i < n; i++)
            y[i * rows + row] = dot(weight, x + i * columns, columns);
    }
    free(weight);
}

/* The same into fresh rows, for matrices that exist once in a layer. */
static double *projected(const struct pass *p, enum matrix m, int64_t n, const double *x)
{
    double *y = new_rows(n, slice_rows(&p->r->slice, p->layer, m));
    project(p, m, 0, n, x, y);
    return y;
}

static double *make_queries(const struct pass *p, const double *x)
{
    const struct model *m = &p->r->slice.model;
    bool mla = m->attention == ATTN_MLA;
    int width = m->nope_dim + m->rope_dim, rotary = mla ? m->rope_dim : width;
    double *q_a = mla ? projected(p, MAT_Q_A, p->n, x) : NULL;
    double *q = projected(p, MAT_Q_B, p->n, mla ? q_a : x);

    for (int i = 0; i < p->n; i++)
        for (int head = 0; head < m->heads; head++)
            rotate(q + ((int64_t)i * m->heads + head) * width + width - rotary, rotary,
                   p->row[i].position);
    free(q_a);
    return q;
}

static double *stored_row(const struct pass *p, int i)
{
    return kv_row(p->r, find_context(p->r, p->row[i].req), p->layer, p->row[i].position);
}

static void store_mla(const struct pass *p, const double *x)
{
    const struct model *m = &p->r->slice.model;
    int width = m->kv_lora + m->rope_dim;
    double *kv = projected(p, MAT_KV_A, p->n, x);

    for (int i = 0; i < p->n; i++) {
        double *row = kv + (int64_t)i * width;
        rotate(row + m->kv_lora, m->rope_dim, p->row[i].position);
        memcpy(stored_row(p, i), row, (size_t)width * sizeof(*row));
    }
    free(kv);
}

static void store_gqa(const struct pass *p, const double *x)
{
    const struct model *m = &p->r->slice.model;
    int width = m->nope_dim;
    double *k = projected(p, MAT_K_B, p->n, x), *v = projected(p, MAT_V_B, p->n, x);

    for (int i = 0; i < p->n; i++)
        for (int head = 0; head < m->kv_heads; head++) {
            int64_t from = ((int64_t)i * m->kv_heads + head) * width;
            double *to = stored_row(p, i) + (int64_t)2 * head * width;
            rotate(k + from, width, p->row[i].position);
            memcpy(to, k + from, (size_t)width * sizeof(*to));
            memcpy(to + width, v + from, (size_t)width * sizeof(*to));
        }
    free(k);
    free(v);
}

/* k = (K_B c, rotary key), v = V_B c for every head, c the latent. */
static struct expanded expand_mla(const struct pass *p, const struct context *c)
{
    const struct model *m = &p->r->slice.model;
    int nope = m->nope_dim, rope = m->rope_dim;
    double *latent = new_rows(c->tokens, m->kv_lora);
    for (int64_t t = 0; t < c->tokens; t++)
        memcpy(latent + t * m->kv_lora, kv_row(p->r, c, p->layer, t),
               (size_t)m->kv_lora * sizeof(*latent));

    double *k = projected(p, MAT_K_B, c->tokens, latent);
    struct expanded e = {m->heads, new_rows(c->tokens, m->heads * (nope + rope)),
                         projected(p, MAT_V_B, c->tokens, latent)};
    for (int64_t t = 0; t < c->tokens; t++)
        for (int head = 0; head < m->heads; head++) {
            double *to = e.key + (t * m->heads + head) * (nope + rope);
            memcpy(to, k + (t * m->heads + head) * nope, (size_t)nope * sizeof(*to));
            memcpy(to + nope, kv_row(p->r, c, p->layer, t) + m->kv_lora,
                   (size_t)rope * sizeof(*to));
        }
    free(latent);
    free(k);
    return e;
}

static struct expanded expand_gqa(const struct pass *p, const struct context *c)
{
    const struct model *m = &p->r->slice.model;
    int width = m->nope_dim;
    struct expanded e = {m->kv_heads, new_rows(c->tokens, m->kv_heads * width),
                         new_rows(c->tokens, m->kv_heads * width)};

    for (int64_t t = 0; t < c->tokens; t++)
        for (int head = 0; head < m->kv_heads; head++) {
            const double *from = kv_row(p->r, c, p->layer, t) + (int64_t)2 * head * width;
            int64_t to = (t * m->kv_heads + head) * width;
            memcpy(e.key + to, from, (size_t)width * sizeof(*from));
            memcpy(e.value + to, from + width, (size_t)width * sizeof(*from));
        }
    return e;
}

/* One row, all heads, over the first `tokens` of the context. */
static void attend_row(const struct model *m, const struct expanded *e, int64_t tokens,
                       const double *q, double *o, double *lse)
{
    int width = m->nope_dim + m->rope_dim;
    double *score = new_rows(tokens, 1);

    for (int64_t head = 0; head < m->heads; head++) {
        int64_t shared = head / (m->heads / e->heads);
        for (int64_t t = 0; t < tokens; t++)
            score[t] = dot(q + head * width, e->key + (t * e->heads + shared) * width, width) /
                       sqrt(width);
        double sum = softmax(score, tokens);
        if (lse)
            lse[head] = sum;
        for (int64_t t = 0; t < tokens; t++)
            add_scaled(o + head * m->v_dim, score[t], e->value + (t * e->heads + shared) * m->v_dim,
                       m->v_dim);
    }
    free(score);
}

static double *attend(const struct pass *p, const double *q, double *lse)
{
    const struct model *m = &p->r->slice.model;
    int q_width = m->heads * (m->nope_dim + m->rope_dim), o_width = m->heads * m->v_dim;
    double *o = new_rows(p->n, o_width);
    struct expanded e = {0};

    for (int64_t i = 0; i < p->n; i++) {
        if (i == 0 || p->row[i].req != p->row[i - 1].req) {
            const struct context *c = find_context(p->r, p->row[i].req);
            free(e.key);
            free(e.value);
            e = m->attention == ATTN_MLA ? expand_mla(p, c) : expand_gqa(p, c);
        }
        attend_row(m, &e, p->row[i].position + 1, q + i * q_width, o + i * o_width,
                   lse ? lse + i * m->heads : NULL);
    }
    free(e.key);
    free(e.value);
    return o;
}

static double *run_attention(const struct pass *p, const double *x, double *lse)
{
    double *q = make_queries(p, x);
    if (p->r->slice.model.attention == ATTN_MLA)
        store_mla(p, x);
    else
        store_gqa(p, x);
    double *o = attend(p, q, lse);
    double *y = projected(p, MAT_O, p->n, o);

    free(q);
    free(o);
    return y;
}

/* down(silu(gate x) * up x); the three matrices follow each other in enum matrix. */
static double *run_ffn(const struct pass *p, enum matrix gate, int expert, int64_t n,
                       const double *x)
{
    const struct slice *s = &p->r->slice;
    int inter = slice_rows(s, p->layer, gate);
    double *g = new_rows(n, inter), *u = new_rows(n, inter), *y = new_rows(n, s->model.hidden);

    project(p, gate, expert, n, x, g);
    project(p, gate + 1, expert, n, x, u);
    for (int64_t i = 0; i < n * inter; i++)
        g[i] = g[i] / (1 + exp(-g[i])) * u[i];
    project(p, gate + 2, expert, n, g, y);
    free(g);
    free(u);
    return y;
}

/* Turn the router's logits of one row into the experts' weights: zero for all but the top k. */
static void choose_experts(double *logit, int experts, int topk)
{
    double *best = new_rows(topk, 1);
    int *chosen = xcalloc((size_t)topk, sizeof(*chosen));

    for (int k = 0; k < topk; k++) {
        for (int e = 1; e < experts; e++)
            if (logit[e] > logit[chosen[k]])
                chosen[k] = e;
        best[k] = logit[chosen[k]];
        logit[chosen[k]] = -INFINITY;
    }
    softmax(best, topk);
    memset(logit, 0, (size_t)experts * sizeof(*logit));
    for (int k = 0; k < topk; k++)
        logit[chosen[k]] = best[k];
    free(best);
    free(chosen);
}

/* Add one expert's part to the rows that chose it. */
static void run_expert(const struct pass *p, int expert, const double *weight, const double *x,
                       double *y)
{
    int hidden = p->r->slice.model.hidden, experts = p->r->slice.model.moe.experts;
    double *in = new_rows(p->n, hidden);
    int64_t n = 0;

    for (int64_t i = 0; i < p->n; i++)
        if (weight[i * experts + expert] > 0)
            memcpy(in + n++ * hidden, x + i * hidden, (size_t)hidden * sizeof(*x));
    if (n > 0) {
        double *out = run_ffn(p, MAT_GATE, expert, n, in), *next = out;
        for (int64_t i = 0; i < p->n; i++)
            if (weight[i * experts + expert] > 0) {
                add_scaled(y + i * hidden, weight[i * experts + expert], next, hidden);
                next += hidden;
            }
        free(out);
    }
    free(in);
}

static double *run_moe(const struct pass *p, const double *x)
{
    const struct model *m = &p->r->slice.model;
    double *weight = projected(p, MAT_ROUTER, p->n, x);
    double *y = m->moe.shared ? run_ffn(p, MAT_SHARED_GATE, 0, p->n, x) : new_rows(p->n, m->hidden);

    for (int64_t i = 0; i < p->n; i++)
        choose_experts(weight + i * m->moe.experts, m->moe.experts, m->moe.topk);
    for (int e = 0; e < m->moe.experts; e++)
        run_expert(p, e, weight, x, y);
    free(weight);
    return y;
}

static double *norm_rows(const struct pass *p, const double *x)
{
    int hidden = p->r->slice.model.hidden;
    double *y = new_rows(p->n, hidden);
    for (int64_t i = 0; i < p->n; i++)
        norm_row(x + i * hidden, hidden, y + i * hidden);
    return y;
}

static void run_layer(const struct pass *p, double *x, double *lse)
{
    const struct slice *s = &p->r->slice;
    int64_t size = (int64_t)p->n * s->model.hidden;

    double *normed = norm_rows(p, x);
    double *y = run_attention(p, normed, lse);
    add_scaled(x, 1, y, size);
    free(normed);
    free(y);

    normed = norm_rows(p, x);
    y = slice_is_moe(s, p->layer) ? run_moe(p, normed) : run_ffn(p, MAT_GATE, 0, p->n, normed);
    add_scaled(x, 1, y, size);
    free(normed);
    free(y);
}

void reference_step(struct reference *r, const struct reference_row *row, int n, double *out,
                    double *lse)
{
    const struct slice *s = &r->slice;
    int hidden = s->model.hidden;

    for (int i = 0; i < n; i++) {
        assert(i == 0 || row[i].req != row[i - 1].req ||
               row[i].position == row[i - 1].position + 1);
        extend_context(r, &row[i]);
        for (int j = 0; j < hidden; j++)
            out[(int64_t)i * hidden + j] =
                value_at(s->seed, VALUE_HIDDEN, row[i].req, row[i].position, 0, j);
    }
    for (int layer = 0; layer < s->layers; layer++) {
        struct pass p = {r, layer, row, n};
        run_layer(&p, out, lse); /* the last layer's LSE stays */
    }
}
