/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables 4, 5 and 6: a burst of B prompts through a prefill pool in the layout, then a decode pool
 * that all layouts share. Batch time = decode + B x request + slowdown of the layout x its prefill
 * by the cost model; the six constants of a platform by least squares of the relative error. What
 * is shown of a shape was predicted without it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/platform.h"
#include "sim/reproduce/rows.h"
#include "sim/study/prefill.h"

enum { DECODE, REQUEST, SLOWDOWN, CONSTANTS = SLOWDOWN + PLATFORM_LAYOUTS };
enum { OUTPUT_TOKENS = 1024, FIRST_LAYOUT = 3, NO_SHAPE = -1 };

static const double mape_goal = 0.05, regret_goal = 0.015;

/* A cell of the table. */
struct measurement {
    int row, shape, layout; /* equal shapes have equal numbers */
    double tokens, s;       /* of the batch, input and output; its time */
    double x[CONSTANTS];    /* what the constants multiply */
    double predicted_s;     /* by a fit without its shape */
};

struct study {
    struct platform on;
    struct paper table;
    struct measurement *m;
    int n;
};

static int shape_of(const struct paper *p, int row)
{
    int first = 0;
    while (paper_number(p, first, 1) != paper_number(p, row, 1) ||
           paper_number(p, first, 2) != paper_number(p, row, 2))
        first++;
    return first;
}

static void add_measurement(struct study *s, int row, int layout)
{
    int64_t input = (int64_t)paper_number(&s->table, row, 1);
    int batch = (int)paper_number(&s->table, row, 2);
    struct measurement *m = &s->m[s->n++];
    m->row = row;
    m->shape = shape_of(&s->table, row);
    m->layout = layout;
    m->tokens = (double)batch * (double)(input + OUTPUT_TOKENS);
    m->s = m->tokens / (1000 * paper_number(&s->table, row, FIRST_LAYOUT + layout));
    m->x[DECODE] = 1;
    m->x[REQUEST] = batch;
    m->x[SLOWDOWN + layout] = prefill_s(s->on.cost, layout, batch, input);
}

static int study_load(struct study *s, int platform, struct err *err)
{
    *s = (struct study){0};
    if (platform_load(&s->on, platform, err) < 0)
        return -1;
    if (paper_load(&s->table, s->on.throughput_table, "sweep|input_len,batch,tp,cp,dp,dop", err) <
        0) {
        platform_release(&s->on);
        return -1;
    }
    s->m = xcalloc((size_t)s->table.rows * PLATFORM_LAYOUTS, sizeof *s->m);
    for (int row = 0; row < s->table.rows; row++)
        for (int l = 0; l < PLATFORM_LAYOUTS; l++)
            add_measurement(s, row, l);
    return 0;
}

static void study_release(struct study *s)
{
    free(s->m);
    paper_release(&s->table);
    platform_release(&s->on);
}

/* Gauss-Jordan on normal equations, whose diagonal is positive. */
static void solve(double a[CONSTANTS][CONSTANTS + 1], double out[CONSTANTS])
{
    for (int i = 0; i < CONSTANTS; i++) {
        for (int j = CONSTANTS; j >= i; j--)
            a[i][j] /= a[i][i];
        for (int k = 0; k < CONSTANTS; k++)
            for (int j = CONSTANTS; k != i && j >= i; j--)
                a[k][j] -= a[k][i] * a[i][j];
    }
    for (int i = 0; i < CONSTANTS; i++)
        out[i] = a[i][CONSTANTS];
}

static void fit(const struct study *s, int without_shape, double out[CONSTANTS])
{
    double a[CONSTANTS][CONSTANTS + 1] = {{0}};
    for (const struct measurement *m = s->m; m < s->m + s->n; m++) {
        if (m->shape == without_shape)
            continue;
        for (int i = 0; i < CONSTANTS; i++) {
            for (int j = 0; j < CONSTANTS; j++)
                a[i][j] += m->x[i] * m->x[j] / (m->s * m->s);
            a[i][CONSTANTS] += m->x[i] / m->s;
        }
    }
    solve(a, out);
}

static void predict(struct study *s)
{
    for (struct measurement *m = s->m; m < s->m + s->n; m++) {
        double constant[CONSTANTS];
        fit(s, m->shape, constant);
        for (int i = 0; i < CONSTANTS; i++)
            m->predicted_s += constant[i] * m->x[i];
    }
}

