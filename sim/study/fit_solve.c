/* SPDX-License-Identifier: Apache-2.0
 *
 * Least squares by NLopt's Nelder-Mead, which needs no derivatives: rooflines have kinks.
 * Parameters that the data leave open go back to the base one by one, the least certain first.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <nlopt.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/study/fit_internal.h"

enum {
    STARTS = 8,
    START_SEED = 8,
    ROUNDS_MAX = 6,
    EVALS_PER_PARAM = 300,
    BISECTIONS = 12,
    K_MAX = FIT_STAGE_PARAMS_MAX
};

static const double start_spread = 1.2; /* of a start's efficiencies, logarithm */

static const double step_log = 0.15, step_us = 2; /* the optimiser's first */
static const double difference = 1e-3;            /* of a derivative, log or us */
static const double blind_error = 0.002;          /* what 10% more must change somewhere */
static const double sigma_max = 0.25;             /* relative; above, a value is not known */
static const double harmless_error = 0.02; /* a fixed time is known when no error hides more */
static const double noise_min = 0.002;     /* no repeated measurement is better */

/* Sums of squares up to this are no worse: two standard deviations of one parameter, or 2%. */
static double as_good_as(const struct fit_problem *p, double sum)
{
    int over = p->n - p->n_params;
    return sum * fmax(1.02, 1 + 4.0 / (over > 1 ? over : 1)) + 1e-8 * p->n;
}

/* The parameters being fitted, as the optimiser sees them: logarithms where values are positive. */
struct free_params {
    int n, at[K_MAX];
};

static struct free_params free_of(const struct fit_problem *p)
{
    struct free_params f = {0};
    for (int i = 0; i < p->n_params; i++)
        if (p->param[i].state == FIT_FITTED)
            f.at[f.n++] = i;
    return f;
}

static bool is_log(const struct fit_param *q)
{
    return q->low > 0;
}

static double x_of(const struct fit_param *q, double value)
{
    return is_log(q) ? log(value) : value;
}

static double value_of(const struct fit_param *q, double x)
{
    double value = is_log(q) ? exp(x) : x;
    return fmin(fmax(value, q->low), q->high);
}

static double error_of(const struct fit_problem *p, int i)
{
    return fit_error(p->trial, p->stage, p->step[i]);
}

static double sum_of_squares(const struct fit_problem *p)
{
    double sum = 0;
    trial_set(p->trial, p->start, p->param, p->n_params);
    for (int i = 0; i < p->n; i++) {
        double e = error_of(p, i);
        sum += e * e;
    }
    return sum;
}

static void take_x(struct fit_problem *p, const struct free_params *f, const double *x)
{
    for (int i = 0; i < f->n; i++) {
        struct fit_param *q = &p->param[f->at[i]];
        q->value = value_of(q, x[i]);
    }
}

static double objective(unsigned n, const double *x, double *gradient, void *problem)
{
    struct fit_problem *p = problem;
    struct free_params f = free_of(p);
    assert((int)n == f.n && gradient == NULL);
    take_x(p, &f, x);
    return sum_of_squares(p);
}

static void descend(struct fit_problem *p, const struct free_params *f, double *x)
{
    double low[K_MAX], high[K_MAX], step[K_MAX], least;
    nlopt_opt opt = nlopt_create(NLOPT_LN_NELDERMEAD, (unsigned)f->n);
    for (int i = 0; i < f->n; i++) {
        const struct fit_param *q = &p->param[f->at[i]];
        low[i] = x_of(q, q->low);
        high[i] = x_of(q, q->high);
        step[i] = is_log(q) ? step_log : step_us;
    }
    nlopt_set_min_objective(opt, objective, p);
    nlopt_set_lower_bounds(opt, low);
    nlopt_set_upper_bounds(opt, high);
    nlopt_set_initial_step(opt, step);
    nlopt_set_ftol_rel(opt, 1e-7);
    nlopt_set_maxeval(opt, EVALS_PER_PARAM * f->n);
    nlopt_result result = nlopt_optimize(opt, x, &least);
    assert(result != NLOPT_INVALID_ARGS && result != NLOPT_OUT_OF_MEMORY);
    nlopt_destroy(opt);
}

