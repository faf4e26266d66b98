/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/paper.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

static const char helix_folder[] = "helix/";

enum { NAMES_BYTES = 256, COLUMNS_MAX = 16 };

/* What the caller expects of a file. */
struct shape {
    char header[NAMES_BYTES];
    int columns, texts; /* texts come first */
};

static struct shape shape_of(const char *columns)
{
    struct shape s = {.columns = 1};
    size_t n = strlen(columns);
    const char *bar = strchr(columns, '|');
    assert(n < sizeof s.header);
    memcpy(s.header, columns, n);
    for (size_t i = 0; i < n; i++)
        s.columns += columns[i] == ',' || columns[i] == '|';
    s.texts = s.columns;
    if (bar != NULL) {
        s.header[bar - columns] = ',';
        s.texts = 1;
        for (const char *at = columns; at < bar; at++)
            s.texts += *at == ',';
    }
    assert(s.columns <= COLUMNS_MAX);
    return s;
}

static int split(char *line, char *field[COLUMNS_MAX])
{
    int n = 0;
    for (char *at = line; at != NULL && n < COLUMNS_MAX;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma++ = '\0';
        field[n++] = at;
        at = comma;
    }
    return n;
}

static int add_row(struct paper *p, size_t *cap, const struct shape *s, struct lines *in,
                   struct err *err)
{
    char *field[COLUMNS_MAX];
    double number;
    int n = split(in->line, field);
    if (n != s->columns)
        return err_at(err, in->path, in->number, "%d fields, the header has %d", n, s->columns);
    for (int i = s->texts; i < n; i++)
        if (units_parse_f64(field[i], in->path, -HUGE_VAL, HUGE_VAL, &number, err) < 0)
            return -1;
    size_t at = (size_t)p->rows * (size_t)p->columns;
    p->cell = xgrow(p->cell, cap, at + (size_t)n, sizeof *p->cell);
    for (int i = 0; i < n; i++)
        p->cell[at + (size_t)i] = xstrdup(field[i]);
    p->rows++;
    return 0;
}

static int read_rows(struct paper *p, const struct shape *s, struct lines *in, struct err *err)
{
    size_t cap = 0;
    bool headed = false;
    int got;
    while ((got = lines_next(in, err)) > 0) {
        if (in->line[0] == '#')
            continue;
        if (headed && add_row(p, &cap, s, in, err) < 0)
            return -1;
        if (!headed && strcmp(in->line, s->header) != 0)
            return err_at(err, in->path, in->number, "the header must be \"%s\"", s->header);
        headed = true;
    }
    return got;
}

int paper_load(struct paper *p, const char *table, const char *columns, struct err *err)
{
    struct shape s = shape_of(columns);
    struct lines in;
    char path[4096];
    *p = (struct paper){.columns = s.columns};
    bool helix = strncmp(table, helix_folder, strlen(helix_folder)) == 0;
    if (helix)
        table += strlen(helix_folder);
    if (catalog_path(helix ? "helix" : "splash", table, path, sizeof path, err) < 0 ||
        lines_open(&in, path, err) < 0)
        return -1;
    int rc = read_rows(p, &s, &in, err);
    lines_close(&in);
    if (rc < 0)
        paper_release(p);
    return rc;
}

void paper_release(struct paper *p)
{
    for (int i = 0; i < p->rows * p->columns; i++)
        free(p->cell[i]);
    free(p->cell);
    *p = (struct paper){0};
}

const char *paper_text(const struct paper *p, int row, int column)
{
    assert(row >= 0 && row < p->rows && column >= 0 && column < p->columns);
    return p->cell[row * p->columns + column];
}

double paper_number(const struct paper *p, int row, int column)
{
    return strtod(paper_text(p, row, column), NULL);
}

int paper_find(const struct paper *p, const char *first, const char *second)
{
    for (int i = 0; i < p->rows; i++)
        if (strcmp(paper_text(p, i, 0), first) == 0 &&
            (second == NULL || strcmp(paper_text(p, i, 1), second) == 0))
            return i;
    return -1;
}
