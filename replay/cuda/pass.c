/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "replay/cuda/rank.h"
#include "replay/store.h"
#include "sim/base/mem.h"

enum { BF16_BYTES = 2, FP32_BYTES = 4 };

static int64_t place(const struct gpu_rank *r, const void *array)
{
    return (const char *)array - r->arena.base;
}

/* No exchange at all where no rank sends anything: all of them know. */
static int make(struct gpu_rank *r, struct boxes *b, bool needed, struct link_exchange **e,
                struct err *err)
{
    int rc = 0;
    *e = NULL;
    if (needed) {
        *e = link_exchange_new(r->link, b->out, (int)b->n_out, b->in, (int)b->n_in, err);
        rc = *e == NULL ? -1 : 0;
    }
    boxes_release(b);
    return rc;
}

static bool has_all_rows(const struct scheme *s, enum share_stage stage)
{
    return share_of(s->slice, &s->layout, stage, s->rank).rule == SHARE_ALL;
}

static int make_inputs(struct gpu_rank *r, const struct scheme *s, struct exchanges *e,
                       struct err *err)
{
    const struct model *m = &r->slice->model;
    struct head_dims d = head_dims_of(m);
    struct boxes b = {0};
    bool owned = s->layout.rows_owned;
    const struct scheme_arrays kv = {SHARE_KV, SHARE_STORE, (int64_t)d.kv_dim * BF16_BYTES,
                                     place(r, r->scratch.kv), place(r, r->scratch.kv_in)};
    const struct scheme_arrays query = {SHARE_PROJECT, SHARE_ATTEND, (int64_t)d.query * BF16_BYTES,
                                        place(r, r->scratch.query), place(r, r->scratch.query_in)};
    scheme_gather(&b, s, SHARE_OWNED, (int64_t)m->hidden * BF16_BYTES, place(r, r->scratch.normed));
    if (make(r, &b, owned && has_all_rows(s, SHARE_PROJECT), &e->rows_in, err) < 0)
        return -1;
    scheme_between(&b, s, &kv, 0, s->rows.n);
    if (make(r, &b, !share_stays(r->slice, &s->layout, SHARE_KV, SHARE_STORE), &e->kv, err) < 0)
        return -1;
    scheme_between(&b, s, &query, 0, s->rows.n);
    return make(r, &b, !share_stays(r->slice, &s->layout, SHARE_PROJECT, SHARE_ATTEND), &e->query,
                err);
}

struct scheme_range pass_part(const struct pass *p, int kind, int part)
{
    struct scheme_range all = p->scheme[kind].at[SHARE_ATTEND], one = all;
    one.first_row = all.first_row + all.rows * part / p->parts;
    one.rows = all.first_row + all.rows * (part + 1) / p->parts - one.first_row;
    return one;
}

/* A part of the rows is the same for all ranks: parts are cut only where all ranks attend to all
 * rows. */
static int make_outputs(struct gpu_rank *r, const struct pass *p, int kind, struct exchanges *e,
                        struct err *err)
{
    const struct scheme *s = &p->scheme[kind];
    struct head_dims d = head_dims_of(&r->slice->model);
    const struct scratch *x = &r->scratch;
    const struct scheme_arrays out = {SHARE_ATTEND, SHARE_OUT, (int64_t)d.value * BF16_BYTES,
                                      place(r, x->out), place(r, x->parts)};
    const struct scheme_arrays lse = {SHARE_ATTEND, SHARE_OUT, FP32_BYTES, place(r, x->lse),
                                      place(r, x->parts_lse)};
    bool needed = s->partials > 1 || !share_stays(r->slice, &s->layout, SHARE_ATTEND, SHARE_OUT);
    assert(p->parts == 1 || has_all_rows(s, SHARE_ATTEND));
    for (int part = 0; part < p->parts; part++) {
        struct scheme_range rows = pass_part(p, kind, part);
        int64_t first = p->parts > 1 ? rows.first_row : 0;
        int64_t end = p->parts > 1 ? rows.first_row + rows.rows : s->rows.n;
        struct boxes b = {0};
        scheme_between(&b, s, &out, first, end);
        scheme_between(&b, s, &lse, first, end);
        if (make(r, &b, needed, &e->out[part], err) < 0)
            return -1;
    }
    return 0;
}

static int make_sums(struct gpu_rank *r, const struct scheme *s, struct exchanges *e,
                     struct err *err)
{
    int64_t bytes = (int64_t)r->slice->model.hidden * BF16_BYTES;
    bool owned = s->layout.rows_owned, summed = s->layout.out_shards > 1;
    struct boxes b = {0};
    scheme_gather(&b, s, share_home(&s->layout), bytes, place(r, r->scratch.y));
    if (make(r, &b, !owned && !summed, &e->rows_out, err) < 0)
        return -1;
    scheme_scatter(&b, s, bytes, place(r, r->scratch.y), place(r, r->scratch.y_parts));
    if (make(r, &b, owned && summed, &e->sums_out, err) < 0)
        return -1;
    scheme_gather(&b, s, SHARE_OWNED, bytes, place(r, r->scratch.normed));
    if (make(r, &b, owned, &e->ffn_in, err) < 0)
        return -1;
    scheme_scatter(&b, s, bytes, place(r, r->scratch.y), place(r, r->scratch.y_parts));
    return make(r, &b, owned, &e->ffn_out, err);
}

