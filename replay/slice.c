/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/slice.h"

#include <assert.h>
#include <math.h>

#include "replay/values.h"

struct shape {
    int rows, columns;
};

static struct shape mla_shape(const struct model *m, enum matrix which)
{
    switch (which) {
    case MAT_Q_A: return (struct shape){m->q_lora, m->hidden};
    case MAT_Q_B: return (struct shape){m->heads * (m->nope_dim + m->rope_dim), m->q_lora};
    case MAT_KV_A: return (struct shape){m->kv_lora + m->rope_dim, m->hidden};
    case MAT_K_B: return (struct shape){m->heads * m->nope_dim, m->kv_lora};
    case MAT_V_B: return (struct shape){m->heads * m->v_dim, m->kv_lora};
    case MAT_O: return (struct shape){m->hidden, m->heads * m->v_dim};
    default: return (struct shape){0, 0};
    }
}

static struct shape gqa_shape(const struct model *m, enum matrix which)
{
    switch (which) {
    case MAT_Q_B: return (struct shape){m->heads * m->nope_dim, m->hidden};
    case MAT_K_B:
    case MAT_V_B: return (struct shape){m->kv_heads * m->nope_dim, m->hidden};
    case MAT_O: return (struct shape){m->hidden, m->heads * m->v_dim};
    default: return (struct shape){0, 0};
    }
}

static struct shape ffn_shape(const struct slice *s, int layer, enum matrix which)
{
    const struct model *m = &s->model;
    bool moe = slice_is_moe(s, layer);
    int inter = moe ? m->moe.inter : m->dense_inter;
    int shared = moe ? m->moe.shared * m->moe.inter : 0;

    switch (which) {
    case MAT_GATE:
    case MAT_UP: return (struct shape){inter, m->hidden};
    case MAT_DOWN: return (struct shape){m->hidden, inter};
    case MAT_ROUTER: return moe ? (struct shape){m->moe.experts, m->hidden} : (struct shape){0, 0};
    case MAT_SHARED_GATE:
    case MAT_SHARED_UP: return shared ? (struct shape){shared, m->hidden} : (struct shape){0, 0};
    case MAT_SHARED_DOWN: return shared ? (struct shape){m->hidden, shared} : (struct shape){0, 0};
    default: return (struct shape){0, 0};
    }
}

static struct shape shape_of(const struct slice *s, int layer, enum matrix which)
{
    assert(which < MAT_COUNT && layer >= 0 && layer < s->layers);
    if (which >= MAT_GATE)
        return ffn_shape(s, layer, which);
    return s->model.attention == ATTN_MLA ? mla_shape(&s->model, which)
                                          : gqa_shape(&s->model, which);
}

int slice_rows(const struct slice *s, int layer, enum matrix m)
{
    return shape_of(s, layer, m).rows;
}

int slice_columns(const struct slice *s, int layer, enum matrix m)
{
    return shape_of(s, layer, m).columns;
}

bool slice_is_moe(const struct slice *s, int layer)
{
    return s->model.moe.experts > 0 && layer >= s->model.dense_layers;
}

double slice_weight(const struct slice *s, int layer, enum matrix m, int64_t row, int column)
{
    int columns = slice_columns(s, layer, m);
    return value_bf16(value_at(s->seed, VALUE_WEIGHT, m, row, layer, column) / sqrt(columns));
}

int slice_kv_width(const struct slice *s)
{
    const struct model *m = &s->model;
    return m->attention == ATTN_MLA ? m->kv_lora + m->rope_dim : m->kv_heads * 2 * m->nope_dim;
}
