/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in a CSV file (RFC 4180).
 */
#ifndef SIM_REPORT_CSV_CELL_H
#define SIM_REPORT_CSV_CELL_H

#include <stdio.h>

/* The text as one cell, in quotes where it needs them. */
void csv_cell(const char *text, FILE *out);

#endif
