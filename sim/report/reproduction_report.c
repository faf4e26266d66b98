/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/reproduction_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/report/table.h"

static const char *word_of(const struct row *row)
{
    if (row->note[0] != '\0')
        return row->note;
    if (row->kind == ROW_EXACT)
        return row->ok ? "exact" : "DIFFERS";
    if (row->ours[0] == '\0')
        return "not predicted";
    return isnan(row->goal) ? "" : row->ok ? "met" : "missed";
}

void row_text(const struct row *row, struct row_text *out)
{
    char frac[PERCENT_SIZE];
    *out = (struct row_text){.word = word_of(row)};
    if (row->kind != ROW_EXACT && !isnan(row->error_frac))
        percent_signed(row->error_frac, out->error);
    /* A goal of an error is a share; one of a figure is a number like it. */
    if (!isnan(row->goal) && row->paper[0] != '\0')
        snprintf(out->goal, sizeof out->goal, "%s", percent(row->goal, frac));
    else if (!isnan(row->goal))
        table_number(row->goal, out->goal, sizeof out->goal);
}

enum { COLUMNS = 6, ERROR = 3, GOAL = 4 };

static void row_cells(const struct row *row, struct row_text *text, const char *cell[COLUMNS])
{
    row_text(row, text);
    cell[0] = row->id;
    cell[1] = row->paper;
    cell[2] = row->ours;
    cell[ERROR] = text->error;
    cell[GOAL] = text->goal;
    cell[5] = text->word;
}

/* Errors and goals are left out of a section that has none. */
static void find_columns(const struct reproduction *r, const struct section *s, bool shown[COLUMNS])
{
    struct row_text text;
    const char *cell[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        shown[k] = k != ERROR && k != GOAL;
    for (size_t i = s->first; i < s->first + s->n; i++) {
        row_cells(&r->row[i], &text, cell);
        shown[ERROR] |= cell[ERROR][0] != '\0';
        shown[GOAL] |= cell[GOAL][0] != '\0';
    }
}

static void add_cells(struct table *t, const char *const cell[COLUMNS], const bool shown[COLUMNS])
{
    for (int k = 0; k < COLUMNS; k++)
        if (shown[k])
            table_add(t, "%s", cell[k]);
}

static void print_rows(const struct reproduction *r, const struct section *s, FILE *out)
{
    static const char *const head[COLUMNS] = {"", "paper", "ours", "error", "goal", ""};
    bool shown[COLUMNS];
    char align[COLUMNS + 1] = "";
    int n = 0;
    struct row_text text;
    const char *cell[COLUMNS];
    struct table t;
    find_columns(r, s, shown);
    for (int k = 0; k < COLUMNS; k++)
        if (shown[k])
            align[n++] = k == 0 || k == COLUMNS - 1 ? 'l' : 'r';
    table_init(&t, align);
    add_cells(&t, head, shown);
    for (size_t i = s->first; i < s->first + s->n; i++) {
        row_cells(&r->row[i], &text, cell);
        add_cells(&t, cell, shown);
    }
    table_print(&t, out);
    table_release(&t);
}

char *reproduction_verdict(const struct reproduction *r, char buf[REPRODUCTION_VERDICT_SIZE])
{
    struct row_count count = reproduction_count(r);
    buf[0] = '\0';
    if (count.differ > 0)
        snprintf(buf, REPRODUCTION_VERDICT_SIZE, "%zu of %zu exact rows differ.", count.differ,
                 count.exact);
    else if (count.exact > 0)
        snprintf(buf, REPRODUCTION_VERDICT_SIZE, "All %zu exact rows agree.", count.exact);
    return buf;
}

static void print_verdict(const struct reproduction *r, FILE *out)
{
    char text[REPRODUCTION_VERDICT_SIZE];
    if (reproduction_verdict(r, text)[0] != '\0')
        fprintf(out, "%s\n", text);
}

/* The text's own line ends are docs/fidelity.md's; those of paragraphs stay. */
static void print_about(const char *about, FILE *out)
{
    char *text = xstrdup(about), *next;
    for (char *at = text; at != NULL; at = next) {
        next = strstr(at, "\n\n");
        if (next != NULL) {
            *next = '\0';
            next += 2;
        }
        for (char *c = at; (c = strchr(c, '\n')) != NULL;)
            *c = ' ';
        table_words(at, 0, out);
        fputs(next != NULL ? "\n\n" : "\n", out);
    }
    free(text);
}

void reproduction_print(const struct reproduction *r, FILE *out)
{
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        fprintf(out, "%s\n", s->title);
        print_about(s->about, out);
        fputc('\n', out);
        print_rows(r, s, out);
        fputc('\n', out);
    }
    print_verdict(r, out);
}

static const char intro[] =
    "# Fidelity: two papers beside wavetank\n\n"
    "Written by `make fidelity` (`wavetank reproduce splash helix --markdown`); do not edit. "
    "Exact\n"
    "rows print the very digits of the paper, or of a separate computation where the paper\n"
    "prints none, and tests hold them to it:\n"
    "[hw/papers/splash](../hw/papers/splash/README.md) and\n"
    "[hw/papers/helix](../hw/papers/helix/README.md) have these numbers. Predicted rows have\n"
    "an error and a goal, on which nothing depends; a row without a paper's value is a score,\n"
    "a constant that was fitted or what ours has besides.\n\n";

bool reproduction_opens(const struct reproduction *r, int section)
{
    return section == 0 || r->section[section].publication != r->section[section - 1].publication;
}

void reproduction_markdown(const struct reproduction *r, FILE *out)
{
    fputs(intro, out);
    print_verdict(r, out);
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        const struct publication *of = &publications[s->publication];
        if (reproduction_opens(r, i))
            fprintf(out, "\n## The %s paper (%s)\n\n%s", of->title, of->source, of->missing);
        fprintf(out, "\n### %s\n\n%s\n\n```\n", s->title, s->about);
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
    if (row->note[0] != '\0')
        json_object_set_new(obj, "note", json_string(row->note));
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
