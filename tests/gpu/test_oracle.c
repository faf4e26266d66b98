/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle against the reference on the CPU: random steps of small models, whose outputs and LSE
 * must agree to 1e-10, the taps add up, and experts that were chosen elsewhere are taken or
 * refused. Without a GPU nothing runs.
 */
#include "replay/cuda/oracle.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/values.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"

enum { LAYERS = 4, LIVE = 4, STEPS = 14 };

static const double TOLERANCE = 1e-10;
static int n_passed, n_failed;
static struct rng rng;

__attribute__((format(printf, 2, 3))) static void check(bool ok, const char *fmt, ...)
{
    va_list ap;
    ok ? n_passed++ : n_failed++;
    if (ok)
        return;
    va_start(ap, fmt);
    printf("failed: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

static void must(int rc, const struct err *err, const char *what)
{
    if (rc < 0) {
        printf("failed: %s: %s\n", what, err->text);
        exit(1);
    }
}

static struct slice load(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = LAYERS, .seed = 20261130};
    must(model_load(&s.model, name, &err), &err, name);
    return s;
}

/* Sizes that divide by nothing, so that every tile has a rest. */
static struct slice load_odd(const char *name)
{
    struct slice s = load(name);
    struct model *m = &s.model;
    snprintf(m->name, sizeof m->name, "odd-%s", strchr(name, '-') + 1);
    m->hidden = 133;
    m->dense_inter = 301;
    if (m->attention == ATTN_MLA) {
        m->heads = 5;
        m->q_lora = 33;
        m->kv_lora = 75;
        m->nope_dim = 13;
        m->rope_dim = 6;
        m->v_dim = 11;
    } else {
        m->heads = 6;
        m->kv_heads = 3;
        m->nope_dim = m->v_dim = 18;
    }
    if (m->moe.experts > 0) {
        m->moe.experts = 7;
        m->moe.topk = 3;
        m->moe.shared = 0;
        m->moe.inter = 29;
    }
    return s;
}

/* NaN: what is not written shows. */
static double *poisoned(size_t n)
{
    double *x = xcalloc(n, sizeof *x);
    memset(x, 0xff, n * sizeof *x);
    return x;
}

static struct oracle_taps taps_new(const struct slice *s, int n)
{
    size_t rows = (size_t)n * (size_t)s->model.hidden, layers = (size_t)s->layers;
    return (struct oracle_taps){poisoned(layers * rows), poisoned(layers * rows),
                                poisoned(layers * (size_t)n * (size_t)s->model.heads),
                                poisoned(rows)};
}

static void taps_free(struct oracle_taps *t)
{
    free(t->attention);
    free(t->ffn);
    free(t->lse);
    free(t->hidden);
}

static double largest(const double *x, int n)
{
    double max = 0;
    for (int i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* Largest difference of any row of width numbers, relative to its largest number. */
static double difference(const double *got, const double *want, int n, int width)
{
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double size = largest(want + (int64_t)i * width, width);
        for (int64_t j = (int64_t)i * width; j < (int64_t)(i + 1) * width; j++) {
            double off = fabs(got[j] - want[j]) / size;
            worst = isnan(off) || off > worst ? off : worst; /* NaN stays */
        }
    }
    return worst;
}

static double *first_rows(const struct slice *s, const struct reference_row *row, int n)
{
    int hidden = s->model.hidden;
    double *x = xcalloc((size_t)n * (size_t)hidden, sizeof *x);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < hidden; j++)
            x[(int64_t)i * hidden + j] =
                value_at(s->seed, VALUE_HIDDEN, row[i].req, row[i].position, 0, j);
    return x;
}

static struct oracle *new_oracle(const struct slice *s)
{
    struct err err = ERR_NONE;
    struct oracle *o = oracle_new(s, &err);
    must(o ? 0 : -1, &err, s->model.name);
    return o;
}

/* The oracle, and for each layer a reference whose last one it is. */
struct trial {
    const struct slice *slice;
    struct oracle *oracle;
    struct reference *reference[LAYERS];
    double hidden, lse; /* largest differences so far */
    int steps;
};

static struct trial trial_new(const struct slice *s)
{
    struct trial t = {.slice = s, .oracle = new_oracle(s)};
    struct slice cut = *s;
    for (cut.layers = 1; cut.layers <= LAYERS; cut.layers++)
        t.reference[cut.layers - 1] = reference_new(&cut);
    return t;
}

static void trial_end(struct trial *t, const char *what)
{
    printf("%s, %s: %d steps, hidden rows differ by %.1e at most, LSE by %.1e\n",
           t->slice->model.name, what, t->steps, t->hidden, t->lse);
    oracle_free(t->oracle);
    for (int layer = 0; layer < LAYERS; layer++)
        reference_free(t->reference[layer]);
}

static void forget(struct trial *t, int64_t req)
{
    oracle_forget(t->oracle, req);
    for (int layer = 0; layer < LAYERS; layer++)
        reference_forget(t->reference[layer], req);
}

/* What came out against the references, layer by layer: x0 and what each layer adds, and LSE. */
static void compare(struct trial *t, const struct reference_row *row, int n,
                    const struct oracle_taps *got)
{
    const struct model *m = &t->slice->model;
    int64_t size = (int64_t)n * m->hidden, heads = (int64_t)n * m->heads;
    double *x = first_rows(t->slice, row, n);
    double *want = poisoned((size_t)size), *want_lse = poisoned((size_t)heads);
    for (int layer = 0; layer < LAYERS; layer++) {
        reference_step(t->reference[layer], row, n, want, want_lse);
        for (int64_t i = 0; i < size; i++)
            x[i] += got->attention[layer * size + i] + got->ffn[layer * size + i];
        double hidden = difference(x, want, n, m->hidden);
        double lse = difference(got->lse + layer * heads, want_lse, n, m->heads);
        check(hidden <= TOLERANCE && lse <= TOLERANCE,
              "%s, step %d, layer %d, %d rows, the first of request %" PRId64 ", position %" PRId64
              ": taps differ by %g, LSE by %g",
              m->name, t->steps, layer, n, row[0].req, row[0].position, hidden, lse);
        t->hidden = fmax(t->hidden, hidden);
        t->lse = fmax(t->lse, lse);
    }
    double hidden = difference(got->hidden, want, n, m->hidden);
    check(hidden <= TOLERANCE, "%s, step %d: hidden differs by %g", m->name, t->steps, hidden);
    free(x);
    free(want);
    free(want_lse);
}

static void step(struct trial *t, const struct reference_row *row, int n)
{
    struct err err = ERR_NONE;
    struct oracle_taps got = taps_new(t->slice, n);
    must(oracle_step(t->oracle, row, n, NULL, 0, &got, &err), &err, t->slice->model.name);
    compare(t, row, n, &got);
    t->steps++;
    taps_free(&got);
}

struct live {
    int64_t req, tokens; /* req < 0: none */
};

/* Requests come with or without history, decode, prefill, fall back, pause and go. */
static int draw_step(struct trial *t, struct live live[LIVE], int64_t *next_req,
                     struct reference_row row[ORACLE_ROWS_MAX])
{
    int n = 0;
    for (int i = 0; i < LIVE; i++) {
        if (live[i].req >= 0 && rng_range(&rng, 0, 7) == 0) {
            forget(t, live[i].req);
            live[i].req = -1;
        }
        if (live[i].req < 0)
            live[i] = (struct live){(*next_req)++, rng_range(&rng, 0, 2) * rng_range(&rng, 0, 90)};
        if (rng_range(&rng, 0, 4) == 0)
            continue;
        if (live[i].tokens > 3 && rng_range(&rng, 0, 7) == 0)
            live[i].tokens -= 3;
        int64_t q = rng_range(&rng, 0, 2) > 0 ? 1 : rng_range(&rng, 2, ORACLE_ROWS_MAX / LIVE);
        for (int64_t k = 0; k < q; k++)
            row[n++] = (struct reference_row){live[i].req, live[i].tokens++};
    }
    return n;
}

static void test_random_steps(const struct slice *s)
{
    struct reference_row row[ORACLE_ROWS_MAX];
    struct trial t = trial_new(s);
    struct live live[LIVE] = {{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}};
    int64_t next_req = 0;
    for (int i = 0; i < STEPS; i++) {
        int n = draw_step(&t, live, &next_req, row);
        if (n > 0)
            step(&t, row, n);
    }
    trial_end(&t, "random steps");
}

/* Rows of request `req`, `tokens` on. */
static int rows_of(struct reference_row *row, int64_t req, int64_t tokens, int n)
{
    for (int i = 0; i < n; i++)
        row[i] = (struct reference_row){req, tokens + i};
    return n;
}

/* History beyond one chunk of the oracle's KV, rows on both sides of its end, and as many rows as
 * there may be; then some again, and the same request anew. */
static void test_far_steps(const struct slice *s)
{
    enum { CHUNK = 4096 };
    struct reference_row row[ORACLE_ROWS_MAX];
    struct trial t = trial_new(s);
    int n = rows_of(row, 1, CHUNK - 3, 5);
    n += rows_of(row + n, INT64_C(1) << 40, 0, ORACLE_ROWS_MAX - 5);
    step(&t, row, n);
    step(&t, row, rows_of(row, 1, CHUNK + 2, 1));
    step(&t, row, rows_of(row, 1, CHUNK - 1, 3));
    step(&t, row, rows_of(row, 1, CHUNK + 70, 1));
    forget(&t, 1);
    step(&t, row, rows_of(row, 1, 7, 2));
    trial_end(&t, "long context");
}

/* Matrix rows [first, first + rows) times x, worked out here. */
static void apply(const struct slice *s, int layer, enum matrix m, int64_t first, int rows,
                  const double *x, double *y)
{
    int columns = slice_columns(s, layer, m);
    for (int i = 0; i < rows; i++) {
        y[i] = 0;
        for (int j = 0; j < columns; j++)
            y[i] += slice_weight(s, layer, m, first + i, j) * x[j];
    }
}

static void normed(const double *x, int n, double *y)
{
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(squares / n + 1e-6);
}

/* y += share * FFN(x), of one expert where there are several. */
static void add_ffn(const struct slice *s, int layer, enum matrix gate, int expert, double share,
                    const double *x, double *y)
{
    int inter = slice_rows(s, layer, gate), hidden = s->model.hidden;
    double *g = poisoned((size_t)inter), *u = poisoned((size_t)inter);
    double *d = poisoned((size_t)hidden);
    apply(s, layer, gate, (int64_t)expert * inter, inter, x, g);
    apply(s, layer, gate + 1, (int64_t)expert * inter, inter, x, u);
    for (int i = 0; i < inter; i++)
        g[i] = g[i] / (1 + exp(-g[i])) * u[i];
    apply(s, layer, gate + 2, (int64_t)expert * hidden, hidden, g, d);
    for (int j = 0; j < hidden; j++)
        y[j] += share * d[j];
    free(g);
    free(u);
    free(d);
}

/* One row of one request in fresh oracles, and how it is routed. */
struct choice {
    const struct slice *slice;
    int32_t *experts; /* [layers][topk]; NULL: the oracle's own choice */
    int layer;
    double *x, *logit; /* of that layer: the FFN's input, normed, and what the router makes of it */
    int32_t *best;     /* likewise: all experts, best first */
};

static int run_choice(const struct choice *c, double tie, struct oracle_taps *got, struct err *err)
{
    const struct reference_row row = {3, 20};
    struct oracle *o = new_oracle(c->slice);
    int rc = oracle_step(o, &row, 1, c->experts, tie, got, err);
    oracle_free(o);
    return rc;
}

static void sort_by_logit(int32_t *best, const double *logit, int n)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && logit[best[at - 1]] < logit[i]; at--)
            best[at] = best[at - 1];
        best[at] = i;
    }
}

