/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { REQUESTS_MAX = 3, REQUEST_ROWS_MAX = ORACLE_ROWS_MAX / REQUESTS_MAX };

/* How near a router's logit may be to the last chosen one's for either to be right. */
static const double logit_tie = 0.02;

const struct sample_errors sample_errors_max = {
    .attention = 1e-2, .ffn = 1e-2, .hidden = 5e-3, .lse = 5e-3};

struct sample {
    int64_t req[REQUESTS_MAX];
    int n_requests;
    struct reference_row row[ORACLE_ROWS_MAX]; /* of this step */
    int n;
    struct oracle *oracle;
    struct sample_errors worst;
};

struct candidate {
    int64_t req, tokens;
    bool fits;
};

static struct candidate *find(struct candidate *c, size_t n, int64_t req)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].req == req)
            return &c[i];
    return NULL;
}

static int by_tokens(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    return (x->tokens > y->tokens) - (x->tokens < y->tokens);
}

/* Requests with few rows in every step: the shortest, the longest, and one between. */
static void choose_requests(struct sample *s, const struct plan *p)
{
    struct candidate *c = NULL;
    size_t n = 0, cap = 0, fit = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->step[i].n_rows; k++) {
            const struct plan_row *row = &p->step[i].row[k];
            struct candidate *known = find(c, n, row->req);
            if (known == NULL) {
                c = xgrow(c, &cap, n + 1, sizeof *c);
                c[n] = (struct candidate){row->req, row->ctx_tokens, true};
                known = &c[n++];
            }
            known->fits = known->fits && row->q <= REQUEST_ROWS_MAX;
        }
    if (n > 1)
        qsort(c, n, sizeof *c, by_tokens);
    while (fit < n && c[fit].fits)
        fit++;
    for (size_t i = 0; fit > 0 && i < REQUESTS_MAX; i++) {
        size_t at = i * (fit - 1) / (REQUESTS_MAX - 1);
        if (i == 0 || c[at].req != s->req[s->n_requests - 1])
            s->req[s->n_requests++] = c[at].req;
    }
    free(c);
}

struct sample *sample_new(const struct gpu_rank *r, struct err *err)
{
    struct sample *s = xcalloc(1, sizeof *s);
    choose_requests(s, &r->job->plan);
    if (r->comm->rank == 0) {
        s->oracle = oracle_new(r->slice, err);
        if (s->oracle == NULL) {
            free(s);
            return NULL;
        }
    }
    return s;
}

void sample_free(struct sample *s)
{
    if (s == NULL)
        return;
    oracle_free(s->oracle);
    free(s);
}

void sample_forget(struct sample *s, int64_t req)
{
    if (s->oracle != NULL)
        oracle_forget(s->oracle, req);
}

const struct sample_errors *sample_errors(const struct sample *s)
{
    return &s->worst;
}

static bool is_chosen(const struct sample *s, int64_t req)
{
    for (int i = 0; i < s->n_requests; i++)
        if (s->req[i] == req)
            return true;
    return false;
}

static int32_t within(const struct scheme_range *r, int64_t row, int64_t base)
{
    bool here = row >= r->first_row && row < r->first_row + r->rows;
    return here ? (int32_t)(row - base) : -1;
}

void sample_choose(struct sample *s, const struct pass *p, struct inputs *in)
{
    struct scheme_range home = scheme_home(&p->scheme[0], p->scheme[0].rank);
    s->n = 0;
    for (int i = 0; i < ORACLE_ROWS_MAX; i++)
        in->sample_all[i] = in->sample_home[i] = in->sample_out[0][i] = in->sample_out[1][i] = -1;
    for (int64_t row = 0; row < p->rows.n; row++) {
        if (!is_chosen(s, in->req[row]))
            continue;
        int k = s->n++;
        s->row[k] = (struct reference_row){in->req[row], in->position[row]};
        in->sample_all[k] = (int32_t)row;
        in->sample_home[k] = within(&home, row, 0);
        for (int kind = 0; kind < p->n_kinds; kind++) {
            const struct scheme_range *out = &p->scheme[kind].at[SHARE_OUT];
            in->sample_out[kind][k] = within(out, row, out->first_row);
        }
    }
}

/* All that is compared, one after the other in one array. */
struct gathered {
    double *all;
    size_t n;
    double *hidden; /* [layers + 1][n][hidden] */
    struct oracle_taps taps;
};

