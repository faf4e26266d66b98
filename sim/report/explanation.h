/* SPDX-License-Identifier: Apache-2.0
 *
 * One batch seen under every layout: memory, step time by stage, and what each switch would move
 * and cost in the next step. Printed as tables or as the JSON of `explain` (docs/metrics.md).
 */
#ifndef SIM_REPORT_EXPLANATION_H
#define SIM_REPORT_EXPLANATION_H

#include <stdio.h>

#include <jansson.h>

#include "sim/cost/transition.h"

/* Equal requests, owned round robin. Decode with one query row each is a decode batch; anything
 * else is a batch of prefill chunks, each the last q tokens of its context. */
struct explained_batch {
    int64_t requests, ctx_tokens, q;
    bool decode;
    int64_t page_tokens;
};

struct explained_layout {
    const char *name;
    double weights_bytes;       /* all weights of one rank */
    double kv_bytes;            /* pages and recurrent state of the busiest rank */
    bool feasible;              /* they fit beside the reserve */
    int64_t max_context_tokens; /* the longest at which as many requests fit (Eq. 1) */
    struct step_cost cost;
};

struct explained_switch {
    enum primitive weights, kv;
    struct transition transition;
};

struct explanation {
    struct explained_batch batch;
    int n;
    struct explained_layout layout[LAYOUT_MAX];
    struct explained_switch change[LAYOUT_MAX][LAYOUT_MAX]; /* [from][to]; unused where equal */
};

/* 1 <= q <= ctx_tokens and requests >= 1. Names are borrowed from `cost`. */
void explanation_make(struct explanation *e, const struct cost *cost,
                      const struct explained_batch *batch);
json_t *explanation_json(const struct explanation *e);
void explanation_print(const struct explanation *e, FILE *out);

#endif
