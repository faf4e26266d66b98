/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "replay/cuda/oracle_pass.h"
#include "replay/values.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { CONTEXT_MAX = EXACT_CHUNKS_MAX * EXACT_CHUNK_ROWS };

void oracle_try(struct err *err, cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        err_run(err, "the oracle: %s: %s", what, cudaGetErrorString(e));
}

void oracle_copy(struct err *err, double *to, const double *from, int64_t n)
{
    oracle_try(err, cudaMemcpy(to, from, (size_t)n * sizeof *to, cudaMemcpyDefault), "copy rows");
}

/* Poisoned numbers on the device; NULL on failure. */
static double *allocate(int64_t numbers, struct err *err)
{
    double *memory = NULL;
    size_t bytes = (size_t)numbers * sizeof *memory, free_bytes = 0, total_bytes = 0;

    cudaError_t e = cudaMalloc((void **)&memory, bytes);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        cudaMemGetInfo(&free_bytes, &total_bytes);
        err_run(err, "the oracle needs another %zu bytes of GPU memory; %zu of %zu are free", bytes,
                free_bytes, total_bytes);
        return NULL;
    }
    oracle_try(err, e, "allocate memory");
    if (e == cudaSuccess)
        oracle_try(err, cudaMemset(memory, 0xff, bytes), "poison memory");
    return memory;
}

/* One piece of memory for all buffers, ORACLE_ROWS_MAX rows each. */
static int allocate_buffers(struct oracle *o, struct err *err)
{
    const struct model *m = &o->slice->model;
    struct oracle_buffers *at = &o->at;
    bool mla = m->attention == ATTN_MLA, moe = m->moe.experts > 0;
    int64_t shared = (int64_t)m->moe.shared * m->moe.inter;
    int64_t inter = max_i64(m->dense_inter, max_i64(m->moe.inter, shared));
    const struct {
        double **at;
        int64_t width;
    } list[] = {
        {&at->x, m->hidden},
        {&at->normed, m->hidden},
        {&at->added, m->hidden},
        {&at->q_a, mla ? m->q_lora : 0},
        {&at->q, (int64_t)m->heads * (m->nope_dim + m->rope_dim)},
        {&at->kv, slice_kv_width(o->slice)},
        {&at->query, mla ? (int64_t)m->heads * (m->kv_lora + m->rope_dim) : 0},
        {&at->latent, mla ? (int64_t)m->heads * m->kv_lora : 0},
        {&at->o, (int64_t)m->heads * m->v_dim},
        {&at->lse, m->heads},
        {&at->gate, inter},
        {&at->up, inter},
        {&at->logit, m->moe.experts},
        {&at->chosen, moe ? m->hidden : 0},
        {&at->expert, moe ? m->hidden : 0},
    };
    enum { BUFFERS = sizeof list / sizeof list[0] };
    int64_t numbers = EXACT_WORKSPACE_NUMBERS;

    for (int i = 0; i < BUFFERS; i++)
        numbers += ORACLE_ROWS_MAX * list[i].width;
    o->memory = allocate(numbers, err);
    if (!o->memory)
        return -1;
    at->workspace = o->memory;
    double *next = at->workspace + EXACT_WORKSPACE_NUMBERS;
    for (int i = 0; i < BUFFERS; i++) {
        *list[i].at = next;
        next += ORACLE_ROWS_MAX * list[i].width;
    }
    return 0;
}

struct oracle *oracle_new(const struct slice *s, struct err *err)
{
    assert(s->layers > 0 && s->layers <= s->model.layers);
    assert(s->model.indexer.heads == 0 && s->model.linear.layers == 0);

    struct oracle *o = xcalloc(1, sizeof *o);
    o->slice = s;
    if (allocate_buffers(o, err) < 0) {
        oracle_free(o);
        return NULL;
    }
    return o;
}

void oracle_lead(struct oracle *o, const double *rows)
{
    o->lead = rows;
}

static void free_chunks(const struct oracle_context *c)
{
    for (int i = 0; i < c->chunks; i++)
        cudaFree(c->chunk[i]);
}

void oracle_free(struct oracle *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++)
        free_chunks(&o->context[i]);
    free(o->context);
    cudaFree(o->score);
    cudaFree(o->memory);
    free(o);
}

static struct oracle_context *find_context(const struct oracle *o, int64_t req)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->context[i].req == req)
            return &o->context[i];
    return NULL;
}

void oracle_forget(struct oracle *o, int64_t req)
{
    struct oracle_context *c = find_context(o, req);
    if (!c)
        return;
    free_chunks(c);
    *c = o->context[--o->n];
}

static struct oracle_context *add_context(struct oracle *o, int64_t req)
{
    o->context = xgrow(o->context, &o->cap, o->n + 1, sizeof *o->context);
    o->context[o->n] = (struct oracle_context){.req = req};
    return &o->context[o->n++];
}

const struct oracle_context *oracle_context_of(const struct oracle_pass *p, int i)
{
    return find_context(p->o, p->row[i].req);
}

double *oracle_kv(const struct oracle *o, const struct oracle_context *c, int layer, int64_t token)
{
    int64_t row = layer * (int64_t)EXACT_CHUNK_ROWS + token % EXACT_CHUNK_ROWS;
    return c->chunk[token / EXACT_CHUNK_ROWS] + row * slice_kv_width(o->slice);
}

static int add_chunk(const struct oracle *o, struct oracle_context *c, struct err *err)
{
    int64_t rows = (int64_t)o->slice->layers * EXACT_CHUNK_ROWS;
    double *chunk = allocate(rows * slice_kv_width(o->slice), err);
    if (!chunk)
        return -1;
    c->chunk[c->chunks++] = chunk;
    return 0;
}

