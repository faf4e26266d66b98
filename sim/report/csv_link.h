/* SPDX-License-Identifier: Apache-2.0
 *
 * A CSV file inside a page, as a link: no script writes it, and nothing is fetched.
 */
#ifndef SIM_REPORT_CSV_LINK_H
#define SIM_REPORT_CSV_LINK_H

#include <stdbool.h>
#include <stdio.h>

struct csv_link {
    FILE *rows; /* open from csv_link_begin() to csv_link_end(): write the file here */
    char *text;
    size_t size;
    bool in_row; /* cells of the row at hand are there already */
};

void csv_link_begin(struct csv_link *l);
/* Cells of the rows: text, or a number in nine digits, each with the comma before all but a row's
 * first. A number that is NAN leaves its cell empty. */
void csv_link_text(struct csv_link *l, const char *text);
void csv_link_number(struct csv_link *l, double x);
void csv_link_row_end(struct csv_link *l);
/* Writes the link; the file's name is made of the first words of `title`. */
void csv_link_end(struct csv_link *l, const char *title, FILE *out);

#endif
