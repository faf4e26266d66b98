/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/tune_text.h"

#include <math.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"

/* The options that a table has room for. */
enum { AXES_SHOWN_MAX = 5 };

static double mean_metric(const struct findings *f, int64_t setting, const char *name)
{
    const struct study *s = f->study;
    const struct metrics *run = &s->rung[s->rungs - 1].run[setting * s->draws.n];
    double sum = 0;
    for (int d = 0; d < s->draws.n; d++)
        sum += f->last.weight[d] * run[d].value[metric_find(name)];
    return sum;
}

static void print_size(const struct tune_report *r, FILE *out)
{
    const struct study *s = r->findings->study;
    char settings[32], runs[32], found[32], wall[32], each[32];
    fprintf(out, "study    %s settings on %d %s of %d %s: %s runs",
            units_count(s->n, settings, sizeof settings), s->draws.n,
            s->draws.n == 1 ? "draw" : "draws", r->traces, r->traces == 1 ? "trace" : "traces",
            units_count(s->made + s->found, runs, sizeof runs));
    if (s->found > 0)
        fprintf(out, ", %s of them from %s", units_count(s->found, found, sizeof found), r->store);
    if (s->rungs > 1)
        fprintf(out,
                "\n         halving: all on 1/9 of each trace, a third on 1/3, a ninth on all");
    if (s->made > 0)
        fprintf(
            out, "\ncost     %s a run; %s on %d %s",
            units_time((int64_t)(s->wall_ns / (uint64_t)s->made) * PS_PER_NS, each, sizeof each),
            units_time((int64_t)r->wall_ns * PS_PER_NS, wall, sizeof wall), r->workers,
            r->workers == 1 ? "worker" : "workers");
    fprintf(out, "\ngoal     the least %s\n", r->objective);
    if (r->seedless > 0 && r->seeds > 1)
        fprintf(out,
                "seeds    make no difference to %d of the traces, which ran once: nothing in them\n"
                "         is drawn (--sample and --spread draw)\n",
                r->seedless);
}

static int shown_axes(const struct grid *g, int axis[AXES_SHOWN_MAX])
{
    int n = 0;
    for (int a = 0; a < g->n && n < AXES_SHOWN_MAX; a++)
        if (g->axis[a].n > 1)
            axis[n++] = a;
    return n;
}

static void add_setting(struct table *t, const struct findings *f, int64_t rank, const int *axis,
                        int n_axes)
{
    const struct study *s = f->study;
    int64_t setting = f->order[rank];
    char text[PERCENT_SIZE], number[32];
    table_add(t, "%lld", (long long)rank + 1);
    for (int a = 0; a < n_axes; a++)
        table_add(t, "%s", grid_value(s->grid, s->point[setting], axis[a]));
    double objective = scores_objective(&f->last, setting);
    if (isnan(objective))
        table_add(t, "-");
    else
        table_add(t, "%s%s", objective < 0 ? "-" : "",
                  table_number(fabs(objective), number, sizeof number));
    table_add(t, "%s", percent(f->last.mean_frac[setting], text));
    table_add(t, "%s", units_count((int64_t)f->last.completed[setting], number, sizeof number));
    table_add(
        t, "%s",
        units_count((int64_t)(mean_metric(f, setting, "switches") + 0.5), number, sizeof number));
}

static void print_settings(const struct tune_report *r, FILE *out)
{
    const struct findings *f = r->findings;
    const struct grid *g = f->study->grid;
    int axis[AXES_SHOWN_MAX], n = shown_axes(g, axis);
    char align[TABLE_COLUMNS_MAX] = "rrrrrrrrrr";
    struct table t;
    align[n + 5] = '\0';
    table_init(&t, align);
    table_add(&t, "rank");
    for (int a = 0; a < n; a++)
        table_add(&t, "%s", g->axis[axis[a]].name);
    table_add(&t, "objective");
    table_add(&t, "above");
    table_add(&t, "done");
    table_add(&t, "switches");
    for (int64_t i = 0; i < f->n && i < r->top; i++)
        add_setting(&t, f, i, axis, n);
    fputc('\n', out);
    table_print(&t, out);
    table_release(&t);
}

static void print_flat(const struct findings *f, FILE *out)
{
    const struct grid *g = f->study->grid;
    char flat[32], all[32];
    fprintf(out, "\nFlat region: %s of %s settings are within 1%% of the best.\n",
            units_count(f->n_flat, flat, sizeof flat), units_count(f->n, all, sizeof all));
    for (int a = 0; a < g->n; a++) {
        const struct axis_effect *e = &f->effect[a];
        if (g->axis[a].n == 1)
            continue;
        fprintf(out, "  %s: %s", g->axis[a].name, g->axis[a].value[e->flat_first]);
        if (e->flat_last > e->flat_first)
            fprintf(out, " to %s", g->axis[a].value[e->flat_last]);
        fputc('\n', out);
    }
}

static void print_effects(const struct findings *f, FILE *out)
{
    const struct grid *g = f->study->grid;
    char text[PERCENT_SIZE];
    struct table t;
    table_init(&t, "lrrr");
    table_add(&t, "option");
    table_add(&t, "values");
    table_add(&t, "on average");
    table_add(&t, "alone");
    for (int a = 0; a < g->n; a++) {
        table_add(&t, "%s", g->axis[a].name);
        table_add(&t, "%d", g->axis[a].n);
        table_add(&t, "%s", percent(f->effect[a].mean_frac, text));
        table_add(&t, "%s", percent(f->effect[a].alone_frac, text));
    }
    fputs("\nWhat an option matters, from its best value to its worst: over all settings, and\n"
          "with the others as recommended.\n\n",
          out);
    table_print(&t, out);
    table_release(&t);
}

static void print_recommendation(const struct tune_report *r, FILE *out)
{
    const struct findings *f = r->findings;
    char text[PERCENT_SIZE];
    if (f->best < 0) {
        fputs("\nNo setting has a value of the objective on every draw: nothing to recommend.\n",
              out);
        return;
    }
    fprintf(out, "\nrecommended: %s\n", r->setting);
    if (isnan(f->confidence_frac))
        fputs("One draw of each trace: how sure that is cannot be told (--seeds).\n", out);
    else
        fprintf(out, "In %s of %d resamples of the seeds it is within 1%% of the best.\n",
                percent(f->confidence_frac, text), FINDINGS_RESAMPLES);
}

void tune_text_print(const struct tune_report *r, FILE *out)
{
    print_size(r, out);
    print_settings(r, out);
    if (r->findings->best >= 0) {
        tune_map_print(r->findings, out);
        print_flat(r->findings, out);
        print_effects(r->findings, out);
    }
    print_recommendation(r, out);
}
