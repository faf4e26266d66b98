/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables 4, 5 and 6: a burst of B prompts through a prefill pool in the layout, then a decode pool
 * that all layouts share (sim/study/burst.h). What is shown of a shape was predicted by constants
 * that were fitted without it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/platform.h"
#include "sim/reproduce/rows.h"
#include "sim/study/burst.h"
#include "sim/study/prefill.h"

enum { OUTPUT_TOKENS = 1024, FIRST_LAYOUT = 3, NO_SHAPE = -1 };
_Static_assert((int)BURST_LAYOUTS == (int)PLATFORM_LAYOUTS, "constants for every layout");

static const double mape_goal = 0.05, regret_goal = 0.015;

/* A cell of the table. */
struct measurement {
    int row;
    double tokens;      /* of the batch, input and output */
    double predicted_s; /* by a fit without its shape */
};

struct study {
    struct platform on;
    struct paper table;
    struct measurement *m;
    struct burst *burst;         /* of each measurement; equal shapes have equal numbers */
    struct burst_model *without; /* by row: fitted without its shape */
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

static void add_step(void *burst, const struct step_cost *step)
{
    struct burst *b = burst;
    double attn_s = ps_to_s(step->attn.a_ps);
    b->attn_s += attn_s;
    b->rest_s += ps_to_s(step->step.a_ps) - attn_s;
}

static void add_measurement(struct study *s, int row, int layout)
{
    const struct layout *l = &s->on.layout[layout];
    int64_t input = (int64_t)paper_number(&s->table, row, 1);
    int batch = (int)paper_number(&s->table, row, 2);
    struct measurement *m = &s->m[s->n];
    struct burst *b = &s->burst[s->n++];
    m->row = row;
    m->tokens = (double)batch * (double)(input + OUTPUT_TOKENS);
    *b = (struct burst){.shape = shape_of(&s->table, row),
                        .layout = layout,
                        .batch = batch,
                        .abreast = l->kv_owned ? l->ranks : 1,
                        .spread = l->kv_owned || l->kv_pos_shards > 1,
                        .input_tokens = (double)batch * (double)input,
                        .s = m->tokens /
                             (1000 * paper_number(&s->table, row, FIRST_LAYOUT + layout))};
    prefill_steps(s->on.cost, layout, batch, input, add_step, b);
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
    size_t cells = (size_t)s->table.rows * PLATFORM_LAYOUTS;
    s->m = xcalloc(cells, sizeof *s->m);
    s->burst = xcalloc(cells, sizeof *s->burst);
    s->without = xcalloc((size_t)s->table.rows, sizeof *s->without);
    for (int row = 0; row < s->table.rows; row++)
        for (int l = 0; l < PLATFORM_LAYOUTS; l++)
            add_measurement(s, row, l);
    return 0;
}

static void study_release(struct study *s)
{
    free(s->m);
    free(s->burst);
    free(s->without);
    paper_release(&s->table);
    platform_release(&s->on);
}

static void predict(struct study *s)
{
    for (int row = 0; row < s->table.rows; row++) {
        int shape = shape_of(&s->table, row);
        if (shape == row)
            burst_fit(&s->without[row], s->burst, s->n, shape);
        else
            s->without[row] = s->without[shape];
    }
    for (int i = 0; i < s->n; i++)
        s->m[i].predicted_s = burst_predict_s(&s->without[s->m[i].row], &s->burst[i]);
}

/* Of throughput. */
static double error_of(const struct study *s, int i)
{
    return s->burst[i].s / s->m[i].predicted_s - 1;
}

/* Mean absolute error of those in a layout (-1: any) and a sweep (NULL: any). */
static double mape(const struct study *s, int layout, const char *sweep)
{
    double sum = 0, n = 0;
    for (int i = 0; i < s->n; i++) {
        const char *own = paper_text(&s->table, s->m[i].row, 0);
        if ((layout >= 0 && s->burst[i].layout != layout) ||
            (sweep != NULL && strcmp(sweep, own) != 0))
            continue;
        sum += fabs(error_of(s, i));
        n++;
    }
    return sum / n;
}

/* What is lost at a position by taking the layout that is predicted fastest. */
static double regret_of(const struct study *s, int row)
{
    int first = row * PLATFORM_LAYOUTS, best = first, chosen = first;
    for (int i = first + 1; i < first + PLATFORM_LAYOUTS; i++) {
        best = s->burst[i].s < s->burst[best].s ? i : best;
        chosen = s->m[i].predicted_s < s->m[chosen].predicted_s ? i : chosen;
    }
    return s->burst[chosen].s / s->burst[best].s - 1;
}

/* Mean over the positions of a sweep (NULL: all). */
static double mean_regret(const struct study *s, const char *sweep)
{
    double sum = 0, n = 0;
    for (int row = 0; row < s->table.rows; row++) {
        if (sweep != NULL && strcmp(sweep, paper_text(&s->table, row, 0)) != 0)
            continue;
        sum += regret_of(s, row);
        n++;
    }
    return sum / n;
}

/* What the data say of themselves. */
struct floors {
    double repeats_differ_by, repeats_differ_at_most; /* two measurements of one shape and layout */
    double line_mape; /* of the best straight lines, in hindsight, where only the batch differs */
    int falls;        /* neighbours in a sweep of which the larger takes less time */
};

static void find_repeats(const struct study *s, struct floors *f)
{
    double sum = 0, n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct burst *b = &s->burst[i];
        const struct burst *first = &s->burst[b->shape * PLATFORM_LAYOUTS + b->layout];
        if (first == b)
            continue;
        double difference = fabs(b->s - first->s) / fmin(b->s, first->s);
        f->repeats_differ_at_most = fmax(f->repeats_differ_at_most, difference);
        sum += difference;
        n++;
    }
    f->repeats_differ_by = sum / n;
}

