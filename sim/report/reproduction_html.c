/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/reproduction_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/html.h"
#include "sim/report/reproduction_charts.h"
#include "sim/report/reproduction_report.h"

/* Rows with goals, and those among them that meet them. */
struct goals {
    int n, met;
};

static struct goals goals_of(const struct row *row, size_t n)
{
    struct goals g = {0};
    for (size_t i = 0; i < n; i++) {
        bool has = row[i].kind == ROW_PREDICTED && !isnan(row[i].goal);
        g.n += has;
        g.met += has && row[i].ok;
    }
    return g;
}

static void tile_of(FILE *out, size_t some, size_t all, const char *what)
{
    char number[48];
    snprintf(number, sizeof number, "%zu of %zu", some, all);
    html_tile(out, number, what);
}

static void write_tiles(const struct reproduction *r, FILE *out)
{
    struct row_count count = reproduction_count(r);
    struct goals goals = goals_of(r->row, r->n);
    fputs("<div class=\"tiles\">\n", out);
    if (count.exact > 0)
        tile_of(out, count.exact - count.differ, count.exact, "exact rows agree");
    if (goals.n > 0)
        tile_of(out, (size_t)goals.met, (size_t)goals.n, "goals of predicted rows are met");
    fputs("</div>\n", out);
}

static void write_contents(const struct reproduction *r, FILE *out)
{
    static const char *const head[] = {"", "rows", "exact", "differ", "goals", "met", NULL};
    html_table_begin(out, "sections", head);
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        struct reproduction part = {.row = r->row + s->first, .n = s->n};
        struct row_count count = reproduction_count(&part);
        struct goals goals = goals_of(part.row, part.n);
        html_row(out);
        fprintf(out, "<td><a href=\"#%s\">", s->name);
        html_text(out, s->title);
        fputs("</a>", out);
        html_cell_count(out, (int64_t)s->n);
        html_cell_count(out, (int64_t)count.exact);
        html_cell_count(out, (int64_t)count.differ);
        html_cell_count(out, goals.n);
        html_cell_count(out, goals.met);
    }
    html_table_end(out);
}

static void write_rows(const struct reproduction *r, const struct section *s, FILE *out)
{
    static const char *const head[] = {"", "paper", "ours", "error", "goal", "", NULL};
    html_fold_begin(out, (int)s->n);
    html_table_begin(out, s->title, head);
    for (const struct row *row = r->row + s->first; row < r->row + s->first + s->n; row++) {
        struct row_text text;
        row_text(row, &text);
        html_row(out);
        html_cell(out, "%s", row->id);
        html_cell(out, "%s", row->paper);
        html_cell(out, "%s", row->ours);
        html_cell(out, "%s", text.error);
        html_cell(out, "%s", text.goal);
        html_cell(out, "%s", text.word);
    }
    html_table_end(out);
    html_fold_end(out, (int)s->n);
}

static double number(const struct reproduction *r, const char *of, const char *what,
                     const char *layout, const char *suffix)
{
    char id[sizeof r->row->id + 32];
    snprintf(id, sizeof id, "%s.%s_over_%s%s", of, what, layout, suffix);
    return strtod(reproduction_row(r, id)->ours, NULL);
}

/* A row for each load on a platform: they have one that counts switches. */
static void gains_table(const struct reproduction *r, const char *what, const char *title,
                        FILE *out)
{
    static const char *const head[] = {"load and platform", "switches", "over tp", "over cp",
                                       "over dp",           "over dop", NULL};
    static const char *const layout[] = {"tp", "cp", "dp", "dop"};
    static const char count[] = ".switches";
    fprintf(out, "<h3>%s</h3>\n", title);
    html_table_begin(out, title, head);
    for (const struct row *row = r->row; row < r->row + r->n; row++) {
        const char *end = strstr(row->id, count);
        char of[sizeof row->id];
        if (end == NULL || end[sizeof count - 1] != '\0')
            continue;
        snprintf(of, sizeof of, "%.*s", (int)(end - row->id), row->id);
        html_row(out);
        html_cell(out, "%s", of);
        html_cell(out, "%s", row->ours);
        for (int l = 0; l < 4; l++)
            html_cell(out, "%.3f (%.3f)", number(r, of, what, layout[l], ""),
                      number(r, of, what, layout[l], ".free"));
    }
    html_table_end(out);
}

static void gains_tables(const struct reproduction *r, FILE *out)
{
    html_p(out, "In brackets: when switches are free.");
    gains_table(r, "throughput", "Gain in throughput", out);
    gains_table(r, "e2e", "Gain in mean E2E", out);
}

static void write_figures(const struct reproduction *r, const char *section, FILE *out)
{
    static const struct {
        const char *section;
        void (*write)(const struct reproduction *r, FILE *out);
    } figures[] = {{"regimes", regimes_charts},     {"primitives", primitives_charts},
                   {"switches", switches_charts},   {"throughput", throughput_charts},
                   {"end-to-end", gains_tables},    {"roofline", roofline_charts},
                   {"frontiers", frontiers_charts}, {"ablation", ablation_charts}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].section, section) == 0)
            figures[i].write(r, out);
}

/* Paragraphs end with an empty line. */
static void write_about(const char *about, FILE *out)
{
    const char *end;
    for (; (end = strstr(about, "\n\n")) != NULL; about = end + 2)
        html_p(out, "%.*s", (int)(end - about), about);
    html_p(out, "%s", about);
}

static const char *title_of(const struct reproduction *r, char *title, size_t size)
{
    int first = r->n_sections > 0 ? r->section[0].publication : SPLASH;
    bool mixed = false;
    for (int i = 1; i < r->n_sections; i++)
        mixed = mixed || reproduction_opens(r, i);
    if (mixed)
        return "Papers beside wavetank";
    snprintf(title, size, "The %s paper beside wavetank", publications[first].title);
    return title;
}

void reproduction_html(const struct reproduction *r, FILE *out)
{
    char verdict[REPRODUCTION_VERDICT_SIZE], title[64];
    html_begin(out, title_of(r, title, sizeof title));
    html_p(out, "%s", reproduction_verdict(r, verdict));
    write_tiles(r, out);
    write_contents(r, out);
    html_p(out,
           "Exact rows print a paper's very digits, or those of a separate "
           "computation where it prints none. Predicted rows have an error and a goal, on which "
           "nothing depends; a row without a paper's value is a score, a constant that was fitted "
           "or what ours has besides.");
    for (int i = 0; i < r->n_sections; i++) {
        const struct section *s = &r->section[i];
        const struct publication *of = &publications[s->publication];
        if (reproduction_opens(r, i))
            html_p(out, "The %s paper is %s. %s", of->title, of->source, of->missing);
        fprintf(out, "<h2 id=\"%s\">", s->name);
        html_text(out, s->title);
        fputs("</h2>\n", out);
        write_about(s->about, out);
        write_figures(r, s->name, out);
        write_rows(r, s, out);
    }
    html_end(out);
}
