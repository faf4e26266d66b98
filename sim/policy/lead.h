/* SPDX-License-Identifier: Apache-2.0
 *
 * Who leads whom: the comparison that greedy and splash share. A candidate leads the current layout
 * when its score is below (1 - margin) times the current one's.
 */
#ifndef SIM_POLICY_LEAD_H
#define SIM_POLICY_LEAD_H

#include "sim/policy/policy.h"

enum { PPM = 1000000 };

struct lead {
    int pick;     /* the best leader that fits; the current layout when none leads */
    int wanted;   /* the best leader, whether it fits or not */
    int64_t hold; /* steps for which pick and wanted stay the same while contexts grow */
};

/* margin_ppm[l]: lead that candidate l needs over the current layout, in millionths of the current
 * step time. When the current layout itself does not fit, the best that does is picked outright. */
struct lead lead_find(const struct policy_view *view, const int64_t *margin_ppm);

#endif
