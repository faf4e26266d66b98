/* SPDX-License-Identifier: Apache-2.0
 *
 * A run in progress: all that it holds, one event at a time, and forks of it. A fork is a run of
 * its own from the moment on at which it was made: what either does, the other does not see, and
 * left alone both end alike. Only the engine and its tests include this; others call engine_run().
 */
#ifndef SIM_ENGINE_SIMULATION_H
#define SIM_ENGINE_SIMULATION_H

#include "sim/engine/group.h"
#include "sim/engine/router.h"

/* Groups that do the same, behind a router. */
struct pool {
    struct group *group;
    int64_t n;
    struct router router;
    int64_t *load;
};

struct simulation {
    struct engine engine;
    struct eventq events;
    struct waits waits;
    struct kv_link link;
    struct group *group; /* those that decode, then those that only run prompts */
    struct pool pool[POOL_COUNT];
    int64_t n_requests;
    int64_t now_ps;
    int64_t last_arrival_ps; /* requests that would come later do not */
    /* Of a fork: its copies of the policies, by group, and a config of jumps even where the run is
     * exact. */
    struct policy *policy;
    struct engine_config config;
};

/* Start a run of this input, which is borrowed, as out and err are; s may not be moved. */
void simulation_init(struct simulation *s, const struct engine_input *in, struct run_result *out,
                     struct err *err);
/* The next event; false when there is none, or an error. */
bool simulation_step(struct simulation *s);
/* When there is no other: sum up, check that time was conserved, and release. As engine_run(). */
int simulation_end(struct simulation *s);
void simulation_release(struct simulation *s);
/* The engine's pointers to what the simulation holds. */
void simulation_connect(struct simulation *s);
int64_t simulation_groups(const struct simulation *s);

/* A fork, between two events or where a policy decides, with a result and an error of its own. It
 * has no observer, and its policies no foresight. Ends or is released as its origin is. */
void simulation_fork(struct simulation *fork, const struct simulation *s, struct run_result *out,
                     struct err *err);
/* Where this group's policy decides: fork, let the fork's policy decide and the run go on until all
 * requests that come up to last_arrival_ps have ended. */
void simulation_foresee(const struct simulation *s, int group, int64_t last_arrival_ps,
                        struct outlook *out);

#endif