static struct gathered gathered_new(const struct slice *s, int n)
{
    size_t layers = (size_t)s->layers, row = (size_t)n * (size_t)s->model.hidden;
    size_t adds = layers * row, lse = layers * (size_t)n * (size_t)s->model.heads;
    struct gathered g = {.n = 3 * adds + row + lse};
    g.all = xcalloc(g.n, sizeof *g.all);
    g.hidden = g.all;
    g.taps.hidden = g.hidden + adds; /* after the last layer */
    g.taps.attention = g.taps.hidden + row;
    g.taps.ffn = g.taps.attention + adds;
    g.taps.lse = g.taps.ffn + adds;
    return g;
}

static double from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* A device array brought here; NULL on failure. */
static void *fetch(const void *device, size_t bytes, struct err *err)
{
    void *host = xmalloc(bytes);
    if (gpu_try(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "taps", err) == 0)
        return host;
    free(host);
    return NULL;
}

/* Rows of one kind of layer where they live; `copies` ranks have them. */
static void take_adds(const struct sample *s, const struct inputs *in, const struct slice *slice,
                      const uint16_t *tap, double copies, double *to)
{
    size_t hidden = (size_t)slice->model.hidden;
    for (int layer = 0; layer < slice->layers; layer++)
        for (int k = 0; k < s->n; k++)
            for (size_t j = 0; in->sample_home[k] >= 0 && j < hidden; j++)
                to[((size_t)(layer * s->n + k)) * hidden + j] =
                    from_bf16(tap[(size_t)(layer * ORACLE_ROWS_MAX + k) * hidden + j]) / copies;
}

static void take_hidden(const struct sample *s, const struct inputs *in, const struct slice *slice,
                        const float *tap, double copies, double *to)
{
    size_t hidden = (size_t)slice->model.hidden;
    for (int layer = 0; layer <= slice->layers; layer++)
        for (int k = 0; k < s->n; k++)
            for (size_t j = 0; in->sample_home[k] >= 0 && j < hidden; j++)
                to[(size_t)(layer * s->n + k) * hidden + j] =
                    (double)tap[(size_t)(layer * ORACLE_ROWS_MAX + k) * hidden + j] / copies;
}

static void take_lse(const struct sample *s, const struct gpu_rank *r, const struct pass *p,
                     const float *tap, double *to)
{
    int64_t heads = r->slice->model.heads;
    for (int layer = 0; layer < r->slice->layers; layer++) {
        int kind = pass_kind(p, r->slice, layer);
        const struct scheme_range *out = &p->scheme[kind].at[SHARE_OUT];
        const float *from = tap + (int64_t)layer * ORACLE_ROWS_MAX * heads;
        for (int k = 0; k < s->n; k++)
            for (int h = 0; r->scratch.host.sample_out[kind][k] >= 0 && h < out->heads; h++)
                to[(layer * s->n + k) * heads + out->first_head + h] =
                    (double)from[(int64_t)k * out->heads + h];
    }
}

static int take(const struct sample *s, struct gpu_rank *r, const struct pass *p,
                struct gathered *g, struct err *err)
{
    const struct taps *t = &r->scratch.taps;
    const struct slice *slice = r->slice;
    const struct inputs *in = &r->scratch.host;
    size_t rows = (size_t)slice->layers * ORACLE_ROWS_MAX, hidden = (size_t)slice->model.hidden;
    double copies = p->layout.rows_owned ? 1 : r->comm->ranks;
    uint16_t *attention = fetch(t->attention, rows * hidden * sizeof(uint16_t), err);
    uint16_t *ffn = fetch(t->ffn, rows * hidden * sizeof(uint16_t), err);
    float *lse = fetch(t->lse, rows * (size_t)slice->model.heads * sizeof(float), err);
    float *x = fetch(t->hidden, (rows + ORACLE_ROWS_MAX) * hidden * sizeof(float), err);
    if (!err->set) {
        take_adds(s, in, slice, attention, copies, g->taps.attention);
        take_adds(s, in, slice, ffn, copies, g->taps.ffn);
        take_lse(s, r, p, lse, g->taps.lse);
        take_hidden(s, in, slice, x, copies, g->hidden);
    }
    free(attention);
    free(ffn);
    free(lse);
    free(x);
    return err->set ? -1 : 0;
}

/* The largest relative distance of a row; NaN is infinitely far. */
static double distance(const double *x, const double *expected, int64_t rows, int64_t width)
{
    double worst = 0;
    for (int64_t i = 0; i < rows; i++) {
        double apart = 0, size = 0;
        for (int64_t j = i * width; j < (i + 1) * width; j++) {
            apart += (x[j] - expected[j]) * (x[j] - expected[j]);
            size += expected[j] * expected[j];
        }
        double d = sqrt(apart / size);
        worst = !(d <= worst) ? (isnan(d) ? INFINITY : d) : worst;
    }
    return worst;
}

