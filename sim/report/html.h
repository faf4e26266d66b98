/* SPDX-License-Identifier: Apache-2.0
 *
 * A report as one HTML file that needs nothing else and may fetch nothing: no fonts, no network,
 * and no scripts but those of page.h. Light or dark as the reader's system is; wide tables scroll
 * in their own boxes. Series have both a colour (told apart without red and green) and a shape.
 */
#ifndef SIM_REPORT_HTML_H
#define SIM_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

enum { HTML_SERIES = 6 }; /* after so many, colours and shapes come again */

void html_begin(FILE *out, const char *title);
void html_end(FILE *out);

/* Text with what HTML gives a meaning escaped. */
void html_text(FILE *out, const char *text);
void html_printf(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A paragraph of text. */
void html_p(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Of a <dl>: what it is, and its value. */
void html_fact(FILE *out, const char *label, const char *text);
/* A profile's sources, folded away; nothing where it names none. */
void html_sources(FILE *out, const json_t *source);

/* A table that scrolls sideways when it is too wide; `head` ends with NULL. Then rows of cells. */
void html_table_begin(FILE *out, const char *label, const char *const *head);
void html_table_end(FILE *out);
void html_row(FILE *out);
void html_cell(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Cells of one number each: a share, an error with its sign, a count, a time in milliseconds. */
void html_cell_percent(FILE *out, double frac);
void html_cell_signed(FILE *out, double frac);
void html_cell_count(FILE *out, int64_t n);
void html_cell_ms(FILE *out, double ns);
/* Three digits, or whole where it is that or large; NAN has no value: "-". */
void html_cell_number(FILE *out, double x);

/* Around a table of so many rows: a long one is folded away. */
void html_fold_begin(FILE *out, int rows);
void html_fold_end(FILE *out, int rows);

/* A number in large with what it counts below, inside <div class="tiles">. */
void html_tile(FILE *out, const char *number, const char *what);

/* A list that names the shapes and colours of series. */
void html_legend(FILE *out, const char *const *name, int n);

#endif
