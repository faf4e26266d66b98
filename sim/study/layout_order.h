/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the simulator ranks layouts as the machine does. A group is a run of steps of the same
 * requests with the same query rows, and contexts within 1% in all, under different layouts: what
 * `wavetank plan compare` makes. The simulator's pick is the layout that it predicts to be fastest.
 */
#ifndef SIM_STUDY_LAYOUT_ORDER_H
#define SIM_STUDY_LAYOUT_ORDER_H

#include "sim/study/joined.h"

enum order_verdict {
    ORDER_RIGHT, /* the pick was measured fastest */
    ORDER_TIE,   /* another was, by less than 2% */
    ORDER_WRONG,
    ORDER_VERDICT_COUNT
};

extern const char *const order_verdict_names[ORDER_VERDICT_COUNT]; /* "right", "tie", "wrong" */

struct order_member {
    int layout;
    int64_t pred_ns, meas_ns;
};

struct order_group {
    int first, end; /* steps of the join, end excluded */
    struct order_member *member;
    int n;
    int pick, fastest; /* members: predicted and measured fastest */
    enum order_verdict verdict;
    double tau;    /* Kendall's, over all pairs: (concordant - discordant) / pairs */
    double regret; /* measured time of the pick / measured time of the fastest - 1 */
};

struct layout_order {
    struct order_group *group;
    int n;
    int verdicts[ORDER_VERDICT_COUNT];
    double agreement;   /* (right + tie) / groups; NAN without groups, as the two means are */
    double tau, regret; /* means over groups */
};

/* A group ends where a layout comes again; only a step that goes on in the layout just switched to
 * stays in it. Compared are steps of one kind, without a switch or target-ready, whichever more
 * layouts of the group have. Steps with a switch inside do not count. */
void layout_order_init(struct layout_order *o, const struct joined *j);
void layout_order_release(struct layout_order *o);

#endif