static double largest_difference(const double *x, const double *expected, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(x[i] - expected[i]);
        worst = !(d <= worst) ? (isnan(d) ? INFINITY : d) : worst;
    }
    return worst;
}

static int judge(struct sample *s, const struct sample_errors *e, struct err *err)
{
    struct sample_errors *w = &s->worst;
    w->attention = fmax(w->attention, e->attention);
    w->ffn = fmax(w->ffn, e->ffn);
    w->hidden = fmax(w->hidden, e->hidden);
    w->lse = fmax(w->lse, e->lse);
    if (e->attention <= sample_errors_max.attention && e->ffn <= sample_errors_max.ffn &&
        e->hidden <= sample_errors_max.hidden && e->lse <= sample_errors_max.lse)
        return 0;
    return err_run(err,
                   "outputs differ from the reference: relative L2 %.3g (attention), %.3g (FFN), "
                   "%.3g (hidden rows), LSE by %.3g",
                   e->attention, e->ffn, e->hidden, e->lse);
}

/* What every rank's routers chose for these rows, [layers][n][topk]; NULL without experts. */
static int32_t *fetch_experts(const struct sample *s, const struct gpu_rank *r, struct err *err)
{
    size_t topk = (size_t)r->slice->model.moe.topk, layers = (size_t)r->slice->layers;
    if (r->slice->model.moe.experts == 0)
        return NULL;
    int32_t *all =
        fetch(r->scratch.taps.experts, layers * ORACLE_ROWS_MAX * topk * sizeof(int32_t), err);
    for (size_t layer = 1; all != NULL && layer < layers; layer++)
        memmove(all + layer * (size_t)s->n * topk, all + layer * ORACLE_ROWS_MAX * topk,
                (size_t)s->n * topk * sizeof *all);
    return all;
}

/* Every layer starts from the rows that the GPU gave it. What it ends with is then those and what
 * the oracle adds; the oracle's own rows after the last layer are not needed. */
static void expect_hidden(const struct gathered *given, struct gathered *expected, int64_t row,
                          int64_t adds)
{
    const struct oracle_taps *e = &expected->taps;
    for (int64_t i = 0; i < adds; i++)
        expected->hidden[row + i] = given->hidden[i] + e->attention[i] + e->ffn[i];
}

static struct sample_errors errors_of(const struct gathered *x, const struct gathered *e,
                                      const struct slice *slice, int n)
{
    int64_t rows = (int64_t)slice->layers * n, hidden = slice->model.hidden, first = n * hidden;
    return (struct sample_errors){
        .attention = distance(x->taps.attention, e->taps.attention, rows, hidden),
        .ffn = distance(x->taps.ffn, e->taps.ffn, rows, hidden),
        .hidden = distance(x->hidden + first, e->hidden + first, rows, hidden),
        .lse = largest_difference(x->taps.lse, e->taps.lse, rows * slice->model.heads),
    };
}

static int compare_with_oracle(struct sample *s, const struct gpu_rank *r, const struct gathered *g,
                               double *error, struct err *err)
{
    struct gathered expected = gathered_new(r->slice, s->n);
    int64_t row = (int64_t)s->n * r->slice->model.hidden, adds = r->slice->layers * row;
    int32_t *experts = fetch_experts(s, r, err);
    oracle_lead(s->oracle, g->hidden);
    int rc = err->set
                 ? -1
                 : oracle_step(s->oracle, s->row, s->n, experts, logit_tie, &expected.taps, err);
    if (rc == 0) {
        expect_hidden(g, &expected, row, adds);
        struct sample_errors now = errors_of(g, &expected, r->slice, s->n);
        *error = fmax(now.attention, fmax(now.ffn, now.hidden));
        rc = judge(s, &now, err);
    }
    free(experts);
    free(expected.all);
    return rc;
}

int sample_compare(struct sample *s, struct gpu_rank *r, const struct pass *p, double *error,
                   struct err *err)
{
    *error = 0;
    if (s->n == 0)
        return 0;
    struct gathered g = gathered_new(r->slice, s->n);
    int rc = take(s, r, p, &g, err);
    if (rc == 0)
        rc = comm_all_reduce(r->comm, g.all, g.n, err);
    if (rc == 0 && s->oracle != NULL)
        rc = compare_with_oracle(s, r, &g, error, err);
    free(g.all);
    return rc;
}
