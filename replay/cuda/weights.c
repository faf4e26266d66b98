/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/values.h"
#include "replay/store.h"
#include "replay/values.h"
#include "sim/base/mem.h"

void weights_init(struct weights *w, const struct slice *s, int rank, int ranks)
{
    *w = (struct weights){.slice = s, .rank = rank, .ranks = ranks};
    w->layer = xcalloc((size_t)s->layers, sizeof *w->layer);
}

void weights_release(struct weights *w)
{
    free(w->layer);
    *w = (struct weights){0};
}

static bool is_routed(const struct weights *w, int layer, enum matrix m)
{
    return slice_is_moe(w->slice, layer) && (m == MAT_GATE || m == MAT_DOWN);
}

int weights_inter(const struct weights *w, int layer, enum matrix gate)
{
    int inter = slice_rows(w->slice, layer, gate);
    if (is_routed(w, layer, gate))
        return inter;
    struct store_span mine = store_span_of(inter, w->rank, w->ranks);
    return mine.end - mine.first;
}

/* The most that any rank has, so that places are the same everywhere. */
static int64_t inter_max(const struct weights *w, int layer, enum matrix gate)
{
    int inter = slice_rows(w->slice, layer, gate);
    return is_routed(w, layer, gate) ? inter : (inter + w->ranks - 1) / w->ranks;
}

static int64_t numbers(const struct weights *w, int layer, enum matrix m)
{
    int64_t rows = slice_rows(w->slice, layer, m), columns = slice_columns(w->slice, layer, m);
    int64_t copies = 1;
    if (rows == 0 || m == MAT_UP || m == MAT_SHARED_UP)
        return 0;
    if (is_routed(w, layer, m))
        copies = (w->slice->model.moe.experts + w->ranks - 1) / w->ranks;
    if (m == MAT_GATE || m == MAT_SHARED_GATE)
        return copies * 2 * inter_max(w, layer, m) * columns;
    if (m == MAT_DOWN || m == MAT_SHARED_DOWN)
        return copies * rows * inter_max(w, layer, m == MAT_DOWN ? MAT_GATE : MAT_SHARED_GATE);
    return rows * columns;
}

void weights_place(struct weights *w, struct gpu_arena *a)
{
    for (int layer = 0; layer < w->slice->layers; layer++)
        for (int m = 0; m < MAT_COUNT; m++) {
            int64_t n = numbers(w, layer, (enum matrix)m);
            w->layer[layer].at[m] = n > 0 ? gpu_take(a, (size_t)n * sizeof(uint16_t)) : NULL;
        }
}

int64_t weights_head_bytes(const struct weights *w, int layer, enum matrix m)
{
    return numbers(w, layer, m) / store_heads_of(&w->slice->model, m).n * (int64_t)sizeof(uint16_t);
}

/* Rows [first_row, ...) and columns [first_column, ...) of a matrix to a place with such distances.
 */
struct patch {
    uint16_t *to;
    int64_t first_row, rows, first_column, columns, to_row, to_column;
};

static int fill(const struct weights *w, int layer, enum matrix m, const struct patch *p,
                struct err *err)
{
    struct values_matrix v = {
        .key = {w->slice->seed, VALUE_WEIGHT, sqrt(slice_columns(w->slice, layer, m))},
        .to = p->to,
        .a = m,
        .first_b = p->first_row,
        .c = layer,
        .first_d = p->first_column,
        .rows = p->rows,
        .columns = p->columns,
        .to_row = p->to_row,
        .to_column = p->to_column,
    };
    return gpu_try(values_fill_matrix(&v, 0), "making weights", err);
}

static bool holds(const struct weights *w, int layer, enum matrix m, int head,
                  const struct layout *l)
{
    struct store_cell c = {
        .part = store_heads_of(&w->slice->model, m).part, .layer = layer, .head = head};
    return store_holds(w->slice, &c, l, w->rank);
}

static int fill_by_head(const struct weights *w, int layer, enum matrix m, const struct layout *l,
                        struct err *err)
{
    struct store_heads h = store_heads_of(&w->slice->model, m);
    int64_t rows = slice_rows(w->slice, layer, m), columns = slice_columns(w->slice, layer, m);
    for (int64_t head = 0; head < h.n; head++) {
        struct patch p = {w->layer[layer].at[m] + head * h.width * columns,
                          head * h.width,
                          h.width,
                          0,
                          columns,
                          columns,
                          1};
        if (m == MAT_O) /* turned, so that a head is one piece */
            p = (struct patch){w->layer[layer].at[m] + head * h.width * rows,
                               0,
                               rows,
                               head * h.width,
                               h.width,
                               1,
                               rows};
        if (holds(w, layer, m, (int)head, l) && fill(w, layer, m, &p, err) < 0)
            return -1;
    }
    return 0;
}

