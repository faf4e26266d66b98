/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of the oracle takes in real shapes, as a Markdown table: seconds and GPU memory of
 * first steps, which make the history, and of those that follow. The LSE of one head of layer 0 is
 * worked out anew on the CPU: the program fails when it differs.
 */
#include "replay/cuda/oracle.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "replay/values.h"
#include "sim/base/mem.h"

enum { LAYERS = 4, REQ = 17 };

static double seconds_now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double gb_in_use(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return (double)(total_bytes - free_bytes) * 1e-9;
}

static double *numbers(int64_t n)
{
    return xcalloc((size_t)n, sizeof(double));
}

/* Rows [first, first + rows) of a matrix of layer 0, times x. */
static double *applied(const struct slice *s, enum matrix m, int64_t first, int rows,
                       const double *x)
{
    int columns = slice_columns(s, 0, m);
    double *y = numbers(rows);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            y[i] += slice_weight(s, 0, m, first + i, j) * x[j];
    return y;
}

static double *first_row_normed(const struct slice *s, int64_t position)
{
    int hidden = s->model.hidden;
    double *x = numbers(hidden), squares = 0;
    for (int j = 0; j < hidden; j++) {
        x[j] = value_at(s->seed, VALUE_HIDDEN, REQ, position, 0, j);
        squares += x[j] * x[j];
    }
    for (int j = 0; j < hidden; j++)
        x[j] /= sqrt(squares / hidden + 1e-6);
    return x;
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

/* What a head's query is multiplied with: of the KV row, numbers [first, first + n). */
struct head {
    double *query, *own_key;
    int n, first;
};

static struct head mla_head(const struct slice *s, int head, const double *x, int64_t position)
{
    const struct model *m = &s->model;
    int width = m->nope_dim + m->rope_dim, stored = m->kv_lora + m->rope_dim;
    double *q_a = applied(s, MAT_Q_A, 0, m->q_lora, x);
    double *q = applied(s, MAT_Q_B, (int64_t)head * width, width, q_a);
    struct head h = {numbers(stored), applied(s, MAT_KV_A, 0, stored, x), stored, 0};
    rotate(q + m->nope_dim, m->rope_dim, position);
    rotate(h.own_key + m->kv_lora, m->rope_dim, position);
    for (int d = 0; d < m->nope_dim; d++)
        for (int j = 0; j < m->kv_lora; j++)
            h.query[j] += q[d] * slice_weight(s, 0, MAT_K_B, (int64_t)head * m->nope_dim + d, j);
    for (int j = 0; j < m->rope_dim; j++)
        h.query[m->kv_lora + j] = q[m->nope_dim + j];
    free(q_a);
    free(q);
    return h;
}

static struct head gqa_head(const struct slice *s, int head, const double *x, int64_t position)
{
    const struct model *m = &s->model;
    int width = m->nope_dim, kv_head = head / (m->heads / m->kv_heads);
    struct head h = {applied(s, MAT_Q_B, (int64_t)head * width, width, x),
                     applied(s, MAT_K_B, (int64_t)kv_head * width, width, x), width,
                     2 * kv_head * width};
    rotate(h.query, width, position);
    rotate(h.own_key, width, position);
    return h;
}

/* Of layer 0, the first row of the request, all before it history. */
static double lse_of(const struct slice *s, int head, int64_t position)
{
    const struct model *m = &s->model;
    double *x = first_row_normed(s, position), max = -INFINITY, sum = 0;
    struct head h =
        m->attention == ATTN_MLA ? mla_head(s, head, x, position) : gqa_head(s, head, x, position);
    double *score = numbers(position + 1);
    for (int64_t t = 0; t <= position; t++) {
        for (int j = 0; j < h.n; j++)
            score[t] += h.query[j] *
                        (t == position ? h.own_key[j]
                                       : value_at(s->seed, VALUE_HISTORY, REQ, t, 0, h.first + j));
        score[t] /= sqrt(m->nope_dim + m->rope_dim);
        max = fmax(max, score[t]);
    }
    for (int64_t t = 0; t <= position; t++)
        sum += exp(score[t] - max);
    free(x);
    free(h.query);
    free(h.own_key);
    free(score);
    return max + log(sum);
}

/* `requests` of so many tokens, rows each: the first step's rows end at the context's. */
struct shape {
    const char *model;
    int requests, rows;
    int64_t tokens;
};

static struct oracle_taps taps_new(const struct slice *s, int64_t n)
{
    int64_t rows = n * s->model.hidden;
    return (struct oracle_taps){numbers(s->layers * rows), numbers(s->layers * rows),
                                numbers(s->layers * n * s->model.heads), numbers(rows)};
}

static void taps_free(const struct oracle_taps *t)
{
    free(t->attention);
    free(t->ffn);
    free(t->lse);
    free(t->hidden);
}

/* Seconds of the step whose contexts end `later` tokens on; exits on failure. */
static double timed_step(struct oracle *o, const struct shape *shape, int64_t later,
                         const struct oracle_taps *taps)
{
    struct reference_row row[ORACLE_ROWS_MAX];
    struct err err = ERR_NONE;
    int n = 0;
    for (int r = 0; r < shape->requests; r++)
        for (int i = 0; i < shape->rows; i++)
            row[n++] = (struct reference_row){REQ + r, shape->tokens - shape->rows + i + later};
    double start = seconds_now();
    if (oracle_step(o, row, n, NULL, 0, taps, &err) < 0)
        exit(err_report(&err, "bench_oracle"));
    return seconds_now() - start;
}

static bool bench(const struct shape *shape)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = LAYERS, .seed = 20261130};
    if (model_load(&s.model, shape->model, &err) < 0)
        exit(err_report(&err, "bench_oracle"));
    struct oracle_taps taps = taps_new(&s, shape->requests * shape->rows);
    double before_gb = gb_in_use();
    struct oracle *o = oracle_new(&s, &err);
    if (!o)
        exit(err_report(&err, "bench_oracle"));
    double first = timed_step(o, shape, 0, &taps);
    int head = s.model.heads - 1;
    double got = taps.lse[head], want = lse_of(&s, head, shape->tokens - shape->rows);
    bool ok = fabs(got - want) <= 1e-9 * fabs(want);
    double next = timed_step(o, shape, shape->rows, &taps);
    printf("| %s | %d | %d | %ld | %.3f | %.3f | %.1f | %.1e |%s\n", shape->model, shape->requests,
           shape->rows, (long)shape->tokens, first, next, gb_in_use() - before_gb,
           fabs(got - want) / fabs(want), ok ? "" : " FAILED");
    fflush(stdout);
    taps_free(&taps);
    oracle_free(o);
    return ok;
}

int main(void)
{
    static const struct shape shapes[] = {
        {"deepseek-r1", 2, 1, 131072},  {"llama-3.1-405b", 2, 1, 131072},
        {"deepseek-r1", 4, 1, 131072},  {"llama-3.1-405b", 4, 1, 131072},
        {"deepseek-r1", 4, 16, 131072}, {"llama-3.1-405b", 4, 16, 131072},
        {"deepseek-r1", 1, 64, 1024},   {"llama-3.1-405b", 1, 64, 1024},
    };
    bool ok = true;
    cudaFree(NULL); /* the context is not the oracle's */
    printf(
        "%d layers\n\n| model | requests | rows each | context | first step s | next step s | GB | "
        "LSE off by |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        LAYERS);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        ok = bench(&shapes[i]) && ok;
    return ok ? 0 : 1;
}
