/* SPDX-License-Identifier: Apache-2.0
 *
 * The three machines of the paper as wavetank has them, with the four layouts and what the
 * switching studies ran on each: 16 requests of one length.
 */
#ifndef SIM_REPRODUCE_PLATFORM_H
#define SIM_REPRODUCE_PLATFORM_H

#include "sim/cost/transition.h"

enum { PLATFORMS = 3, PLATFORM_LAYOUTS = 4, SWITCH_BATCH = 16 };

struct platform {
    const char *name, *model_name, *cluster_name;
    const char *primitives_table, *switches_table, *throughput_table; /* "figure5", ... */
    int64_t ctx_tokens;       /* of each request that switches */
    double overhead_max_frac; /* what the paper says a switch's p50 stays under */

    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX]; /* tp, cp, dp, dop */
    struct cost *cost;
    int64_t owned_tokens[RANKS_MAX]; /* live tokens of each owner, SWITCH_BATCH requests */
};

/* Platform i of PLATFORMS. Must not be moved afterwards. On failure nothing is held. */
int platform_load(struct platform *p, int i, struct err *err);
void platform_release(struct platform *p);

/* Go on with a model of the layers that hold KV alone. */
void platform_keep_kv_layers(struct platform *p);

/* Live tokens of each owner when so many requests of one length are dealt out in turn. */
void platform_deal(const struct platform *p, int requests, int64_t ctx_tokens,
                   int64_t owned_tokens[RANKS_MAX]);

/* Index of a layout by name. */
int platform_layout(const struct platform *p, const char *name);

#endif