/* Error of throughput. */
static double error_of(const struct measurement *m)
{
    return m->s / m->predicted_s - 1;
}

/* Mean absolute error of those in a layout (-1: any) and a sweep (NULL: any). */
static double mape(const struct study *s, int layout, const char *sweep)
{
    double sum = 0, n = 0;
    for (const struct measurement *m = s->m; m < s->m + s->n; m++) {
        const char *own = paper_text(&s->table, m->row, 0);
        if ((layout >= 0 && m->layout != layout) || (sweep != NULL && strcmp(sweep, own) != 0))
            continue;
        sum += fabs(error_of(m));
        n++;
    }
    return sum / n;
}

/* What is lost, in the mean over positions, by taking the layout that is predicted fastest. */
static double mean_regret(const struct study *s)
{
    double sum = 0;
    for (int row = 0; row < s->table.rows; row++) {
        const struct measurement *m = &s->m[(size_t)row * PLATFORM_LAYOUTS], *best = m, *chosen = m;
        for (int l = 1; l < PLATFORM_LAYOUTS; l++) {
            best = m[l].s < best->s ? &m[l] : best;
            chosen = m[l].predicted_s < chosen->predicted_s ? &m[l] : chosen;
        }
        sum += chosen->s / best->s - 1;
    }
    return sum / s->table.rows;
}

/* Mean difference of two measurements of one shape and layout. */
static double repeat_difference(const struct study *s)
{
    double sum = 0, n = 0;
    for (const struct measurement *m = s->m; m < s->m + s->n; m++) {
        const struct measurement *first = &s->m[m->shape * PLATFORM_LAYOUTS + m->layout];
        if (first == m)
            continue;
        sum += fabs(m->s - first->s) / fmin(m->s, first->s);
        n++;
    }
    return sum / n;
}

static void show_score(struct reproduction *r, const struct study *s)
{
    const char *table = s->on.throughput_table, *sweep = "";
    double all = mape(s, -1, NULL), regret = mean_regret(s), repeats = repeat_difference(s);
    rows_figure(r, all, mape_goal, all <= mape_goal, "%s.mape", table);
    rows_figure(r, regret, regret_goal, regret <= regret_goal, "%s.regret", table);
    for (int l = 0; l < PLATFORM_LAYOUTS; l++)
        rows_figure(r, mape(s, l, NULL), NAN, true, "%s.mape.%s", table, s->on.layout[l].name);
    for (int row = 0; row < s->table.rows; row++)
        if (strcmp(sweep, paper_text(&s->table, row, 0)) != 0) {
            sweep = paper_text(&s->table, row, 0);
            rows_figure(r, mape(s, -1, sweep), NAN, true, "%s.mape.%s", table, sweep);
        }
    rows_figure(r, repeats, NAN, true, "%s.repeats_differ_by", table);
    rows_figure(r, repeats / 2, NAN, true, "%s.mape_floor", table);
}

static void show_constants(struct reproduction *r, const struct study *s)
{
    const char *table = s->on.throughput_table;
    double constant[CONSTANTS];
    fit(s, NO_SHAPE, constant);
    rows_figure(r, constant[DECODE], NAN, true, "%s.fitted.decode_s", table);
    rows_figure(r, constant[REQUEST], NAN, true, "%s.fitted.request_s", table);
    for (int l = 0; l < PLATFORM_LAYOUTS; l++)
        rows_figure(r, constant[SLOWDOWN + l], NAN, true, "%s.fitted.%s_prefill_slowdown", table,
                    s->on.layout[l].name);
}

static void show_cells(struct reproduction *r, const struct study *s)
{
    for (const struct measurement *m = s->m; m < s->m + s->n; m++)
        rows_predicted(r, paper_text(&s->table, m->row, FIRST_LAYOUT + m->layout),
                       m->tokens / m->predicted_s / 1000, NAN, "%s.%s.%sx%s.%s.ktok_s",
                       s->on.throughput_table, paper_text(&s->table, m->row, 0),
                       paper_text(&s->table, m->row, 2), paper_text(&s->table, m->row, 1),
                       s->on.layout[m->layout].name);
}

int reproduce_throughput(struct reproduction *r, struct err *err)
{
    for (int i = 0; i < PLATFORMS; i++) {
        struct study s;
        if (study_load(&s, i, err) < 0)
            return -1;
        predict(&s);
        show_score(r, &s);
        show_constants(r, &s);
        show_cells(r, &s);
        study_release(&s);
    }
    return 0;
}