/* From where the parameters are, again while it helps. Returns the sum reached. */
static double minimise(struct fit_problem *p, int rounds_max)
{
    struct free_params f = free_of(p);
    double sum = sum_of_squares(p), before = INFINITY, x[K_MAX];
    for (int round = 0; round < rounds_max && f.n > 0 && sum < before * (1 - 1e-4); round++) {
        before = sum;
        for (int i = 0; i < f.n; i++)
            x[i] = x_of(&p->param[f.at[i]], p->param[f.at[i]].value);
        descend(p, &f, x);
        take_x(p, &f, x);
        sum = sum_of_squares(p);
    }
    return sum;
}

/* Efficiencies anew, anywhere within a factor of the base's. False when there are none. */
static bool draw_efficiencies(struct fit_problem *p, struct rng *r)
{
    bool any = false;
    for (int i = 0; i < p->n_params; i++) {
        struct fit_param *q = &p->param[i];
        if (q->target != FIT_FLOP || q->state != FIT_FITTED)
            continue;
        q->value = value_of(q, x_of(q, q->base) + start_spread * (2 * rng_f64(r) - 1));
        any = true;
    }
    return any;
}

/* Rooflines make valleys of their own: start in several places too, and go down the best of them.
 * Where the data cannot tell two apart, the one that the base leads to stays. */
static void minimise_from_several(struct fit_problem *p)
{
    struct fit_param from_base[K_MAX], best[K_MAX];
    size_t bytes = (size_t)p->n_params * sizeof *best;
    double base_sum = minimise(p, ROUNDS_MAX), least = INFINITY;
    struct rng r;
    rng_stream(&r, START_SEED, fit_stage_names[p->stage]);
    memcpy(from_base, p->param, bytes);
    memcpy(best, p->param, bytes);
    for (int start = 0; start < STARTS && draw_efficiencies(p, &r); start++) {
        double sum = minimise(p, 1);
        if (sum < least) {
            least = sum;
            memcpy(best, p->param, bytes);
        }
    }
    memcpy(p->param, best, bytes);
    if (base_sum <= as_good_as(p, minimise(p, ROUNDS_MAX)))
        memcpy(p->param, from_base, bytes);
}

/* How every error changes with one parameter, within its limits. */
static void differentiate(struct fit_problem *p, struct fit_param *q, double *column)
{
    double value = q->value, at = x_of(q, value), x[2];
    for (int side = 0; side < 2; side++) {
        q->value = value_of(q, at + (side ? difference : -difference));
        x[side] = x_of(q, q->value);
        trial_set(p->trial, p->start, p->param, p->n_params);
        for (int i = 0; i < p->n; i++)
            column[i] = side ? error_of(p, i) - column[i] : error_of(p, i);
    }
    for (int i = 0; i < p->n; i++)
        column[i] /= x[1] - x[0];
    q->value = value;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double largest(const double *a, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    return most;
}

/* Cholesky factor of the k x k correlations in place; false for a column that the ones before it
 * (or nothing) already explain, which is then left out. */
static void factor(double a[K_MAX][K_MAX], int k, bool *there)
{
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i && there[i]; j++) {
            double rest = a[i][j] - dot(a[i], a[j], j);
            if (i == j)
                there[i] = rest > 1e-10;
            a[i][j] = i == j ? sqrt(fmax(rest, 0)) : there[j] ? rest / a[j][j] : 0;
        }
        for (int j = 0; j < k && !there[i]; j++)
            a[i][j] = 0;
    }
}

/* Element [i][i] of the inverse of what was factored: |L^-1 e_i|^2. */
static double inverse_diagonal(double l[K_MAX][K_MAX], int k, const bool *there, int i)
{
    double y[K_MAX] = {0}, sum = 0;
    for (int r = i; r < k; r++) {
        if (!there[r])
            continue;
        y[r] = ((r == i) - dot(l[r], y, r)) / l[r][r];
        sum += y[r] * y[r];
    }
    return sum;
}

/* Of the free parameters at the optimum, in the optimiser's coordinates. */
struct certainty {
    double sigma[K_MAX];  /* infinite when nothing is known */
    double effect[K_MAX]; /* largest change of any error, per unit */
    bool is_blind[K_MAX]; /* no error changes to speak of */
};