/* Tokens [from, end) of all layers become history. */
static void fill_history(const struct oracle *o, const struct oracle_context *c, int64_t from,
                         int64_t end, struct err *err)
{
    for (int64_t next; from < end; from = next) {
        next = min_i64(end, (from / EXACT_CHUNK_ROWS + 1) * EXACT_CHUNK_ROWS);
        for (int layer = 0; layer < o->slice->layers; layer++) {
            const struct exact_values v = {o->slice->seed, VALUE_HISTORY, c->req, layer, 1};
            oracle_try(err,
                       exact_fill(oracle_kv(o, c, layer, from), &v, from, next - from,
                                  slice_kv_width(o->slice)),
                       "make history");
        }
    }
}

/* Room for the scores of one row. */
static int reserve_scores(struct oracle *o, int64_t tokens, struct err *err)
{
    if (tokens <= o->score_tokens)
        return 0;
    cudaFree(o->score);
    o->score_tokens = 0;
    o->score = allocate(o->slice->model.heads * tokens, err);
    if (!o->score)
        return -1;
    o->score_tokens = tokens;
    return 0;
}

/* Let the context end with this row; what is missing before it is history. */
static int extend_context(struct oracle *o, const struct reference_row *row, struct err *err)
{
    struct oracle_context *c = find_context(o, row->req);
    if (!c)
        c = add_context(o, row->req);
    if (row->position >= CONTEXT_MAX)
        return err_run(err, "request %" PRId64 ": the oracle holds no more than %d tokens", c->req,
                       CONTEXT_MAX);
    while ((int64_t)c->chunks * EXACT_CHUNK_ROWS <= row->position)
        if (add_chunk(o, c, err) < 0)
            return -1;
    if (reserve_scores(o, (int64_t)c->chunks * EXACT_CHUNK_ROWS, err) < 0)
        return -1;
    fill_history(o, c, c->tokens, row->position, err);
    c->tokens = row->position + 1;
    return 0;
}

struct exact_values oracle_weights(const struct oracle_pass *p, enum matrix m)
{
    const struct slice *s = p->o->slice;
    return (struct exact_values){s->seed, VALUE_WEIGHT, m, p->layer,
                                 sqrt(slice_columns(s, p->layer, m))};
}

void oracle_project(const struct oracle_pass *p, enum matrix m, int expert, int64_t n,
                    const double *x, double *y)
{
    int rows = slice_rows(p->o->slice, p->layer, m);
    int columns = slice_columns(p->o->slice, p->layer, m);
    const struct exact_values weights = oracle_weights(p, m);
    const struct exact_product product = {.x = x,
                                          .x_row = columns,
                                          .y = y,
                                          .y_row = rows,
                                          .batches = 1,
                                          .m = n,
                                          .n = rows,
                                          .k = columns,
                                          .w_row = (int64_t)expert * rows,
                                          .workspace = p->o->at.workspace};
    oracle_try(p->err, exact_product_values(&product, &weights), "multiply by weights");
}

/* x += added, which goes to the tap as well. */
static void add_to_rows(const struct oracle_pass *p, double *tap)
{
    int64_t size = (int64_t)p->n * p->o->slice->model.hidden;
    oracle_try(p->err, exact_add(p->o->at.x, 1, p->o->at.added, size), "add to rows");
    oracle_copy(p->err, tap + p->layer * size, p->o->at.added, size);
}

static void norm_rows(const struct oracle_pass *p)
{
    oracle_try(p->err, exact_norm(p->o->at.normed, p->o->at.x, p->n, p->o->slice->model.hidden),
               "norm");
}

static void run_layer(const struct oracle_pass *p, const int32_t *experts, double tie,
                      const struct oracle_taps *taps)
{
    const struct model *m = &p->o->slice->model;
    int64_t heads = (int64_t)p->n * m->heads;

    if (p->o->lead)
        oracle_copy(p->err, p->o->at.x, p->o->lead + (int64_t)p->layer * p->n * m->hidden,
                    (int64_t)p->n * m->hidden);
    norm_rows(p);
    oracle_attention(p);
    add_to_rows(p, taps->attention);
    oracle_copy(p->err, taps->lse + p->layer * heads, p->o->at.lse, heads);

    norm_rows(p);
    oracle_ffn(p, experts ? experts + (int64_t)p->layer * p->n * m->moe.topk : NULL, tie);
    add_to_rows(p, taps->ffn);
}

/* Contexts that end with the rows, and the rows before layer 0. */
static int begin(struct oracle *o, const struct reference_row *row, int n, struct err *err)
{
    int64_t hidden = o->slice->model.hidden;

    for (int i = 0; i < n; i++) {
        const struct exact_values v = {o->slice->seed, VALUE_HIDDEN, row[i].req, 0, 1};
        assert(i == 0 || row[i].req != row[i - 1].req ||
               row[i].position == row[i - 1].position + 1);
        if (extend_context(o, &row[i], err) < 0)
            return -1;
        oracle_try(err, exact_fill(o->at.x + i * hidden, &v, row[i].position, 1, hidden),
                   "make rows");
    }
    return 0;
}

int oracle_step(struct oracle *o, const struct reference_row *row, int n, const int32_t *experts,
                double tie, const struct oracle_taps *taps, struct err *err)
{
    assert(n > 0 && n <= ORACLE_ROWS_MAX && !err->set);
    if (begin(o, row, n, err) < 0)
        return -1;
    for (int layer = 0; layer < o->slice->layers && !err->set; layer++) {
        const struct oracle_pass p = {o, row, n, layer, err};
        run_layer(&p, experts, tie, taps);
    }
    o->lead = NULL;
    oracle_copy(err, taps->hidden, o->at.x, (int64_t)n * o->slice->model.hidden);
    return err->set ? -1 : 0;
}