/* The router's view of a layer, from the taps of an earlier run of the same row. */
static void look_at_router(struct choice *c, const struct oracle_taps *t)
{
    const struct slice *s = c->slice;
    const struct reference_row row = {3, 20};
    int64_t hidden = s->model.hidden;
    double *x = first_rows(s, &row, 1);
    for (int64_t l = 0; l <= c->layer; l++)
        for (int64_t j = 0; j < hidden; j++)
            x[j] += t->attention[l * hidden + j] + (l < c->layer ? t->ffn[l * hidden + j] : 0);
    normed(x, (int)hidden, c->x);
    apply(s, c->layer, MAT_ROUTER, 0, s->model.moe.experts, c->x, c->logit);
    sort_by_logit(c->best, c->logit, s->model.moe.experts);
    memcpy(c->experts + (int64_t)c->layer * s->model.moe.topk, c->best,
           (size_t)s->model.moe.topk * sizeof *c->best);
    free(x);
}

/* What the layer's FFN should add with the experts as they are. */
static void check_ffn(const struct choice *c, const struct oracle_taps *t, const char *what)
{
    const struct model *m = &c->slice->model;
    const int32_t *expert = c->experts + (int64_t)c->layer * m->moe.topk;
    double *want = xcalloc((size_t)m->hidden, sizeof *want), sum = 0;
    for (int k = 0; k < m->moe.topk; k++)
        sum += exp(c->logit[expert[k]]);
    for (int k = 0; k < m->moe.topk; k++)
        add_ffn(c->slice, c->layer, MAT_GATE, expert[k], exp(c->logit[expert[k]]) / sum, c->x,
                want);
    if (m->moe.shared > 0)
        add_ffn(c->slice, c->layer, MAT_SHARED_GATE, 0, 1, c->x, want);
    double off = difference(t->ffn + (int64_t)c->layer * m->hidden, want, 1, m->hidden);
    check(off <= TOLERANCE, "%s, %s: what the FFN adds differs by %g", m->name, what, off);
    free(want);
}

