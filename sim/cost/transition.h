/* SPDX-License-Identifier: Apache-2.0
 *
 * What a switch adds to the step it runs in (Eq. 7), by mechanism.
 */
#ifndef SIM_COST_TRANSITION_H
#define SIM_COST_TRANSITION_H

#include "sim/cost/cost.h"

enum mechanism {
    MECH_OVERLAPPED, /* layer i moves while layer i-1 computes (SPLASH) */
    MECH_BLOCKING,   /* everything moves before the step */
    MECH_DRAIN,      /* admit nothing, finish the batch, then switch (no KV moves) */
    MECH_RESTART,    /* drain, then load all weights again */
    MECH_FREE,       /* nothing is charged: a lower bound */
    MECH_COUNT
};

extern const char *const mechanism_names[MECH_COUNT];

struct transition {
    int64_t exposed_ps;  /* Eq. 7: first layer + sum of (transfer_i - compute_{i-1})+ */
    int64_t first_ps;    /* the first layer's transfer, of both */
    int64_t blocking_ps; /* sum of all layers' transfers */
    double weights_recv_bytes_per_layer, kv_recv_bytes_per_layer; /* busiest rank */
    double moved_bytes;                                           /* over all ranks and layers */
};

/* `ctx_tokens[ranks]`: live tokens per owner; all 0 after a drain. `step`: cost of the switching
 * step in the destination layout; its stage times over the layers are compute_{i-1}. Recurrent
 * state is counted for one request of each owner that has tokens. */
void transition_cost(const struct cost *c, int from, int to, const int64_t *ctx_tokens,
                     const struct step_cost *step, struct transition *out);

/* What the mechanism charges in the switching step for entering `to`; drain and restart expect an
 * empty batch. */
int64_t transition_charge_ps(const struct cost *c, int to, const struct transition *t,
                             enum mechanism m);

#endif
