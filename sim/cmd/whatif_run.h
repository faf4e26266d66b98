/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of `wavetank whatif`, simulated as it stands and searched for the edge of what it meets:
 * the highest rate of arrivals, and the fewest GPUs.
 */
#ifndef SIM_CMD_WHATIF_RUN_H
#define SIM_CMD_WHATIF_RUN_H

#include "sim/cmd/whatif_file.h"
#include "sim/report/whatif_report.h"

/* Simulate the case and fill in the row but for what is found; it is a zeroed one, borrows from
 * the case, and wants whatif_row_release() in any case. */
int whatif_answer(const struct whatif_case *c, struct whatif_row *row, struct err *err);
/* The answer to `question`, which must have an SLO. The case's own rate, or its own number of
 * groups, plays no part. `report` says how far and how finely to search. */
int whatif_find(const struct whatif_case *c, enum whatif_question question,
                const struct whatif_report *report, int extra, struct bisection_result *found,
                struct err *err);
void whatif_row_release(struct whatif_row *row);

#endif
