/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "replay/cuda/oracle_pass.h"

/* Attention as the KV is stored: MLA's latent is the key (with its rotary part) and the value of
 * all heads, so queries go through K_B before it and its result through V_B after. */
struct stored_heads {
    const double *query; /* [n][heads][key] */
    double *out;         /* [n][heads][value] */
    int key, value;      /* numbers of one stored head: its key, its value, */
    int value_at;        /* and where that starts */
    int n, distance;     /* stored heads of a row */
};

static struct stored_heads stored_heads(const struct oracle *o)
{
    const struct model *m = &o->slice->model;
    if (m->attention == ATTN_MLA)
        return (struct stored_heads){.query = o->at.query,
                                     .out = o->at.latent,
                                     .key = m->kv_lora + m->rope_dim,
                                     .value = m->kv_lora,
                                     .n = 1};
    return (struct stored_heads){.query = o->at.q,
                                 .out = o->at.o,
                                 .key = m->nope_dim,
                                 .value = m->v_dim,
                                 .value_at = m->nope_dim,
                                 .n = m->kv_heads,
                                 .distance = 2 * m->nope_dim};
}

/* Runs of numbers so far apart. */
struct runs {
    double *first;
    int64_t distance;
};

static void copy_runs(const struct oracle_pass *p, struct runs to, struct runs from, int64_t runs,
                      int width)
{
    enum { NUMBER = sizeof(double) };
    oracle_try(p->err,
               cudaMemcpy2D(to.first, (size_t)to.distance * NUMBER, from.first,
                            (size_t)from.distance * NUMBER, (size_t)width * NUMBER, (size_t)runs,
                            cudaMemcpyDeviceToDevice),
               "copy parts of rows");
}

static void make_queries(const struct oracle_pass *p)
{
    const struct model *m = &p->o->slice->model;
    const struct oracle_buffers *at = &p->o->at;
    bool mla = m->attention == ATTN_MLA;
    int width = m->nope_dim + m->rope_dim, rotary = mla ? m->rope_dim : width;

    if (mla)
        oracle_project(p, MAT_Q_A, 0, p->n, at->normed, at->q_a);
    oracle_project(p, MAT_Q_B, 0, p->n, mla ? at->q_a : at->normed, at->q);
    for (int64_t i = 0; i < p->n; i++)
        oracle_try(p->err,
                   exact_rotate(at->q + i * m->heads * width + width - rotary, m->heads, width,
                                rotary, p->row[i].position),
                   "rotate queries");
}

/* query = (K_B' q, rotary part): scores against the latent are then those against K_B latent. */
static void absorb_queries(const struct oracle_pass *p)
{
    const struct model *m = &p->o->slice->model;
    const struct oracle_buffers *at = &p->o->at;
    const struct exact_values k_b = oracle_weights(p, MAT_K_B);
    int64_t width = m->nope_dim + m->rope_dim, absorbed = m->kv_lora + m->rope_dim;
    const struct exact_product absorb = {.x = at->q,
                                         .x_batch = width,
                                         .x_row = m->heads * width,
                                         .y = at->query,
                                         .y_batch = absorbed,
                                         .y_row = m->heads * absorbed,
                                         .batches = m->heads,
                                         .m = p->n,
                                         .n = m->kv_lora,
                                         .k = m->nope_dim,
                                         .w_batch_row = m->nope_dim,
                                         .transposed = true,
                                         .workspace = at->workspace};
    oracle_try(p->err, exact_product_values(&absorb, &k_b), "absorb queries");
    copy_runs(p, (struct runs){at->query + m->kv_lora, absorbed},
              (struct runs){at->q + m->nope_dim, width}, (int64_t)p->n * m->heads, m->rope_dim);
}

/* V_B of every head. */
static void expand_values(const struct oracle_pass *p)
{
    const struct model *m = &p->o->slice->model;
    const struct exact_values v_b = oracle_weights(p, MAT_V_B);
    const struct exact_product expand = {.x = p->o->at.latent,
                                         .x_batch = m->kv_lora,
                                         .x_row = (int64_t)m->heads * m->kv_lora,
                                         .y = p->o->at.o,
                                         .y_batch = m->v_dim,
                                         .y_row = (int64_t)m->heads * m->v_dim,
                                         .batches = m->heads,
                                         .m = p->n,
                                         .n = m->v_dim,
                                         .k = m->kv_lora,
                                         .w_batch_row = m->v_dim,
                                         .workspace = p->o->at.workspace};
    oracle_try(p->err, exact_product_values(&expand, &v_b), "expand values");
}

