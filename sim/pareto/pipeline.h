/* SPDX-License-Identifier: Apache-2.0
 *
 * Two resources, one behind the other: computing, and the link. Part i's exchange starts when its
 * compute and the exchange before it have ended (HOP-B: parts are sub-batches of attention).
 */
#ifndef SIM_PARETO_PIPELINE_H
#define SIM_PARETO_PIPELINE_H

enum { PIPELINE_PARTS_MAX = 16 };

struct pipeline_part {
    double compute_s, exchange_s;
};

/* When a part was on each resource. */
struct pipeline_span {
    double compute_start_s, compute_end_s, exchange_start_s, exchange_end_s;
};

/* When the last exchange of n parts ends; `span`, of n, may be NULL. 8 x (2.0, 1.2) end at 17.2, as
 * one part (16.0, 9.6) at 25.6 (Fig. 3 of the Helix paper). */
double pipeline_end_s(const struct pipeline_part *part, int n, struct pipeline_span *span);

#endif
