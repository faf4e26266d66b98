/* SPDX-License-Identifier: Apache-2.0
 *
 * What pages with charts that can be hovered and zoomed have beside html.h: their data as JSON,
 * places for the charts, and the script that draws them, with Apache ECharts where the build has it
 * ("make charts"). Without it, and without scripts, the tables still say everything.
 */
#ifndef SIM_REPORT_PAGE_H
#define SIM_REPORT_PAGE_H

#include <stdio.h>

#include <jansson.h>

/* What a page is of: a line each. */
struct page_fact {
    const char *label, *text;
};

/* All borrowed. */
struct page_about {
    const struct page_fact *fact; /* ends with a NULL label */
    const char *version, *command;
    const json_t *profile_source; /* where its numbers come from: array of strings, or NULL */
    const json_t *options;        /* object of all that were in force, or NULL */
};

/* The facts, then profile and options folded away. */
void page_about(const struct page_about *a, FILE *out);

/* A chart that the page's script knows by its name; `meaning` defines what it shows. */
void page_figure(FILE *out, const char *name, const char *title, const char *meaning);

/* Data of that script, under an id, with so many significant digits. */
void page_data(FILE *out, const char *id, const json_t *data, int digits);

/* After figures and data: the library, or that it is missing; report.js; and the page's own script,
 * an asset such as "report_sim.js". */
void page_scripts(FILE *out, const char *own);

#endif