static double *stored_row(const struct oracle_pass *p, int i)
{
    return oracle_kv(p->o, oracle_context_of(p, i), p->layer, p->row[i].position);
}

static void store_mla(const struct oracle_pass *p)
{
    const struct model *m = &p->o->slice->model;
    int width = m->kv_lora + m->rope_dim;
    double *kv = p->o->at.kv;

    oracle_project(p, MAT_KV_A, 0, p->n, p->o->at.normed, kv);
    for (int i = 0; i < p->n; i++, kv += width) {
        oracle_try(p->err, exact_rotate(kv + m->kv_lora, 1, 0, m->rope_dim, p->row[i].position),
                   "rotate keys");
        oracle_copy(p->err, stored_row(p, i), kv, width);
    }
}

static void store_gqa(const struct oracle_pass *p)
{
    const struct model *m = &p->o->slice->model;
    int width = m->nope_dim;
    int64_t row = (int64_t)m->kv_heads * width, stored = INT64_C(2) * width;
    double *k = p->o->at.kv, *v = k + p->n * row;

    oracle_project(p, MAT_K_B, 0, p->n, p->o->at.normed, k);
    oracle_project(p, MAT_V_B, 0, p->n, p->o->at.normed, v);
    for (int i = 0; i < p->n; i++, k += row, v += row) {
        double *to = stored_row(p, i);
        oracle_try(p->err, exact_rotate(k, m->kv_heads, width, width, p->row[i].position),
                   "rotate keys");
        copy_runs(p, (struct runs){to, stored}, (struct runs){k, width}, m->kv_heads, width);
        copy_runs(p, (struct runs){to + width, stored}, (struct runs){v, width}, m->kv_heads,
                  width);
    }
}

/* A layer's stored rows of a context, from a column on. */
static struct exact_stored stored_rows(const struct oracle_pass *p, const struct oracle_context *c,
                                       int column)
{
    struct exact_stored s = {.row = slice_kv_width(p->o->slice)};
    for (int64_t i = 0; i < c->chunks; i++)
        s.chunk[i] = oracle_kv(p->o, c, p->layer, i * EXACT_CHUNK_ROWS) + column;
    return s;
}

/* One row, all heads. The scores of query heads that share a stored head are one product. */
static void attend_row(const struct oracle_pass *p, const struct stored_heads *h, int64_t i)
{
    const struct model *m = &p->o->slice->model;
    const struct oracle_context *c = oracle_context_of(p, (int)i);
    const struct exact_stored key = stored_rows(p, c, 0), value = stored_rows(p, c, h->value_at);
    int64_t tokens = p->row[i].position + 1, sharing = m->heads / h->n;
    double *score = p->o->score;
    const struct exact_product scores = {.x = h->query + i * m->heads * h->key,
                                         .x_batch = sharing * h->key,
                                         .x_row = h->key,
                                         .y = score,
                                         .y_batch = sharing * tokens,
                                         .y_row = tokens,
                                         .batches = h->n,
                                         .m = sharing,
                                         .n = tokens,
                                         .k = h->key,
                                         .w_batch_column = h->distance,
                                         .workspace = p->o->at.workspace};
    const struct exact_product values = {.x = score,
                                         .x_batch = sharing * tokens,
                                         .x_row = tokens,
                                         .y = h->out + i * m->heads * h->value,
                                         .y_batch = sharing * h->value,
                                         .y_row = h->value,
                                         .batches = h->n,
                                         .m = sharing,
                                         .n = h->value,
                                         .k = tokens,
                                         .w_batch_column = h->distance,
                                         .transposed = true,
                                         .workspace = p->o->at.workspace};

    oracle_try(p->err, exact_product_stored(&scores, &key), "scores");
    oracle_try(p->err,
               exact_softmax(score, p->o->at.lse + i * m->heads, sqrt(m->nope_dim + m->rope_dim),
                             m->heads, tokens),
               "softmax");
    oracle_try(p->err, exact_product_stored(&values, &value), "values");
}

void oracle_attention(const struct oracle_pass *p)
{
    const struct oracle_buffers *at = &p->o->at;
    const struct stored_heads heads = stored_heads(p->o);
    bool mla = p->o->slice->model.attention == ATTN_MLA;

    make_queries(p);
    if (mla) {
        absorb_queries(p);
        store_mla(p);
    } else {
        store_gqa(p);
    }
    for (int64_t i = 0; i < p->n; i++)
        attend_row(p, &heads, i);
    if (mla)
        expand_values(p);
    oracle_project(p, MAT_O, 0, p->n, at->o, at->added);
}
