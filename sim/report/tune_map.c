/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "sim/report/percent.h"
#include "sim/report/table.h"
#include "sim/report/tune_text.h"

enum { NUMBERS_MAX = 8, ACROSS_MAX = 48, DOWN_MAX = 40 };

/* What a map shows: `down` may be -1, for a map of one row. */
struct map {
    const struct findings *f;
    int across, down;
    int step_across, step_down; /* of values shown, so that it fits */
    double most;                /* greatest value in it */
};

static int values(const struct map *m, int axis)
{
    return axis >= 0 ? m->f->study->grid->axis[axis].n : 1;
}

/* The recommended point with these two options changed. */
static int64_t point_at(const struct map *m, int across, int down)
{
    const struct study *s = m->f->study;
    int64_t point = 0;
    for (int a = 0; a < s->grid->n; a++) {
        int at = grid_at(s->grid, s->point[m->f->best], a);
        at = a == m->across ? across : a == m->down ? down : at;
        point = point * s->grid->axis[a].n + at;
    }
    return point;
}

/* NAN where nothing ran, or ran as well as others. */
static double value_at(const struct map *m, int across, int down)
{
    int64_t setting = study_find(m->f->study, point_at(m, across, down));
    return setting >= 0 ? m->f->first.mean_frac[setting] : NAN;
}

static const char *label(const struct map *m, int axis, int at)
{
    return axis >= 0 ? m->f->study->grid->axis[axis].value[at] : "";
}

static void print_numbers(const struct map *m, FILE *out)
{
    struct table t;
    char align[TABLE_COLUMNS_MAX] = "rrrrrrrrr", text[PERCENT_SIZE];
    align[1 + values(m, m->across)] = '\0';
    table_init(&t, align);
    table_add(&t, "%s", "");
    for (int x = 0; x < values(m, m->across); x++)
        table_add(&t, "%s", label(m, m->across, x));
    for (int y = 0; y < values(m, m->down); y += m->step_down) {
        table_add(&t, "%s", label(m, m->down, y));
        for (int x = 0; x < values(m, m->across); x++)
            table_add(&t, "%s", percent(value_at(m, x, y), text));
    }
    table_print(&t, out);
    table_release(&t);
}

static char shade(const struct map *m, double x)
{
    if (isnan(x))
        return ' ';
    if (x <= FINDINGS_FLAT_FRAC)
        return '.';
    int tenth = m->most > 0 ? (int)ceil(9 * x / m->most) : 1;
    return (char)('0' + (tenth < 1 ? 1 : tenth > 9 ? 9 : tenth));
}

static void print_shades(const struct map *m, FILE *out)
{
    char text[PERCENT_SIZE];
    int last = (values(m, m->across) - 1) / m->step_across * m->step_across;
    for (int y = 0; y < values(m, m->down); y += m->step_down) {
        fprintf(out, "%12.12s |", label(m, m->down, y));
        for (int x = 0; x <= last; x += m->step_across)
            fputc(shade(m, value_at(m, x, y)), out);
        fputs("|\n", out);
    }
    fprintf(out, "%12s  from %s to %s\n", "", label(m, m->across, 0), label(m, m->across, last));
    fprintf(out, "%12s  \".\" within 1%%; 9: %s\n", "", percent(m->most, text));
}

static void find_most(struct map *m)
{
    for (int y = 0; y < values(m, m->down); y += m->step_down)
        for (int x = 0; x < values(m, m->across); x += m->step_across) {
            double at = value_at(m, x, y);
            m->most = at > m->most ? at : m->most;
        }
}

static void print_others(const struct map *m, FILE *out)
{
    const struct study *s = m->f->study;
    for (int a = 0; a < s->grid->n; a++)
        if (a != m->across && a != m->down && s->grid->axis[a].n > 1)
            fprintf(out, "; %s=%s", s->grid->axis[a].name,
                    grid_value(s->grid, s->point[m->f->best], a));
}

void tune_map_print(const struct findings *f, FILE *out)
{
    int axis[2];
    findings_axes(f, axis);
    if (f->best < 0 || axis[0] < 0)
        return;
    struct map m = {.f = f, .across = axis[0], .down = axis[1]};
    /* The longer one goes down while there are numbers to show. */
    if (m.down >= 0 && values(&m, m.across) > NUMBERS_MAX && values(&m, m.down) <= NUMBERS_MAX) {
        m.across = axis[1];
        m.down = axis[0];
    }
    m.step_across = (values(&m, m.across) + ACROSS_MAX - 1) / ACROSS_MAX;
    m.step_down = (values(&m, m.down) + DOWN_MAX - 1) / DOWN_MAX;
    find_most(&m);
    const struct axis *axes = f->study->grid->axis;
    fprintf(out, "\nAbove the best setting: %s across", axes[m.across].name);
    if (m.down >= 0)
        fprintf(out, ", %s down", axes[m.down].name);
    print_others(&m, out);
    if (f->study->rungs > 1)
        fprintf(out, "; first 1/%d of each trace", study_cut(f->study, 0));
    fputs("\n\n", out);
    if (values(&m, m.across) <= NUMBERS_MAX)
        print_numbers(&m, out);
    else
        print_shades(&m, out);
}
