/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/fit_text.h"

#include "sim/report/table.h"

static void add_head(struct table *t, const char *const *head, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_add(t, "%s", head[i]);
}

static const char *remark(const struct fit_param *q)
{
    switch (q->state) {
    case FIT_KEPT: return "not in the data";
    case FIT_BOUNDED: return q->value > q->base ? "at least" : "at most";
    case FIT_SET: return "by convention";
    default: return q->value <= q->low || q->value >= q->high ? "at its limit" : "";
    }
}

void fit_text_params(const struct fit_param *param, int n, FILE *out)
{
    static const char *const head[] = {"parameter", "value", "base", "sigma", ""};
    struct table t;
    table_init(&t, "lrrrl");
    add_head(&t, head, sizeof head / sizeof *head);
    for (int i = 0; i < n; i++) {
        const struct fit_param *q = &param[i];
        table_add(&t, "%s", q->name);
        table_add(&t, "%.4g", q->value);
        table_add(&t, "%.4g", q->base);
        if (q->state == FIT_FITTED)
            table_add(&t, "%.2g", q->sigma);
        else
            table_skip(&t, 1);
        table_add(&t, "%s", remark(q));
    }
    table_print(&t, out);
    table_release(&t);
}

static void add_errors(struct table *t, const struct fit_errors *e)
{
    table_add(t, "%d", e->n);
    if (e->n == 0) {
        table_skip(t, 3);
        return;
    }
    table_add(t, "%.1f%%", 100 * e->abs_p50);
    table_add(t, "%.1f%%", 100 * e->abs_p95);
    table_add(t, "%+.1f%%", 100 * e->mean);
}

static const char *kind_name(int kind)
{
    return kind == FIT_STEP ? "step" : fit_stage_names[kind];
}

static void print_errors(const struct fit *f, const struct fit_data *d, FILE *out)
{
    static const char *const head[] = {"stage", "layout", "steps", "p50", "p95", "mean"};
    struct table t;
    table_init(&t, "llrrrr");
    add_head(&t, head, sizeof head / sizeof *head);
    for (int kind = 0; kind < FIT_KINDS; kind++) {
        table_add(&t, "%s", kind_name(kind));
        table_add(&t, "all");
        add_errors(&t, &f->errors[kind][LAYOUT_MAX]);
        for (int l = 0; l < d->n_layouts; l++) {
            if (f->errors[kind][l].n == 0)
                continue;
            table_skip(&t, 1);
            table_add(&t, "%s", d->layout[l].name);
            add_errors(&t, &f->errors[kind][l]);
        }
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_held_out(const struct fit *f, FILE *out)
{
    static const char *const head[] = {"stage", "steps", "p50", "p95", "mean"};
    struct table t;
    table_init(&t, "lrrrr");
    add_head(&t, head, sizeof head / sizeof *head);
    for (int kind = 0; kind < FIT_KINDS; kind++) {
        table_add(&t, "%s", kind_name(kind));
        add_errors(&t, &f->held_out[kind][LAYOUT_MAX]);
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_files(const struct fit_data *d, FILE *out)
{
    for (size_t i = 0; i < d->n_sources; i++) {
        const struct fit_source *s = &d->source[i];
        fprintf(out, "measured %s: %d steps, %d without a switch", s->path, s->steps,
                s->without_switch);
        if (s->unmeasured > 0)
            fprintf(out, "; %d lines have no times", s->unmeasured);
        fputc('\n', out);
    }
    fputc('\n', out);
}

void fit_text_print(const struct fit *f, const struct fit_data *d, FILE *out)
{
    print_files(d, out);
    fit_text_params(f->param, f->n_params, out);
    fputs("\nErrors, predicted / measured - 1: median and 95th percentile of their size, and\n"
          "signed mean. The rest is the step less its stages, over the step; transfers are\n"
          "blocking switches, by where they lead.\n\n",
          out);
    print_errors(f, d, out);
    fputs("\nThe same on one of every five steps of a layout, by a fit that did not see them:\n\n",
          out);
    print_held_out(f, out);
}
