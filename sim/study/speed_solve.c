/* SPDX-License-Identifier: Apache-2.0
 *
 * Least of: the squared relative errors over the noise, plus each parameter's squared distance from
 * the base over its prior. On logarithms, by NLopt's SLSQP with the exact gradient: times are
 * linear in the parameters, so there is one valley. The noise is what the fit itself leaves
 * unexplained. Parameters that stay uncertain go back to the base one by one, the least certain
 * first.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <nlopt.h>

#include "sim/study/speed_internal.h"

enum { NOISE_ROUNDS = 20, EVALS_MAX = 1000, K = SPEED_PARTS };

static const double prior_log[K] = {
    /* of one standard deviation: a factor of two, of a step's fixed time of ten */
    [SPEED_PROJ] = 0.6931, [SPEED_ATTN_PREFILL] = 0.6931, [SPEED_ATTN_DECODE] = 0.6931,
    [SPEED_FFN] = 0.6931,  [SPEED_EXCHANGE] = 0.6931,     [SPEED_LAUNCH] = 2.303,
};

/* No measurement is better; and where a model explains nothing, the table still has its say. */
static const double noise_start = 0.05, noise_min = 0.002, noise_max = 0.25;
static const double noise_settled = 1e-3; /* relative */
static const double sigma_max = 0.25;     /* relative; above, it is not known */
static const double as_good = 4;          /* of the sum: two standard deviations of one parameter */

/* The parameters being fitted. */
struct free_params {
    int n, at[K];
};

static struct free_params free_of(const struct speed_problem *p)
{
    struct free_params f = {0};
    for (int k = 0; k < K; k++)
        if (p->param[k].state == FIT_FITTED)
            f.at[f.n++] = k;
    return f;
}

static bool counts(const struct speed_problem *p, int row)
{
    return p->speeds->row[row].shape != p->without_shape;
}

double speed_predicted_s(const struct speed_split *unit, const struct fit_param *param)
{
    double s = unit->rest_s;
    for (int k = 0; k < K; k++)
        s += param[k].value * unit->part_s[k];
    return s;
}

static double error_of(const struct speed_problem *p, int row)
{
    return speed_predicted_s(&p->unit[row], p->param) / p->speeds->row[row].s - 1;
}

/* How a row's error changes with a parameter's logarithm. */
static double slope_of(const struct speed_problem *p, int row, int k)
{
    return p->param[k].value * p->unit[row].part_s[k] / p->speeds->row[row].s;
}

/* Distance from the base in prior's deviations. One kept has none, whatever the bounds say. */
static double distance(const struct speed_problem *p, int k)
{
    const struct fit_param *q = &p->param[k];
    return q->state == FIT_FITTED ? log(q->value / fmax(q->base, q->low)) / prior_log[k] : 0;
}

static double sum_of_squares(const struct speed_problem *p)
{
    double sum = 0;
    for (int i = 0; i < p->speeds->n; i++)
        if (counts(p, i))
            sum += error_of(p, i) * error_of(p, i) / (p->noise * p->noise);
    for (int k = 0; k < K; k++)
        sum += distance(p, k) * distance(p, k);
    return sum;
}

static void add_gradient(const struct speed_problem *p, const struct free_params *f, double *out)
{
    for (int j = 0; j < f->n; j++)
        out[j] = 2 * distance(p, f->at[j]) / prior_log[f->at[j]];
    for (int i = 0; i < p->speeds->n; i++)
        for (int j = 0; j < f->n && counts(p, i); j++)
            out[j] += 2 * error_of(p, i) * slope_of(p, i, f->at[j]) / (p->noise * p->noise);
}

static void take_x(struct speed_problem *p, const struct free_params *f, const double *x)
{
    for (int j = 0; j < f->n; j++) {
        struct fit_param *q = &p->param[f->at[j]];
        q->value = fmin(fmax(exp(x[j]), q->low), q->high);
    }
}

static double objective(unsigned n, const double *x, double *gradient, void *problem)
{
    struct speed_problem *p = problem;
    struct free_params f = free_of(p);
    assert((int)n == f.n);
    take_x(p, &f, x);
    if (gradient != NULL)
        add_gradient(p, &f, gradient);
    return sum_of_squares(p);
}

