/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/burst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

enum { STAY_ROUNDS = 4, FIT_ROUNDS = 3, WEIGHT_ROUNDS = 15, BESIDE_GUESS = 8, STARTS = 4 };

static const double start_tokens[STARTS] = {1 << 19, 3 << 18, 1 << 20, 3 << 19};
/* Errors below this count by their square: least absolute errors alone would be led by the few
 * bursts that they meet exactly. */
static const double small_error = 0.02;
static const double stay_min_s = 0.001; /* constants may be anything on the way to the best */

/* Prefill's part of what the constants multiply. */
static void prefill_terms(const struct burst *b, double start, double x[BURST_CONSTANTS])
{
    double first_frac = fmin(1, start / b->input_tokens);
    x[BURST_SPREAD] = b->spread;
    x[BURST_ATTN] = b->attn_s;
    x[BURST_START + b->layout] = b->rest_s * first_frac;
    x[BURST_SUSTAINED + b->layout] = b->rest_s * (1 - first_frac);
}

static double sum_of(const double constant[BURST_CONSTANTS], const double x[BURST_CONSTANTS])
{
    double s = 0;
    for (int i = 0; i < BURST_CONSTANTS; i++)
        s += constant[i] * x[i];
    return s;
}

double burst_beside(const struct burst *b, double prefill_s, double alone_s, double beside_s)
{
    int groups = (int)ceil_div_i64(b->batch, b->abreast);
    double apart_s = fmax(prefill_s, 0) / groups, beside = 1;
    for (int round = 0; round < STAY_ROUNDS; round++) {
        double stay_s = fmax(alone_s + fmax(beside_s, 0) * beside, stay_min_s);
        beside = b->batch - b->abreast * (groups - 1);
        for (int k = 1; k < groups && k * apart_s < stay_s; k++)
            beside += b->abreast * (1 - k * apart_s / stay_s);
    }
    return beside;
}

static double beside_of(const struct burst_model *m, const struct burst *b)
{
    double x[BURST_CONSTANTS] = {0};
    prefill_terms(b, m->start_tokens, x);
    return burst_beside(b, sum_of(m->constant, x), m->constant[BURST_DECODE],
                        m->constant[BURST_BESIDE]);
}

static void terms_of(const struct burst *b, double start, double beside, double x[BURST_CONSTANTS])
{
    memset(x, 0, BURST_CONSTANTS * sizeof *x);
    prefill_terms(b, start, x);
    x[BURST_DECODE] = 1;
    x[BURST_BESIDE] = beside;
}

double burst_predict_s(const struct burst_model *m, const struct burst *b)
{
    double x[BURST_CONSTANTS];
    terms_of(b, m->start_tokens, beside_of(m, b), x);
    return sum_of(m->constant, x);
}

/* Gauss-Jordan on normal equations, whose diagonal is positive. */
static void solve(double a[BURST_CONSTANTS][BURST_CONSTANTS + 1], double out[BURST_CONSTANTS])
{
    for (int i = 0; i < BURST_CONSTANTS; i++) {
        for (int j = BURST_CONSTANTS; j >= i; j--)
            a[i][j] /= a[i][i];
        for (int k = 0; k < BURST_CONSTANTS; k++)
            for (int j = BURST_CONSTANTS; k != i && j >= i; j--)
                a[k][j] -= a[k][i] * a[i][j];
    }
    for (int i = 0; i < BURST_CONSTANTS; i++)
        out[i] = a[i][BURST_CONSTANTS];
}

/* What a fit looks at. */
struct sample {
    const struct burst *b;
    int n, without_shape;
    double (*x)[BURST_CONSTANTS]; /* by burst */
};

static void solve_weighted(const struct sample *f, const double *weight,
                           double out[BURST_CONSTANTS])
{
    double a[BURST_CONSTANTS][BURST_CONSTANTS + 1] = {{0}};
    for (int k = 0; k < f->n; k++) {
        double w = weight[k] / (f->b[k].s * f->b[k].s);
        for (int i = 0; i < BURST_CONSTANTS; i++) {
            for (int j = 0; j < BURST_CONSTANTS; j++)
                a[i][j] += w * f->x[k][i] * f->x[k][j];
            a[i][BURST_CONSTANTS] += w * f->x[k][i] * f->b[k].s;
        }
    }
    solve(a, out);
}

/* Least squares again and again, each burst weighed by what its error was before. */
static void solve_absolute(const struct sample *f, double out[BURST_CONSTANTS])
{
    double *weight = xcalloc((size_t)f->n, sizeof *weight);
    for (int k = 0; k < f->n; k++)
        weight[k] = f->b[k].shape != f->without_shape;
    for (int round = 0; round < WEIGHT_ROUNDS; round++) {
        solve_weighted(f, weight, out);
        for (int k = 0; k < f->n; k++)
            if (weight[k] > 0)
                weight[k] = 1 / fmax(fabs(sum_of(out, f->x[k]) / f->b[k].s - 1), small_error);
    }
    free(weight);
}

/* With a start of so many tokens. How many decode at once follows from the constants, so both are
 * found in turn. */
static void fit_start(struct burst_model *m, const struct sample *f, double start)
{
    for (int round = 0; round < FIT_ROUNDS; round++) {
        for (int k = 0; k < f->n; k++) {
            double beside = round > 0 ? beside_of(m, &f->b[k]) : fmin(f->b[k].batch, BESIDE_GUESS);
            terms_of(&f->b[k], start, beside, f->x[k]);
        }
        m->start_tokens = start;
        solve_absolute(f, m->constant);
    }
}

static double total_error(const struct burst_model *m, const struct sample *f)
{
    double sum = 0;
    for (int k = 0; k < f->n; k++)
        if (f->b[k].shape != f->without_shape)
            sum += fabs(burst_predict_s(m, &f->b[k]) / f->b[k].s - 1);
    return sum;
}

void burst_fit(struct burst_model *m, const struct burst *b, int n, int without_shape)
{
    struct sample f = {b, n, without_shape, xcalloc((size_t)n, sizeof *f.x)};
    double least = INFINITY;
    for (int i = 0; i < STARTS; i++) {
        struct burst_model candidate;
        fit_start(&candidate, &f, start_tokens[i]);
        double error = total_error(&candidate, &f);
        if (error < least) {
            least = error;
            *m = candidate;
        }
    }
    free(f.x);
}