/* Rows [row, end) are a sweep. Least absolute relative error of a line through two of its bursts,
 * which is that of any line; its sum over the sweep. */
static double line_error(const struct study *s, int row, int end, int layout)
{
    double least = INFINITY;
    for (int i = row; i < end; i++)
        for (int j = row; j < i; j++) {
            const struct burst *p = &s->burst[i * PLATFORM_LAYOUTS + layout];
            const struct burst *q = &s->burst[j * PLATFORM_LAYOUTS + layout];
            double slope = (p->s - q->s) / (p->batch - q->batch), sum = 0;
            for (int k = row; k < end; k++) {
                const struct burst *b = &s->burst[k * PLATFORM_LAYOUTS + layout];
                sum += fabs((p->s + slope * (b->batch - p->batch)) / b->s - 1);
            }
            least = fmin(least, sum);
        }
    return least;
}

static int sweep_end(const struct study *s, int row)
{
    int end = row + 1;
    while (end < s->table.rows &&
           strcmp(paper_text(&s->table, end, 0), paper_text(&s->table, row, 0)) == 0)
        end++;
    return end;
}

static void find_lines(const struct study *s, struct floors *f)
{
    double sum = 0, n = 0;
    for (int row = 0, end; row < s->table.rows; row = end) {
        end = sweep_end(s, row);
        if (paper_number(&s->table, row, 1) != paper_number(&s->table, row + 1, 1))
            continue;
        for (int l = 0; l < PLATFORM_LAYOUTS; l++)
            sum += line_error(s, row, end, l);
        n += (end - row) * PLATFORM_LAYOUTS;
    }
    f->line_mape = sum / n;
}

static void find_falls(const struct study *s, struct floors *f)
{
    for (int i = PLATFORM_LAYOUTS; i < s->n; i++) {
        int before = i - PLATFORM_LAYOUTS;
        f->falls +=
            sweep_end(s, s->m[before].row) > s->m[i].row && s->burst[i].s < s->burst[before].s;
    }
}