/* One pair of gate and up, one below the other, from these rows of the matrices on. */
static int fill_gate_up(const struct weights *w, int layer, enum matrix gate, int64_t first_row,
                        int64_t inter, uint16_t *to, struct err *err)
{
    int64_t columns = slice_columns(w->slice, layer, gate);
    struct patch p = {to, first_row, inter, 0, columns, columns, 1};
    if (fill(w, layer, gate, &p, err) < 0)
        return -1;
    p.to += inter * columns;
    return fill(w, layer, gate + 1, &p, err);
}

/* A dense FFN, or the shared expert: this rank's rows between gate and down. */
static int fill_dense(const struct weights *w, int layer, enum matrix gate, struct err *err)
{
    int64_t hidden = w->slice->model.hidden;
    struct store_span mine = store_span_of(slice_rows(w->slice, layer, gate), w->rank, w->ranks);
    int64_t inter = mine.end - mine.first;
    struct patch down = {w->layer[layer].at[gate + 2], 0, hidden, mine.first, inter, inter, 1};
    if (fill_gate_up(w, layer, gate, mine.first, inter, w->layer[layer].at[gate], err) < 0)
        return -1;
    return fill(w, layer, gate + 2, &down, err);
}

static int fill_experts(const struct weights *w, int layer, struct err *err)
{
    int64_t hidden = w->slice->model.hidden, inter = slice_rows(w->slice, layer, MAT_GATE);
    struct store_span mine = store_span_of(w->slice->model.moe.experts, w->rank, w->ranks);
    for (int e = mine.first; e < mine.end; e++) {
        int64_t here = e - mine.first;
        struct patch down = {w->layer[layer].at[MAT_DOWN] + here * hidden * inter,
                             e * hidden,
                             hidden,
                             0,
                             inter,
                             inter,
                             1};
        uint16_t *gate = w->layer[layer].at[MAT_GATE] + here * 2 * inter * hidden;
        if (fill_gate_up(w, layer, MAT_GATE, e * inter, inter, gate, err) < 0 ||
            fill(w, layer, MAT_DOWN, &down, err) < 0)
            return -1;
    }
    return 0;
}

static int fill_whole(const struct weights *w, int layer, enum matrix m, struct err *err)
{
    int64_t rows = slice_rows(w->slice, layer, m), columns = slice_columns(w->slice, layer, m);
    struct patch p = {w->layer[layer].at[m], 0, rows, 0, columns, columns, 1};
    return rows == 0 ? 0 : fill(w, layer, m, &p, err);
}

static int fill_ffn(const struct weights *w, int layer, struct err *err)
{
    if (!slice_is_moe(w->slice, layer))
        return fill_dense(w, layer, MAT_GATE, err);
    if (fill_whole(w, layer, MAT_ROUTER, err) < 0 || fill_experts(w, layer, err) < 0)
        return -1;
    return w->layer[layer].at[MAT_SHARED_GATE] == NULL ? 0
                                                       : fill_dense(w, layer, MAT_SHARED_GATE, err);
}

int weights_fill(const struct weights *w, const struct layout *l, struct err *err)
{
    for (int layer = 0; layer < w->slice->layers; layer++) {
        struct layout here = store_layer_layout(w->slice, l, layer);
        if (fill_whole(w, layer, MAT_Q_A, err) < 0 || fill_whole(w, layer, MAT_KV_A, err) < 0 ||
            fill_ffn(w, layer, err) < 0)
            return -1;
        for (int m = MAT_Q_B; m <= MAT_O; m++)
            if (store_is_by_head((enum matrix)m) && slice_rows(w->slice, layer, m) > 0 &&
                fill_by_head(w, layer, (enum matrix)m, &here, err) < 0)
                return -1;
    }
    return gpu_try(cudaDeviceSynchronize(), "making weights", err);
}

int weights_retire(const struct weights *w, const struct layout *l, cudaStream_t stream,
                   struct err *err)
{
    for (int layer = 0; layer < w->slice->layers; layer++) {
        struct layout here = store_layer_layout(w->slice, l, layer);
        for (int m = MAT_Q_B; m <= MAT_O; m++) {
            if (!store_is_by_head((enum matrix)m))
                continue;
            int64_t bytes = weights_head_bytes(w, layer, (enum matrix)m);
            for (int head = 0; head < store_heads_of(&w->slice->model, (enum matrix)m).n; head++) {
                char *at = (char *)w->layer[layer].at[m] + head * bytes;
                if (!holds(w, layer, (enum matrix)m, head, &here) &&
                    gpu_try(cudaMemsetAsync(at, 0xff, (size_t)bytes, stream), "retiring weights",
                            err) < 0)
                    return -1;
            }
        }
    }
    return 0;
}
