/* SPDX-License-Identifier: Apache-2.0
 *
 * What overlapping attention and exchange by sub-batches gains (HOP-B of the Helix paper, section
 * 2.1.3), measured and predicted: the same requests under layouts that differ in "hopb=N" alone.
 */
#ifndef SIM_STUDY_HOPB_TRIALS_H
#define SIM_STUDY_HOPB_TRIALS_H

#include "sim/study/layout_order.h"

/* A batch under a layout, in one piece or in sub-batches. A gain is the time in one piece / this
 * time - 1: below 0 it loses; NAN in one piece. */
struct hopb_trial {
    int step, layout; /* of the join: its group's first step; the layout in one piece */
    int sub_batches;
    int64_t pred_ns, meas_ns;
    double pred_gain, gain;
    bool misjudged; /* predicted to gain where it loses, or the reverse, by 2% or more measured */
};

struct hopb_trials {
    struct hopb_trial *trial; /* in one piece, then by sub-batches, and so on */
    int n;
    int comparisons; /* trials of more than one sub-batch; of these, */
    int losses, misjudged;
};

/* In each group of the layout order, every layout that ran both in one piece and in sub-batches. */
void hopb_trials_init(struct hopb_trials *t, const struct joined *j, const struct layout_order *o);
void hopb_trials_release(struct hopb_trials *t);

/* The trial that loses most; that of the misjudged ones with the largest gain or loss. NULL
 * without any. */
const struct hopb_trial *hopb_trials_loss(const struct hopb_trials *t);
const struct hopb_trial *hopb_trials_misjudged(const struct hopb_trials *t);

#endif