/* Returns the sum reached. */
static double minimise(struct speed_problem *p)
{
    struct free_params f = free_of(p);
    double low[K], high[K], x[K], least;
    if (f.n == 0)
        return sum_of_squares(p);
    for (int j = 0; j < f.n; j++) {
        const struct fit_param *q = &p->param[f.at[j]];
        low[j] = log(q->low);
        high[j] = log(q->high);
        x[j] = fmin(fmax(log(q->value), low[j]), high[j]);
    }
    nlopt_opt opt = nlopt_create(NLOPT_LD_SLSQP, (unsigned)f.n);
    nlopt_set_min_objective(opt, objective, p);
    nlopt_set_lower_bounds(opt, low);
    nlopt_set_upper_bounds(opt, high);
    nlopt_set_ftol_rel(opt, 1e-12);
    nlopt_set_xtol_rel(opt, 1e-9);
    nlopt_set_maxeval(opt, EVALS_MAX);
    nlopt_result result = nlopt_optimize(opt, x, &least);
    assert(result != NLOPT_INVALID_ARGS && result != NLOPT_OUT_OF_MEMORY);
    nlopt_destroy(opt);
    take_x(p, &f, x);
    return sum_of_squares(p);
}

static double unexplained(const struct speed_problem *p)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < p->speeds->n; i++)
        if (counts(p, i)) {
            sum += error_of(p, i) * error_of(p, i);
            n++;
        }
    int over = n - free_of(p).n;
    return fmin(fmax(sqrt(sum / (over > 1 ? over : 1)), noise_min), noise_max);
}

/* What is left is the noise, and the noise says what the prior is worth: until both agree. */
static void minimise_with_noise(struct speed_problem *p)
{
    for (int round = 0; round < NOISE_ROUNDS; round++) {
        double before = p->noise;
        minimise(p);
        p->noise = unexplained(p);
        if (fabs(p->noise / before - 1) < noise_settled)
            return;
    }
}

/* Cholesky factor, in place, of the sum's curvature, which the prior makes positive. */
static void factor(double a[K][K], int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            for (int k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(a[i][i]) : a[i][j] / a[j][j];
        }
}

/* Element [i][i] of the inverse of what was factored: |L^-1 e_i|^2. */
static double inverse_diagonal(double l[K][K], int n, int i)
{
    double y[K] = {0}, sum = 0;
    for (int r = i; r < n; r++) {
        y[r] = r == i;
        for (int k = i; k < r; k++)
            y[r] -= l[r][k] * y[k];
        y[r] /= l[r][r];
        sum += y[r] * y[r];
    }
    return sum;
}

/* Relative deviations of the free parameters, the prior's knowledge included. */
static void measure_sigmas(const struct speed_problem *p, const struct free_params *f,
                           double sigma[K])
{
    double a[K][K] = {{0}};
    for (int i = 0; i < f->n; i++)
        a[i][i] = 1 / (prior_log[f->at[i]] * prior_log[f->at[i]]);
    for (int row = 0; row < p->speeds->n; row++)
        for (int i = 0; i < f->n && counts(p, row); i++)
            for (int j = 0; j <= i; j++)
                a[i][j] +=
                    slope_of(p, row, f->at[i]) * slope_of(p, row, f->at[j]) / (p->noise * p->noise);
    factor(a, f->n);
    for (int i = 0; i < f->n; i++)
        sigma[i] = sqrt(inverse_diagonal(a, f->n, i));
}

/* The least certain parameter, of those not tried, that the rows leave open, or -1. */
static int find_open(const struct speed_problem *p, const bool *tried)
{
    struct free_params f = free_of(p);
    double sigma[K], most = sigma_max;
    int open = -1;
    measure_sigmas(p, &f, sigma);
    for (int i = 0; i < f.n; i++)
        if (sigma[i] > most && !tried[f.at[i]]) {
            most = sigma[i];
            open = f.at[i];
        }
    return open;
}

/* Keep the base's value, if the others can live with it. */
static void settle(struct speed_problem *p, int k)
{
    struct fit_param before[K];
    double sum = minimise(p), noise = p->noise;
    memcpy(before, p->param, sizeof before);
    p->param[k].state = FIT_KEPT;
    p->param[k].value = p->param[k].base;
    if (minimise(p) <= sum + as_good) {
        minimise_with_noise(p);
        return;
    }
    memcpy(p->param, before, sizeof before);
    p->noise = noise;
}

void speed_solve(struct speed_problem *p)
{
    bool tried[K] = {false};
    double sigma[K];
    p->noise = noise_start;
    minimise_with_noise(p);
    for (int open; (open = find_open(p, tried)) >= 0;) {
        tried[open] = true;
        settle(p, open);
    }
    struct free_params f = free_of(p);
    measure_sigmas(p, &f, sigma);
    for (int i = 0; i < f.n; i++)
        p->param[f.at[i]].sigma = sigma[i] * p->param[f.at[i]].value;
}