/* Their derivatives' correlations into `a`, lengths into `norm`. */
static void correlate(struct fit_problem *p, const struct free_params *f, struct certainty *c,
                      double a[K_MAX][K_MAX], double *norm)
{
    double *column[K_MAX];
    for (int i = 0; i < f->n; i++) {
        struct fit_param *q = &p->param[f->at[i]];
        column[i] = xcalloc((size_t)p->n, sizeof *column[i]);
        differentiate(p, q, column[i]);
        norm[i] = sqrt(dot(column[i], column[i], p->n));
        c->effect[i] = largest(column[i], p->n);
        c->is_blind[i] = norm[i] <= 0 || (is_log(q) && 0.1 * c->effect[i] <= blind_error);
        for (int j = 0; j <= i; j++)
            if (!c->is_blind[i] && !c->is_blind[j])
                a[i][j] = dot(column[i], column[j], p->n) / (norm[i] * norm[j]);
    }
    for (int i = 0; i < f->n; i++)
        free(column[i]);
}

static struct certainty measure_certainty(struct fit_problem *p, const struct free_params *f)
{
    struct certainty c = {{0}, {0}, {0}};
    double a[K_MAX][K_MAX] = {{0}}, norm[K_MAX] = {0};
    bool there[K_MAX] = {false};
    int over = p->n > f->n ? p->n - f->n : 1;
    double noise = fmax(sqrt(sum_of_squares(p) / over), noise_min);
    correlate(p, f, &c, a, norm);
    for (int i = 0; i < f->n; i++)
        there[i] = !c.is_blind[i];
    factor(a, f->n, there);
    for (int i = 0; i < f->n; i++)
        c.sigma[i] =
            there[i] ? noise * sqrt(inverse_diagonal(a, f->n, there, i)) / norm[i] : INFINITY;
    return c;
}

/* The least certain parameter, of those not tried, whose value the data leave open, or -1. */
static int find_open(struct fit_problem *p, const bool *tried, bool *is_blind)
{
    struct free_params f = free_of(p);
    struct certainty c = measure_certainty(p, &f);
    double most = 0;
    int open = -1;
    for (int i = 0; i < f.n; i++) {
        const struct fit_param *q = &p->param[f.at[i]];
        double relative = is_log(q) ? c.sigma[i] : c.sigma[i] / fmax(q->value, 1e-9);
        bool known =
            relative <= sigma_max || (!is_log(q) && c.sigma[i] * c.effect[i] <= harmless_error);
        if (!known && !tried[f.at[i]] && relative > most) {
            most = relative;
            open = f.at[i];
            *is_blind = c.is_blind[i];
        }
    }
    return open;
}

/* From the fitted value towards the base as far as it does no harm. */
static void retreat(struct fit_problem *p, struct fit_param *q, double harmless_sum)
{
    double good = x_of(q, q->value), bad = x_of(q, fmin(fmax(q->base, q->low), q->high));
    for (int i = 0; i < BISECTIONS; i++) {
        q->value = value_of(q, (good + bad) / 2);
        if (sum_of_squares(p) <= harmless_sum)
            good = x_of(q, q->value);
        else
            bad = x_of(q, q->value);
    }
    q->value = value_of(q, good);
}

/* Keep the base's value of a parameter, if the others can live with it. If they cannot, though
 * nothing changes where it is, only a bound of it is known. */
static void settle(struct fit_problem *p, struct fit_param *q, bool is_blind)
{
    struct fit_param before[K_MAX];
    double limit = as_good_as(p, sum_of_squares(p));
    memcpy(before, p->param, (size_t)p->n_params * sizeof *before);
    q->state = FIT_KEPT;
    q->value = q->base;
    if (sum_of_squares(p) <= limit || minimise(p, ROUNDS_MAX) <= limit)
        return;
    memcpy(p->param, before, (size_t)p->n_params * sizeof *before);
    if (is_blind) {
        q->state = FIT_BOUNDED;
        retreat(p, q, limit);
    }
}

static double round_digits(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

static void set_sigmas(struct fit_problem *p)
{
    struct free_params f = free_of(p);
    struct certainty c = measure_certainty(p, &f);
    for (int i = 0; i < f.n; i++) {
        struct fit_param *q = &p->param[f.at[i]];
        q->sigma = is_log(q) ? q->value * c.sigma[i] : c.sigma[i];
    }
}

void fit_solve(struct fit_problem *p)
{
    minimise_from_several(p);
    bool tried[K_MAX] = {false}, is_blind = false;
    for (int open; (open = find_open(p, tried, &is_blind)) >= 0;) {
        tried[open] = true;
        settle(p, &p->param[open], is_blind);
    }
    set_sigmas(p);
    for (int i = 0; i < p->n_params; i++)
        if (p->param[i].state == FIT_FITTED || p->param[i].state == FIT_BOUNDED)
            p->param[i].value = round_digits(p->param[i].value);
    trial_set(p->trial, p->start, p->param, p->n_params);
}
