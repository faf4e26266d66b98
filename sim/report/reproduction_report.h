/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's numbers beside ours, as text, Markdown and JSON.
 */
#ifndef SIM_REPORT_REPRODUCTION_REPORT_H
#define SIM_REPORT_REPRODUCTION_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "sim/report/percent.h"
#include "sim/reproduce/reproduction.h"

enum { REPRODUCTION_VERDICT_SIZE = 80 };

/* A sentence; in `buf`, which is returned. Empty without exact rows. */
char *reproduction_verdict(const struct reproduction *r, char buf[REPRODUCTION_VERDICT_SIZE]);
/* Whether a section is the first of its publication. */
bool reproduction_opens(const struct reproduction *r, int section);

/* What a row's last columns show; "" for nothing. */
struct row_text {
    char error[PERCENT_SIZE], goal[32];
    const char *word; /* exact, DIFFERS, met, missed, or the row's note */
};
void row_text(const struct row *row, struct row_text *out);

void reproduction_print(const struct reproduction *r, FILE *out);
/* docs/fidelity.md. */
void reproduction_markdown(const struct reproduction *r, FILE *out);
/* New reference. */
json_t *reproduction_json(const struct reproduction *r);

#endif