static void check_refused(const struct choice *c, double tie, const char *why)
{
    struct err err = ERR_NONE;
    struct oracle_taps got = taps_new(c->slice, 1);
    int rc = run_choice(c, tie, &got, &err);
    check(rc < 0 && err.kind == ERR_RUN && strstr(err.text, why), "%s: not refused as \"%s\": %s",
          c->slice->model.name, why, err.text);
    taps_free(&got);
}

static void check_choices(struct choice *c, const struct oracle_taps *own)
{
    const struct model *m = &c->slice->model;
    struct err err = ERR_NONE;
    struct oracle_taps got = taps_new(c->slice, 1);
    int32_t *last = c->experts + (int64_t)c->layer * m->moe.topk + m->moe.topk - 1;
    double gap = c->logit[c->best[m->moe.topk - 1]] - c->logit[c->best[m->moe.topk]];

    must(run_choice(c, 0, &got, &err), &err, "own choice given");
    check(memcmp(got.hidden, own->hidden, (size_t)m->hidden * sizeof(double)) == 0,
          "%s: own choice given changes the outcome", m->name);
    check_ffn(c, &got, "own choice");
    *last = c->best[m->moe.topk];
    must(run_choice(c, gap * 1.001, &got, &err), &err, "a near tie");
    check_ffn(c, &got, "a near tie");
    check_refused(c, gap * 0.999, "left out is better");
    *last = c->experts[(int64_t)c->layer * m->moe.topk];
    check_refused(c, 1e9, "chosen twice");
    *last = m->moe.experts;
    check_refused(c, 1e9, "there is no expert");
    taps_free(&got);
}

