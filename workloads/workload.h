/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators of traces, one const table entry each. A generator reads what its preset says and
 * draws a trace from it: the same preset, sizes and seed give the same trace.
 */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include "sim/base/json.h"
#include "sim/base/rng.h"
#include "traces/trace.h"

#define WORKLOAD_REQUESTS_MAX 100000000LL
/* Of all requests together, each counted with every block of its prompt, as files hold them. */
#define WORKLOAD_HASHES_MAX (1LL << 29)

struct workload_ask {
    int64_t count;        /* sessions, steps or documents; 0: as the preset says */
    double rate_per_s;    /* of sessions or documents; 0: as the preset says */
    int64_t block_tokens; /* per hash; 0: no hashes */
    uint64_t seed;
};

struct workload {
    const char *name;   /* "agentic"; the trace's format */
    const char *preset; /* when none is named */
    const char *what;   /* one line for lists */
    /* Read all of the preset but what catalog_open() and "workload" are; add every request. */
    int (*generate)(struct trace *t, struct jobj *preset, const struct workload_ask *ask,
                    struct err *err);
};

extern const struct workload workload_agentic, workload_rollout, workload_longdoc;
extern const struct workload *const workloads[]; /* NULL-terminated */

/* NULL with a message. */
const struct workload *workload_find(const char *name, struct err *err);
/* A trace as trace_load() leaves it, under the preset's name; refuses a preset of another
 * workload. `preset` is the document's root, of which nothing but the head has been read. */
int workload_make(struct trace *t, const struct workload *w, const char *name, struct jobj *preset,
                  const struct workload_ask *ask, struct err *err);

/* For generators: an independent stream for one purpose ("arrivals") of one workload. */
void workload_stream(struct rng *r, const struct workload *w, const char *purpose, uint64_t seed);
/* What a trace has grown to. */
struct workload_size {
    size_t n; /* requests that were counted */
    int64_t n_hashes;
};
/* After every request: whether what was added since the last call still fits in. */
int workload_check_size(struct workload_size *size, const struct trace *t, struct err *err);

#endif
