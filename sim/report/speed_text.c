/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/speed_text.h"

#include "sim/report/fit_text.h"
#include "sim/report/table.h"

static void add_errors(struct table *t, const char *layout, const struct fit_errors *e)
{
    if (e->n == 0)
        return;
    table_add(t, "%s", layout);
    table_add(t, "%d", e->n);
    table_add(t, "%.1f%%", 100 * e->abs_mean);
    table_add(t, "%.1f%%", 100 * e->abs_p50);
    table_add(t, "%.1f%%", 100 * e->abs_p95);
    table_add(t, "%+.1f%%", 100 * e->mean);
}

static void print_errors(const struct speeds *s, const struct fit_errors *e, FILE *out)
{
    static const char *const head[] = {"layout", "rows", "mape", "p50", "p95", "mean"};
    struct table t;
    table_init(&t, "lrrrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    add_errors(&t, "all", &e[LAYOUT_MAX]);
    for (int l = 0; l < s->n_layouts; l++)
        add_errors(&t, s->layout[l].name, &e[l]);
    table_print(&t, out);
    table_release(&t);
}

/* What the base says because the table does not. */
static void print_unknown(const struct speed_fit *f, FILE *out)
{
    const char *head = "\nThe table does not tell these, so they stay the base's:\n";
    for (int k = 0; k < SPEED_PARTS; k++)
        if (f->param[k].state == FIT_KEPT) {
            fprintf(out, "%s    %s\n", head, f->param[k].name);
            head = "";
        }
}

void speed_text_print(const struct speed_fit *f, const struct speeds *s, FILE *out)
{
    int steps = 0;
    for (int i = 0; i < s->n; i++)
        steps += s->row[i].is_step;
    fprintf(out, "table %s: %d throughputs and %d step times of %d shapes\n", s->path, s->n - steps,
            steps, s->n_shapes);
    fprintf(out, "noise, by what is left unexplained: %.1f%% of a row's time\n\n", 100 * f->noise);
    fit_text_params(f->param, SPEED_PARTS, out);
    print_unknown(f, out);
    fputs("\nErrors of times, predicted / measured - 1: mean, median and 95th percentile of\n"
          "their size, and signed mean.\n\n",
          out);
    print_errors(s, f->errors, out);
    if (f->held_out[LAYOUT_MAX].n == 0) {
        fputs("\nThere is one shape alone: none can be held out.\n", out);
        return;
    }
    fputs("\nThe same of each shape by a fit that did not see it:\n\n", out);
    print_errors(s, f->held_out, out);
    if (f->regret_shapes > 0)
        fprintf(
            out,
            "\nThe layout that it says is fastest takes %.1f%% longer than the fastest, in the\n"
            "mean of %d shapes.\n",
            100 * f->regret, f->regret_shapes);
}