/* Beside an exchange under way, attention leaves SMs to it: its blocks stay until they are done. */
static int bounds_for(const struct gpu_rank *r, const struct scheme *s, int reserved_sms,
                      struct attention_bounds *bounds, struct err *err)
{
    const struct model *m = &r->slice->model;
    struct kv_shard k = kv_shard_of(r->slice, &s->layout, s->rank, s->rank);
    int heads = s->at[SHARE_ATTEND].heads;
    int rows_max = r->scratch.rows_max;
    cudaError_t e = m->attention == ATTN_MLA
                        ? mla_attention_bounds(heads, reserved_sms, rows_max, bounds)
                        : gqa_attention_bounds(heads, k.heads, reserved_sms, rows_max, bounds);
    return gpu_try(e, "planning attention", err);
}

static int make_kind(struct gpu_rank *r, struct pass *p, int kind, struct layout l, struct err *err)
{
    struct scheme *s = &p->scheme[kind];
    scheme_init(s, r->slice, &l, &p->rows, r->comm->rank);
    if (make_inputs(r, s, &p->exchanges[kind], err) < 0 ||
        make_outputs(r, p, kind, &p->exchanges[kind], err) < 0 ||
        make_sums(r, s, &p->exchanges[kind], err) < 0)
        return -1;
    int reserved_sms = p->parts > 1 ? (int)r->job->options.transfer_sms : 0;
    return bounds_for(r, s, reserved_sms, &p->bounds[kind], err);
}

int pass_kind(const struct pass *p, const struct slice *s, int layer)
{
    struct layout last = store_layer_layout(s, &p->layout, s->layers - 1);
    struct layout here = store_layer_layout(s, &p->layout, layer);
    return p->n_kinds > 1 && here.in_shards != last.in_shards;
}

void pass_free(struct pass *p)
{
    if (p == NULL)
        return;
    for (int layer = 0; layer < p->n_graphs; layer++) {
        if (p->graph[layer].exec != NULL)
            cudaGraphExecDestroy(p->graph[layer].exec);
        marks_release(&p->graph[layer].marks);
    }
    free(p->graph);
    for (int kind = 0; kind < p->n_kinds; kind++) {
        struct exchanges *e = &p->exchanges[kind];
        struct link_exchange *all[] = {e->rows_in,  e->kv,     e->query,  e->rows_out,
                                       e->sums_out, e->ffn_in, e->ffn_out};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            link_exchange_free(all[i]);
        for (int part = 0; part < p->parts; part++)
            link_exchange_free(e->out[part]);
    }
    free(p);
}

static int parts_of(const struct layout *l, int64_t rows, bool cut)
{
    int64_t parts = cut ? l->sub_batches : 1;
    return (int)(parts < rows ? parts : rows);
}

static struct pass *pass_new(struct gpu_rank *r, const struct scheme_rows *rows, int parts,
                             struct err *err)
{
    struct pass *p = xcalloc(1, sizeof *p);
    p->layout = r->layout;
    p->rows = *rows;
    p->parts = parts;
    /* The last layer's kind first: it is never the one with full projections alone. */
    struct layout plain = store_layer_layout(r->slice, &p->layout, r->slice->layers - 1);
    struct layout first = store_layer_layout(r->slice, &p->layout, 0);
    p->n_kinds = first.in_shards != plain.in_shards ? 2 : 1;
    if (make_kind(r, p, 0, plain, err) < 0 ||
        (p->n_kinds > 1 && make_kind(r, p, 1, first, err) < 0)) {
        pass_free(p);
        return NULL;
    }
    return p;
}

struct pass *pass_find(struct gpu_rank *r, const struct scheme_rows *rows, bool cut,
                       struct err *err)
{
    int parts = parts_of(&r->layout, rows->n, cut);
    size_t bytes = (size_t)(r->comm->ranks + 1) * sizeof *rows->first;
    for (size_t i = 0; i < r->n_passes; i++) {
        struct pass *p = r->pass[i];
        if (strcmp(p->layout.name, r->layout.name) == 0 && p->parts == parts &&
            p->rows.n == rows->n && memcmp(p->rows.first, rows->first, bytes) == 0)
            return p;
    }
    struct pass *p = pass_new(r, rows, parts, err);
    if (p == NULL)
        return NULL;
    r->pass = xgrow(r->pass, &r->cap_passes, r->n_passes + 1, sizeof(struct pass *));
    r->pass[r->n_passes++] = p;
    return p;
}
