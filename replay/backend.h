/* SPDX-License-Identifier: Apache-2.0
 *
 * What executes a plan's steps on one rank: the seam between the driver and the host or the GPUs.
 * Calls are collective over the ranks of the run unless they say otherwise.
 */
#ifndef REPLAY_BACKEND_H
#define REPLAY_BACKEND_H

#include "hw/collective.h"
#include "replay/comm.h"
#include "replay/slice.h"
#include "sim/layout/layout.h"
#include "sim/plan/plan.h"

struct driver_job;

/* Options that only some backends know. */
struct backend_options {
    int transport;        /* enum link_transport */
    int64_t transfer_sms; /* for a switch under way beside computation */
    int64_t repeats;      /* of a step without a switch, for p50 and p95 */
    int64_t enough_ms;    /* so long, and five of them are enough (0: all) */
    int64_t delay_us;     /* random waits up to this before exchanges, to shake out races */
    bool eager;           /* no CUDA graphs */
    bool unchecked;       /* no comparison with the reference, no poison */
};

/* A rank's, of a step's repeats, each key on its own; and of the first of several (else 0) all. */
struct backend_times {
    struct plan_times p50, p95;
    int64_t first_ns;
};

/* A collective by itself, as one rank saw it. */
struct backend_collective {
    enum collective op;
    int64_t bytes; /* as hw/collective.h counts them */
    double us;
};

/* Take the index-th; in the same order on every rank. */
typedef void backend_collective_fn(void *context, int index, const struct backend_collective *one);

struct backend {
    const char *name;

    /* Refuse, saying why, a slice that it cannot run; before the ranks start. A job without steps
     * asks whether it is there at all. Not collective. */
    int (*check)(const struct driver_job *job, const char *path, struct err *err);

    /* A rank under the first layout, with no requests. `local_rank` picks its device. */
    int (*open)(void **self, const struct driver_job *job, const struct layout *l,
                struct comm *comm, int local_rank, struct err *err);
    void (*close)(void *self);

    /* Whether the request stands where these rows begin, or where they end (they run once more),
     * with this owner, or is not there at all. Not collective. */
    bool (*continues)(void *self, const struct plan_row *row);
    /* Drop a request, on every rank alike; nothing when there is none. Sends nothing. */
    void (*forget)(void *self, int64_t req);

    /* Change the layout before the clock starts. */
    int (*enter)(void *self, const struct layout *to, struct err *err);
    /* Run a step under `to`: when that is not the layout in force, the switch is part of it. */
    int (*step)(void *self, const struct plan_step *s, const struct layout *to,
                struct backend_times *times, struct err *err);
    /* The last step's outputs against the reference: *error on rank 0 the largest, relative (what
     * to, the backend says), else 0. Fails when it is too large to be rounding. */
    int (*compare)(void *self, double *error, struct err *err);

    /* Time collectives by themselves, with no rank open, as replay/collectives.h says. NULL: its
     * exchanges say nothing of a network. */
    int (*collectives)(const struct backend_options *options, struct comm *comm, int local_rank,
                       backend_collective_fn *deliver, void *context, struct err *err);
};

extern const struct backend backend_host;
/* Where it is not built in, its check() says how to get it. */
extern const struct backend backend_cuda;

#endif
