/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/scratch.h"

#include <string.h>

struct head_dims head_dims_of(const struct model *m)
{
    int lora = m->kv_lora;
    if (m->attention == ATTN_MLA)
        return (struct head_dims){lora + m->rope_dim, lora, lora + m->rope_dim, 0};
    return (struct head_dims){m->nope_dim, m->v_dim, 2 * m->nope_dim, m->nope_dim};
}

static uint16_t *take16(struct gpu_arena *a, int64_t rows, int64_t width)
{
    return gpu_take(a, (size_t)(rows * width) * sizeof(uint16_t));
}

static float *take32(struct gpu_arena *a, int64_t rows, int64_t width)
{
    return gpu_take(a, (size_t)(rows * width) * sizeof(float));
}

static void place_attention(struct scratch *s, struct gpu_arena *a, const struct model *m,
                            const struct scratch_bounds *b)
{
    struct head_dims d = head_dims_of(m);
    /* Of rows that are split among ranks, each rank's share is rounded up. */
    int64_t n = b->rows_max, parts = n + b->ranks;
    s->q_a = take16(a, n, m->q_lora);
    s->q = take16(a, n, (int64_t)m->heads * (m->nope_dim + m->rope_dim));
    s->query = take16(a, n, (int64_t)m->heads * d.query);
    s->query_in = take16(a, n, (int64_t)m->heads * d.query);
    s->kv = take16(a, n, (int64_t)m->kv_heads * d.kv_dim);
    s->kv_in = take16(a, n, (int64_t)m->kv_heads * d.kv_dim);
    s->out = take16(a, n, (int64_t)m->heads * d.value);
    s->parts = take16(a, parts, (int64_t)m->heads * d.value);
    s->whole = take16(a, n, (int64_t)m->heads * d.value);
    s->lse = take32(a, n, m->heads);
    s->parts_lse = take32(a, parts, m->heads);
    s->whole_lse = take32(a, n, m->heads);
    s->v = take16(a, n, (int64_t)m->heads * m->v_dim);
    s->workspace = gpu_take(a, b->workspace_bytes);
}

static int64_t widest_inter(const struct slice *slice, int ranks)
{
    int64_t widest = 0;
    for (int layer = 0; layer < slice->layers; layer++) {
        int64_t dense = slice_is_moe(slice, layer) ? slice_rows(slice, layer, MAT_SHARED_GATE)
                                                   : slice_rows(slice, layer, MAT_GATE);
        dense = (dense + ranks - 1) / ranks;
        widest = dense > widest ? dense : widest;
    }
    return widest;
}

static void place_ffn(struct scratch *s, struct gpu_arena *a, const struct slice *slice,
                      const struct scratch_bounds *b)
{
    const struct model *m = &slice->model;
    int64_t n = b->rows_max, numbers = n * widest_inter(slice, b->ranks);
    int64_t slots = n * m->moe.topk, routed = slots * m->moe.inter;
    numbers = routed > numbers ? routed : numbers;
    s->gate_up = take16(a, 2, numbers);
    s->act = take16(a, 1, numbers);
    if (m->moe.experts == 0)
        return;
    s->slot_out = take16(a, slots, m->hidden);
    s->shared = take16(a, n, m->hidden);
    s->logits = take32(a, n, m->moe.experts);
    s->routes = (struct moe_routes){
        .expert = gpu_take(a, (size_t)slots * sizeof(int32_t)),
        .weight = gpu_take(a, (size_t)slots * sizeof(float)),
        .slot = gpu_take(a, (size_t)slots * sizeof(int32_t)),
        .slot_row = gpu_take(a, (size_t)slots * sizeof(int32_t)),
        .first = gpu_take(a, (size_t)(m->moe.experts + 1) * sizeof(int32_t)),
    };
}

/* Pieces of 256 bytes each from `base` on. */
static void *cut(char *base, size_t *at, size_t bytes)
{
    void *piece = base == NULL ? NULL : base + *at;
    *at += (bytes + 255) / 256 * 256;
    return piece;
}

static struct inputs cut_inputs(char *base, const struct scratch_bounds *b, size_t *bytes)
{
    struct inputs in;
    size_t at = 0, n = (size_t)b->rows_max;
    in.position = cut(base, &at, n * sizeof(int64_t));
    in.req = cut(base, &at, n * sizeof(int64_t));
    in.request = cut(base, &at, n * sizeof(int32_t));
    in.sample_home = cut(base, &at, ORACLE_ROWS_MAX * sizeof(int32_t));
    in.sample_all = cut(base, &at, ORACLE_ROWS_MAX * sizeof(int32_t));
    for (int kind = 0; kind < KINDS_MAX; kind++) {
        in.slots[kind] = cut(base, &at, n * sizeof(int64_t));
        in.sample_out[kind] = cut(base, &at, ORACLE_ROWS_MAX * sizeof(int32_t));
        for (int part = 0; part < SUB_BATCHES_MAX; part++)
            in.plan[kind][part] = cut(base, &at, b->plan_bytes);
    }
    *bytes = at;
    return in;
}

static void place_taps(struct taps *t, struct gpu_arena *a, const struct slice *slice)
{
    const struct model *m = &slice->model;
    int64_t n = (int64_t)slice->layers * ORACLE_ROWS_MAX;
    t->attention = take16(a, n, m->hidden);
    t->ffn = take16(a, n, m->hidden);
    t->lse = take32(a, n, m->heads);
    t->hidden = take32(a, n + ORACLE_ROWS_MAX, m->hidden);
    t->experts = gpu_take(a, (size_t)(n * m->moe.topk) * sizeof(int32_t));
}

void scratch_place(struct scratch *s, struct gpu_arena *a, const struct slice *slice,
                   const struct scratch_bounds *b)
{
    const struct model *m = &slice->model;
    *s = (struct scratch){.rows_max = (int)b->rows_max};
    s->x = take32(a, b->rows_max, m->hidden);
    s->normed = take16(a, b->rows_max, m->hidden);
    s->y = take16(a, b->rows_max, m->hidden);
    s->y_parts = take16(a, b->rows_max * b->ranks, m->hidden);
    place_attention(s, a, m, b);
    place_ffn(s, a, slice, b);
    place_taps(&s->taps, a, slice);
    cut_inputs(NULL, b, &s->inputs_bytes);
    s->device = cut_inputs(gpu_take(a, s->inputs_bytes), b, &s->inputs_bytes);
}

int scratch_open(struct scratch *s, const struct scratch_bounds *b, struct err *err)
{
    void *pinned;
    if (gpu_try(cudaHostAlloc(&pinned, s->inputs_bytes, 0), "inputs", err) < 0)
        return -1;
    memset(pinned, 0, s->inputs_bytes);
    s->host = cut_inputs(pinned, b, &s->inputs_bytes);
    return 0;
}

void scratch_close(struct scratch *s)
{
    cudaFreeHost(s->host.position); /* the first piece */
    *s = (struct scratch){0};
}

int scratch_upload(const struct scratch *s, cudaStream_t stream, struct err *err)
{
    return gpu_try(cudaMemcpyAsync(s->device.position, s->host.position, s->inputs_bytes,
                                   cudaMemcpyHostToDevice, stream),
                   "inputs", err);
}
