/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/reproduction_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"

/* A goal of an error is a share; one of a figure is a number like it. */
static void add_goal(struct table *t, const struct row *row)
{
    char frac[PERCENT_SIZE], number[32];
    if (isnan(row->goal))
        table_skip(t, 1);
    else if (row->paper[0] != '\0')
        table_add(t, "%s", percent(row->goal, frac));
    else
        table_add(t, "%s", table_number(row->goal, number, sizeof number));
}

static const char *word_of(const struct row *row)
{
    if (row->kind == ROW_EXACT)
        return row->ok ? "exact" : "DIFFERS";
    return isnan(row->goal) ? "" : row->ok ? "met" : "missed";
}

static void print_rows(const struct reproduction *r, const struct section *s, FILE *out)
{
    static const char *const head[] = {"", "paper", "ours", "error", "goal", ""};
    struct table t;
    table_init(&t, "lrrrrl");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (size_t i = s->first; i < s->first + s->n; i++) {
        const struct row *row = &r->row[i];
        char error[PERCENT_SIZE];
        table_add(&t, "%s", row->id);
        table_add(&t, "%s", row->paper);
        table_add(&t, "%s", row->ours);
        table_add(&t, "%s",
                  row->kind == ROW_EXACT || isnan(row->error_frac)
                      ? ""
                      : percent_signed(row->error_frac, error));
        add_goal(&t, row);
        table_add(&t, "%s", word_of(row));
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_verdict(const struct reproduction *r, FILE *out)
{
    struct row_count count = reproduction_count(r);
    if (count.differ > 0)
        fprintf(out, "%zu of %zu exact rows differ.\n", count.differ, count.exact);
    else if (count.exact > 0)
        fprintf(out, "All %zu exact rows agree.\n", count.exact);
}

void reproduction_print(const struct reproduction *r, FILE *out)
{
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        fprintf(out, "%s\n%s\n\n", s->title, s->about);
        print_rows(r, s, out);
        fputc('\n', out);
    }
    print_verdict(r, out);
}

static const char intro[] =
    "# Fidelity: the SPLASH paper beside wavetank\n\n"
    "Written by `make fidelity` (`wavetank reproduce splash --markdown`); do not edit. Exact\n"
    "rows print the very digits of the paper, or of a separate computation where the paper\n"
    "prints none, and tests hold them to it:\n"
    "[hw/papers/splash](../hw/papers/splash/README.md) has these numbers. Predicted rows have\n"
    "an error and a goal, on which nothing depends; a row without a paper's value is a score\n"
    "or a constant that was fitted.\n\n"
    "Not reproduced: the gain of 1.3 to 1.73 times over fixed layouts, which follows from no\n"
    "table of the paper and for which no load is described; '11.3 GiB for all 78 layers' (78\n"
    "x 145.73 MiB are 11.1); quantiles other than p50; TTFT and the admission studies.\n\n";

void reproduction_markdown(const struct reproduction *r, FILE *out)
{
    fputs(intro, out);
    print_verdict(r, out);
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        fprintf(out, "\n## %s\n\n%s\n\n```\n", s->title, s->about);
        print_rows(r, s, out);
        fputs("```\n", out);
    }
}

/* A number where the text is one. */
static json_t *value_json(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (text[0] == '\0')
        return json_null();
    return *end == '\0' ? json_num(number) : json_string(text);
}

static json_t *number_or_null(double x)
{
    return isnan(x) ? json_null() : json_num(x);
}

static json_t *row_json(const struct row *row)
{
    json_t *obj = json_object();
    json_object_set_new(obj, "id", json_string(row->id));
    json_object_set_new(obj, "kind", json_string(row->kind == ROW_EXACT ? "exact" : "predicted"));
    json_object_set_new(obj, "paper", value_json(row->paper));
    json_object_set_new(obj, "ours", value_json(row->ours));
    json_object_set_new(obj, "error_frac", number_or_null(row->error_frac));
    json_object_set_new(obj, "goal", number_or_null(row->goal));
    json_object_set_new(obj, "ok", json_boolean(row->ok));
    return obj;
}

json_t *reproduction_json(const struct reproduction *r)
{
    json_t *obj = json_object(), *rows = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, row_json(&r->row[i]));
    json_object_set_new(obj, "rows", rows);
    json_object_set_new(obj, "verdict",
                        json_string(reproduction_count(r).differ == 0 ? "exact" : "differs"));
    return obj;
}
