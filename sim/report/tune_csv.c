/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/report/csv_cell.h"
#include "sim/report/tune_text.h"

/* The last rung that a setting ran in. */
static int last_rung(const struct study *s, int64_t setting)
{
    int rung = s->rungs - 1;
    while (!s->rung[rung].in[setting])
        rung--;
    return rung;
}

static void write_head(const struct study *s, FILE *out)
{
    for (int a = 0; a < s->grid->n; a++) {
        csv_cell(s->grid->axis[a].name, out);
        fputc(',', out);
    }
    fputs("trace_share,rank,objective,above_frac,flat,recommended", out);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(out, ",%s", metric_table[i].name);
    fputc('\n', out);
}

static void write_number(double x, FILE *out)
{
    if (isnan(x))
        fputc(',', out);
    else
        fprintf(out, ",%.9g", x);
}

static void write_setting(const struct findings *f, const struct scores *scores, int64_t setting,
                          int64_t rank, FILE *out)
{
    const struct study *s = f->study;
    int rung = last_rung(s, setting);
    const struct scores *of = &scores[rung];
    for (int a = 0; a < s->grid->n; a++) {
        csv_cell(grid_value(s->grid, s->point[setting], a), out);
        fputc(',', out);
    }
    fprintf(out, "%.9g,", 1.0 / study_cut(s, rung));
    if (rank >= 0)
        fprintf(out, "%lld", (long long)rank + 1);
    write_number(scores_objective(of, setting), out);
    write_number(of->mean_frac[setting], out);
    fprintf(out, ",%d,%d", f->flat[setting], setting == f->best);
    for (int i = 0; i < METRIC_COUNT; i++) {
        double sum = 0;
        for (int d = 0; d < s->draws.n; d++)
            sum += of->weight[d] * s->rung[rung].run[setting * s->draws.n + d].value[i];
        write_number(sum, out);
    }
    fputc('\n', out);
}

void tune_csv_write(const struct findings *f, FILE *out)
{
    const struct study *s = f->study;
    struct scores scores[STUDY_RUNGS_MAX];
    int64_t *rank = xcalloc((size_t)s->n, sizeof *rank);
    for (int64_t i = 0; i < s->n; i++)
        rank[i] = -1;
    for (int64_t i = 0; i < f->n; i++)
        rank[f->order[i]] = i;
    for (int r = 0; r < s->rungs; r++)
        study_scores(s, r, &scores[r]);
    write_head(s, out);
    for (int64_t i = 0; i < s->n; i++)
        write_setting(f, scores, i, rank[i], out);
    for (int r = 0; r < s->rungs; r++)
        scores_release(&scores[r]);
    free(rank);
}
