/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/store.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/values.h"
#include "sim/base/mem.h"
#include "sim/layout/blocks.h"

bool store_is_by_head(enum matrix m)
{
    return m == MAT_Q_B || m == MAT_K_B || m == MAT_V_B || m == MAT_O;
}

struct store_heads store_heads_of(const struct model *m, enum matrix which)
{
    bool mla = m->attention == ATTN_MLA;
    enum store_part kv_part = mla ? STORE_IN : STORE_KV_IN;
    int kv_heads = mla ? m->heads : m->kv_heads;
    switch (which) {
    case MAT_Q_B: return (struct store_heads){STORE_IN, m->heads, m->nope_dim + m->rope_dim};
    case MAT_K_B: return (struct store_heads){kv_part, kv_heads, m->nope_dim};
    case MAT_V_B: return (struct store_heads){kv_part, kv_heads, m->v_dim};
    default: return (struct store_heads){STORE_OUT, m->heads, m->v_dim};
    }
}

static double *new_poison(size_t n)
{
    double *x = xcalloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

double *store_weight(const struct store *s, int layer, enum matrix m)
{
    return s->weight[layer * MAT_COUNT + (int)m];
}

struct layout store_layer_layout(const struct slice *s, const struct layout *l, int layer)
{
    return layer + 0.5 < l->full_weights_frac * s->layers ? layout_of_cached(l) : *l;
}

struct store_span store_span_of(int n, int rank, int ranks)
{
    return (struct store_span){(int)((int64_t)n * rank / ranks),
                               (int)((int64_t)n * (rank + 1) / ranks)};
}

static struct store_cell cell_of_head(const struct store *s, int layer, enum matrix m, int head)
{
    struct store_heads h = store_heads_of(&s->slice->model, m);
    int rows = slice_rows(s->slice, layer, m), columns = slice_columns(s->slice, layer, m);
    bool by_column = h.part == STORE_OUT;
    return (struct store_cell){
        .part = h.part,
        .layer = layer,
        .head = head,
        .at = store_weight(s, layer, m) + (int64_t)head * h.width * (by_column ? 1 : columns),
        .rows = by_column ? rows : h.width,
        .columns = by_column ? h.width : columns,
        .stride = columns,
    };
}

static void fill_cell(const struct store *s, const struct store_cell *c, enum matrix m)
{
    int64_t first = c->at - store_weight(s, c->layer, m);
    for (int i = 0; i < c->rows; i++) {
        for (int j = 0; j < c->columns; j++) {
            int64_t at = first + (int64_t)i * c->stride + j;
            c->at[(int64_t)i * c->stride + j] =
                slice_weight(s->slice, c->layer, m, at / c->stride, (int)(at % c->stride));
        }
    }
}

static double *load_by_head(struct store *s, const struct layout *l, int layer, enum matrix m)
{
    int columns = slice_columns(s->slice, layer, m);
    double *w = new_poison((size_t)slice_rows(s->slice, layer, m) * (size_t)columns);
    s->weight[layer * MAT_COUNT + (int)m] = w;
    for (int head = 0; head < store_heads_of(&s->slice->model, m).n; head++) {
        struct store_cell c = cell_of_head(s, layer, m, head);
        if (store_holds(s->slice, &c, l, s->rank))
            fill_cell(s, &c, m);
    }
    return w;
}

/* Rows [rows.first, rows.end) and those columns of a matrix, packed. */
static double *load_packed(const struct slice *s, int layer, enum matrix m, struct store_span rows,
                           struct store_span columns)
{
    int width = columns.end - columns.first;
    double *w = xcalloc((size_t)(rows.end - rows.first) * (size_t)width, sizeof *w);
    for (int i = rows.first; i < rows.end; i++) {
        for (int j = columns.first; j < columns.end; j++)
            w[(int64_t)(i - rows.first) * width + j - columns.first] =
                slice_weight(s, layer, m, i, j);
    }
    return w;
}

/* FFN matrices never move: a rank has its share of experts, or of the rows between gate and down.
 */
static double *load_ffn(const struct store *s, int layer, enum matrix m)
{
    int rows = slice_rows(s->slice, layer, m), columns = slice_columns(s->slice, layer, m);
    struct store_span all_rows = {0, rows}, all_columns = {0, columns};
    bool routed = slice_is_moe(s->slice, layer) && m <= MAT_DOWN;
    if (routed) {
        struct store_span e = store_span_of(s->slice->model.moe.experts, s->rank, s->ranks);
        struct store_span of_experts = {e.first * rows, e.end * rows};
        return load_packed(s->slice, layer, m, of_experts, all_columns);
    }
    if (m == MAT_DOWN || m == MAT_SHARED_DOWN)
        return load_packed(s->slice, layer, m, all_rows, store_span_of(columns, s->rank, s->ranks));
    return load_packed(s->slice, layer, m, store_span_of(rows, s->rank, s->ranks), all_columns);
}

static double *load(struct store *s, const struct layout *l, int layer, enum matrix m)
{
    int rows = slice_rows(s->slice, layer, m), columns = slice_columns(s->slice, layer, m);
    if (rows == 0)
        return NULL;
    if (store_is_by_head(m))
        return load_by_head(s, l, layer, m);
    if (m == MAT_Q_A || m == MAT_KV_A || m == MAT_ROUTER)
        return load_packed(s->slice, layer, m, (struct store_span){0, rows},
                           (struct store_span){0, columns});
    return load_ffn(s, layer, m);
}

void store_init(struct store *s, const struct slice *slice, const struct layout *l, int rank)
{
    *s = (struct store){.slice = slice, .rank = rank, .ranks = l->ranks};
    s->weight = xcalloc((size_t)slice->layers * MAT_COUNT, sizeof *s->weight);
    for (int layer = 0; layer < slice->layers; layer++) {
        struct layout here = store_layer_layout(slice, l, layer);
        for (int m = 0; m < MAT_COUNT; m++)
            s->weight[layer * MAT_COUNT + m] = load(s, &here, layer, (enum matrix)m);
    }
}

static void release_request(const struct store *s, struct store_request *q)
{
    for (int layer = 0; layer < s->slice->layers; layer++)
        free(q->kv[layer]);
    free(q->kv);
}

void store_release(struct store *s)
{
    for (int i = 0; s->weight != NULL && i < s->slice->layers * MAT_COUNT; i++)
        free(s->weight[i]);
    for (size_t i = 0; i < s->n_requests; i++)
        release_request(s, &s->request[i]);
    free(s->weight);
    free(s->request);
    *s = (struct store){0};
}

static bool has(const struct axis_set *set, int64_t class)
{
    return set->bits[class / 64] >> (class % 64) & 1;
}

static bool has_share(const struct axis_set *set, int i, int n, int classes)
{
    return has(set, (int64_t)i * classes / n);
}

bool store_holds(const struct slice *s, const struct store_cell *c, const struct layout *l,
                 int rank)
{
    const struct model *m = &s->model;
    bool is_kv = c->part == STORE_KV;
    struct block_grid g = is_kv ? block_grid_for_kv(l, 1) : block_grid_for_weights(l, 1);
    struct blocks b = {0};
    switch (c->part) {
    case STORE_IN: b = blocks_of_in_weights(l, &g, rank); break;
    case STORE_KV_IN: b = blocks_of_kv_weights(l, &g, rank); break;
    case STORE_OUT: b = blocks_of_out_weights(l, &g, rank); break;
    case STORE_KV: b = blocks_of_kv(l, &g, rank, c->owner); break;
    }
    int heads = c->part == STORE_KV_IN || is_kv ? m->kv_heads : m->heads;
    return has_share(&b.axis[AXIS_HEAD], c->head, heads, g.classes[AXIS_HEAD]) &&
           has(&b.axis[AXIS_POSITION], c->block % g.classes[AXIS_POSITION]) &&
           has_share(&b.axis[AXIS_LAYER], c->layer, s->layers, g.classes[AXIS_LAYER]);
}

int store_find(const struct store *s, int64_t req)
{
    for (size_t i = 0; i < s->n_requests; i++) {
        if (s->request[i].req == req)
            return (int)i;
    }
    return -1;
}

void store_extend(struct store *s, int index, int64_t tokens)
{
    struct store_request *q = &s->request[index];
    size_t width = (size_t)slice_kv_width(s->slice), had = q->cap_tokens;
    assert(tokens >= q->tokens);
    q->tokens = tokens;
    if ((size_t)tokens <= had)
        return;
    q->cap_tokens = 2 * (size_t)tokens;
    for (int layer = 0; layer < s->slice->layers; layer++) {
        double *kv = new_poison(q->cap_tokens * width);
        if (had > 0)
            memcpy(kv, q->kv[layer], had * width * sizeof *kv);
        free(q->kv[layer]);
        q->kv[layer] = kv;
    }
}

static struct store_cell cell_of_kv(const struct store *s, const struct store_request *q, int layer,
                                    int64_t block, int head)
{
    int width = slice_kv_width(s->slice), per_head = width / s->slice->model.kv_heads;
    int64_t left = q->tokens - block * STORE_BLOCK_TOKENS;
    return (struct store_cell){
        .part = STORE_KV,
        .layer = layer,
        .head = head,
        .block = block,
        .owner = q->owner,
        .at = q->kv[layer] + block * STORE_BLOCK_TOKENS * width + (int64_t)head * per_head,
        .rows = left < STORE_BLOCK_TOKENS ? (int)left : STORE_BLOCK_TOKENS,
        .columns = per_head,
        .stride = width,
    };
}

static void add_cell(struct store_cells *cells, struct store_cell c)
{
    cells->cell = xgrow(cells->cell, &cells->cap, cells->n + 1, sizeof *cells->cell);
    cells->cell[cells->n++] = c;
}

static void list_request(const struct store *s, const struct store_request *q, int layer,
                         struct store_cells *cells)
{
    for (int64_t block = 0; block * STORE_BLOCK_TOKENS < q->tokens; block++) {
        for (int head = 0; head < s->slice->model.kv_heads; head++)
            add_cell(cells, cell_of_kv(s, q, layer, block, head));
    }
}

static void fill_history(const struct store *s, const struct store_request *q,
                         const struct store_cell *c)
{
    for (int i = 0; i < c->rows; i++) {
        for (int j = 0; j < c->columns; j++)
            c->at[(int64_t)i * c->stride + j] =
                value_at(s->slice->seed, VALUE_HISTORY, q->req, c->block * STORE_BLOCK_TOKENS + i,
                         c->layer, c->head * c->columns + j);
    }
}

int store_add(struct store *s, const struct layout *l, int64_t req, int owner,
              int64_t history_tokens)
{
    int index = (int)s->n_requests++;
    s->request = xgrow(s->request, &s->cap_requests, s->n_requests, sizeof *s->request);
    s->request[index] = (struct store_request){.req = req, .owner = owner};
    s->request[index].kv = xcalloc((size_t)s->slice->layers, sizeof(double *));
    store_extend(s, index, history_tokens);

    struct store_cells cells = {0};
    for (int layer = 0; layer < s->slice->layers; layer++)
        list_request(s, &s->request[index], layer, &cells);
    for (size_t k = 0; k < cells.n; k++) {
        if (store_holds(s->slice, &cells.cell[k], l, s->rank))
            fill_history(s, &s->request[index], &cells.cell[k]);
    }
    free(cells.cell);
    return index;
}

void store_remove(struct store *s, int index)
{
    release_request(s, &s->request[index]);
    s->n_requests--;
    memmove(&s->request[index], &s->request[index + 1],
            (s->n_requests - (size_t)index) * sizeof *s->request);
}

void store_put(struct store *s, const struct layout *l, int index, int layer, int64_t position,
               const double *kv_row)
{
    for (int head = 0; head < s->slice->model.kv_heads; head++) {
        struct store_cell c =
            cell_of_kv(s, &s->request[index], layer, position / STORE_BLOCK_TOKENS, head);
        if (store_holds(s->slice, &c, l, s->rank))
            memcpy(c.at + position % STORE_BLOCK_TOKENS * c.stride,
                   kv_row + (int64_t)head * c.columns, (size_t)c.columns * sizeof *kv_row);
    }
}

void store_list_weights(const struct store *s, int layer, struct store_cells *cells)
{
    for (int m = 0; m < MAT_COUNT; m++) {
        if (!store_is_by_head((enum matrix)m))
            continue;
        for (int head = 0; head < store_heads_of(&s->slice->model, (enum matrix)m).n; head++)
            add_cell(cells, cell_of_head(s, layer, (enum matrix)m, head));
    }
}

void store_list_kv(const struct store *s, int layer, struct store_cells *cells)
{
    for (size_t i = 0; i < s->n_requests; i++)
        list_request(s, &s->request[i], layer, cells);
}
