/* SPDX-License-Identifier: Apache-2.0
 *
 * What people read after a run: a table of the policies, what each switching policy gained over the
 * fixed layouts, and one sentence that says who won. Gains are in mean E2E latency; a run that
 * completed more requests always ranks above one that completed fewer.
 */
#ifndef SIM_REPORT_SUMMARY_H
#define SIM_REPORT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/engine/engine.h"

struct summary_row {
    const char *policy; /* "fixed:dp", "splash:margin=0.1", "best-fixed:dp" */
    int fixed_layout;   /* of a fixed policy, best-fixed included; else -1 */
    bool in_hindsight;  /* best-fixed */
    const struct run_result *result;
    bool looks_ahead; /* an oracle, which nobody can serve with */
};

struct summary {
    const struct summary_row *row;
    int n;
    const struct layout *layouts;
    int n_layouts;
    bool has_slo; /* show goodput */
};

/* More completed first, then the smaller mean E2E latency. */
bool summary_is_better(const struct run_result *a, const struct run_result *b);

/* What regret is against: the best of best-fixed and the oracles among the rows; NULL without any.
 */
const struct run_result *summary_yardstick(const struct summary *s);
/* How much longer mean E2E latency is than the yardstick's, as a share of that: below 0 where it is
 * shorter. False when unlike numbers of requests completed, or none. */
bool summary_regret(const struct run_result *r, const struct run_result *yardstick, double *frac);

/* The table of runs, with regret when an oracle ran, the gains over fixed layouts when another
 * policy ran, notes on what the tables leave out (rejections, preemptions, switches), and the
 * verdict; lines of words are broken at TABLE_WIDTH. */
void summary_print(const struct summary *s, FILE *out);

/* The verdict alone, one sentence; it says so when there is nothing to compare. */
void summary_print_verdict(const struct summary *s, FILE *out);

#endif
