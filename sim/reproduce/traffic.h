/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads that cross the paper's regimes, since it describes none. The same requests on every
 * platform, which all can hold.
 */
#ifndef SIM_REPRODUCE_TRAFFIC_H
#define SIM_REPRODUCE_TRAFFIC_H

#include "sim/engine/engine.h"

enum { TRAFFIC_KINDS = 4 };

struct traffic {
    const char *name;
    int64_t n;
    struct engine_request *request;
    uint32_t *after;      /* what they wait for, or NULL */
    uint64_t *hash;       /* of blocks of prompts that grow, or NULL */
    int64_t block_tokens; /* 0 without */
};

/* rollout_64k, rollout_128k: 256 prompts of that length at once; after every 1,024 tokens half of
 * the answers end, until one is left. agentic: 32 sessions of 16 turns, whose prompts grow by
 * 8,192 tokens a turn to 128K and are cached. mixed: 256 prompts at once, evenly of 1K, 2K, 4K, ...
 * 128K. */
void traffic_make(struct traffic *t, int kind);
void traffic_release(struct traffic *t);

#endif
