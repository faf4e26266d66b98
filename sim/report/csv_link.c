/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/csv_link.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "sim/report/csv_cell.h"

enum { NAME_CHARS_MAX = 48 };

void csv_link_begin(struct csv_link *l)
{
    *l = (struct csv_link){0};
    l->rows = open_memstream(&l->text, &l->size);
}

static void next_cell(struct csv_link *l)
{
    if (l->in_row)
        fputc(',', l->rows);
    l->in_row = true;
}

void csv_link_text(struct csv_link *l, const char *text)
{
    next_cell(l);
    csv_cell(text, l->rows);
}

void csv_link_number(struct csv_link *l, double x)
{
    next_cell(l);
    if (!isnan(x))
        fprintf(l->rows, "%.9g", x);
}

void csv_link_row_end(struct csv_link *l)
{
    fputc('\n', l->rows);
    l->in_row = false;
}

/* "Figure 5a, B200: ..." to "figure-5a-b200". */
static void write_name(const char *title, FILE *out)
{
    int n = 0;
    for (; *title != '\0' && *title != ':' && *title != '.' && n < NAME_CHARS_MAX; title++) {
        if (isalnum((unsigned char)*title)) {
            fputc(tolower((unsigned char)*title), out);
            n++;
        } else if (n > 0 && isalnum((unsigned char)title[1])) {
            fputc('-', out);
        }
    }
}

static void write_escaped(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (isalnum((unsigned char)*text) || *text == ',' || *text == '.' || *text == '-')
            fputc(*text, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*text);
    }
}

void csv_link_end(struct csv_link *l, const char *title, FILE *out)
{
    fclose(l->rows);
    fputs("<a class=\"csv\" download=\"", out);
    write_name(title, out);
    fputs(".csv\" href=\"data:text/csv;charset=utf-8,", out);
    write_escaped(l->text, out);
    fputs("\">Data as CSV</a>", out);
    free(l->text);
    *l = (struct csv_link){0};
}