static void show_score(struct reproduction *r, const struct study *s)
{
    const char *table = s->on.throughput_table;
    double all = mape(s, -1, NULL), regret = mean_regret(s, NULL);
    rows_figure(r, all, mape_goal, all <= mape_goal, "%s.mape", table);
    rows_figure(r, regret, regret_goal, regret <= regret_goal, "%s.regret", table);
    for (int l = 0; l < PLATFORM_LAYOUTS; l++)
        rows_figure(r, mape(s, l, NULL), NAN, true, "%s.mape.%s", table, s->on.layout[l].name);
    for (int row = 0; row < s->table.rows; row = sweep_end(s, row)) {
        const char *sweep = paper_text(&s->table, row, 0);
        rows_figure(r, mape(s, -1, sweep), NAN, true, "%s.mape.%s", table, sweep);
        rows_figure(r, mean_regret(s, sweep), NAN, true, "%s.regret.%s", table, sweep);
    }
}

static void show_floors(struct reproduction *r, const struct study *s)
{
    const char *table = s->on.throughput_table;
    struct floors f = {0};
    find_repeats(s, &f);
    find_lines(s, &f);
    find_falls(s, &f);
    rows_figure(r, f.repeats_differ_by, NAN, true, "%s.repeats_differ_by", table);
    rows_figure(r, f.repeats_differ_at_most, NAN, true, "%s.repeats_differ_at_most", table);
    rows_figure(r, f.repeats_differ_by / 2, NAN, true, "%s.mape_floor", table);
    rows_figure(r, f.line_mape, NAN, true, "%s.straight_lines_mape", table);
    rows_figure(r, f.falls, NAN, true, "%s.falls", table);
}

static const char *const constants[BURST_START] = {
    [BURST_DECODE] = "decode_s",
    [BURST_BESIDE] = "decode_beside_s",
    [BURST_SPREAD] = "spread_kv_s",
    [BURST_ATTN] = "attention_slowdown",
};

/* Jackknife: one standard deviation of a constant over its value, from what it is without each
 * shape. */
static double uncertainty(const struct study *s, int k, double value)
{
    double n = 0, mean = 0, squares = 0;
    for (int row = 0; row < s->table.rows; row++)
        if (shape_of(&s->table, row) == row) {
            double other = s->without[row].constant[k], before = mean;
            mean += (other - before) / ++n;
            squares += (other - before) * (other - mean);
        }
    return sqrt((n - 1) / n * squares) / fabs(value);
}

static void show_constant(struct reproduction *r, const struct study *s, int k, double value)
{
    const char *table = s->on.throughput_table;
    char name[48];
    if (k < BURST_START)
        snprintf(name, sizeof name, "%s", constants[k]);
    else
        snprintf(name, sizeof name, "%s_%s_slowdown",
                 s->on.layout[(k - BURST_START) % BURST_LAYOUTS].name,
                 k < BURST_SUSTAINED ? "start" : "sustained");
    rows_figure(r, value, NAN, true, "%s.fitted.%s", table, name);
    rows_figure(r, uncertainty(s, k, value), NAN, true, "%s.fitted.%s.sigma", table, name);
}

static void show_constants(struct reproduction *r, const struct study *s)
{
    struct burst_model m;
    burst_fit(&m, s->burst, s->n, NO_SHAPE);
    for (int k = 0; k < BURST_CONSTANTS; k++)
        show_constant(r, s, k, m.constant[k]);
    rows_figure(r, m.start_tokens, NAN, true, "%s.fitted.start_tokens", s->on.throughput_table);
}

static void show_cells(struct reproduction *r, const struct study *s)
{
    for (int i = 0; i < s->n; i++) {
        const struct measurement *m = &s->m[i];
        int layout = s->burst[i].layout;
        rows_predicted(r, paper_text(&s->table, m->row, FIRST_LAYOUT + layout),
                       m->tokens / m->predicted_s / 1000, NAN, "%s.%s.%sx%s.%s.ktok_s",
                       s->on.throughput_table, paper_text(&s->table, m->row, 0),
                       paper_text(&s->table, m->row, 2), paper_text(&s->table, m->row, 1),
                       s->on.layout[layout].name);
    }
}

int reproduce_throughput(struct reproduction *r, struct err *err)
{
    for (int i = 0; i < PLATFORMS; i++) {
        struct study s;
        if (study_load(&s, i, err) < 0)
            return -1;
        predict(&s);
        show_score(r, &s);
        show_floors(r, &s);
        show_constants(r, &s);
        show_cells(r, &s);
        study_release(&s);
    }
    return 0;
}