/* Another choice in the last layer. */
static void test_choices(const struct slice *s)
{
    const struct model *m = &s->model;
    struct err err = ERR_NONE;
    struct oracle_taps own = taps_new(s, 1);
    struct choice c = {.slice = s,
                       .x = poisoned((size_t)m->hidden),
                       .logit = poisoned((size_t)m->moe.experts),
                       .best = xcalloc((size_t)m->moe.experts, sizeof(int32_t))};
    must(run_choice(&c, 0, &own, &err), &err, m->name);
    c.experts = xcalloc((size_t)s->layers * (size_t)m->moe.topk, sizeof(int32_t));
    for (c.layer = m->dense_layers; c.layer < s->layers; c.layer++)
        look_at_router(&c, &own);
    c.layer = s->layers - 1;
    check_choices(&c, &own);
    taps_free(&own);
    free(c.x);
    free(c.logit);
    free(c.best);
    free(c.experts);
}

/* What cannot be held is refused, and room that comes back is used. */
static void test_limits(const struct slice *s)
{
    const struct reference_row far = {5, INT64_C(1) << 40}, near = {6, 0};
    struct err err = ERR_NONE;
    struct oracle_taps got = taps_new(s, 1);
    struct oracle *o = new_oracle(s);
    check(oracle_step(o, &far, 1, NULL, 0, &got, &err) < 0 && strstr(err.text, "no more than"),
          "a context too long is not refused: %s", err.text);

    void *ballast = NULL;
    size_t free_bytes, total_bytes;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    cudaError_t filled = cudaMalloc(&ballast, free_bytes - ((size_t)32 << 20));
    check(filled == cudaSuccess, "GPU memory cannot be filled: %s", cudaGetErrorString(filled));
    err = ERR_NONE;
    check(!oracle_new(s, &err) && strstr(err.text, "needs another"),
          "want of memory is not refused: %s", err.text);
    cudaFree(ballast);
    err = ERR_NONE;
    oracle_forget(o, far.req);
    check(oracle_step(o, &near, 1, NULL, 0, &got, &err) == 0, "after refusals: %s", err.text);
    oracle_free(o);
    taps_free(&got);
}

int main(void)
{
    static const char *const names[] = {"tiny-mla", "tiny-gqa", "tiny-moe"};
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 0;
    }
    rng_init(&rng, 20261130);
    for (int i = 0; i < 6; i++) {
        struct slice s = i % 2 ? load_odd(names[i / 2]) : load(names[i / 2]);
        test_random_steps(&s);
        test_far_steps(&s);
        if (s.model.moe.experts > 0)
            test_choices(&s);
        else
            test_limits(&s);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
