/* SPDX-License-Identifier: Apache-2.0
 *
 * Every mapping times every batch that fits. The space is cut into chunks, one a mapping, numbered
 * 0 to n - 1, each of which can be searched by anyone, alone; partial results merge into the same
 * result whatever the order. Processes share out the chunks, and threads those of one process.
 */
#ifndef SIM_PARETO_SEARCH_H
#define SIM_PARETO_SEARCH_H

#include "sim/base/progress.h"
#include "sim/base/ranks.h"
#include "sim/pareto/decode.h"
#include "sim/pareto/frontier.h"

struct search {
    struct decode_machine machine;
    int64_t context_tokens;
    int64_t min_batch, max_batch; /* besides, what memory holds */
    bool hopb;                    /* try sub-batches too */
    bool all;                     /* also what is known beforehand to be beaten */
    struct mapping *mapping;
    size_t n;
};

/* Enumerate the mappings of `families` (bits) on each number of GPUs; released by the caller. */
void search_init(struct search *s, const struct decode_machine *machine, unsigned families,
                 const int *gpus, int n_gpus);
void search_release(struct search *s);

/* A batch after `batch`: every one up to 256, then 128 to each doubling. */
int64_t search_next_batch(int64_t batch);

/* One frontier a family; Helix with sub-batches is apart, so that what they buy shows. */
enum { SEARCH_HOPB = FAMILY_COUNT, SEARCH_SETS };

struct search_result {
    struct frontier set[SEARCH_SETS];
    int64_t configs; /* costed */
    int64_t skipped; /* sub-batches that could not have helped: bounded, not costed */
};

void search_result_release(struct search_result *r);
void search_result_merge(struct search_result *into, const struct search_result *from);

/* Told of every configuration that is costed, in the order of their numbers. */
typedef void search_visit_fn(void *arg, const struct pareto_point *p, const struct decode_step *t);

/* Search one chunk; `visit` may be NULL. What is skipped depends on this chunk alone. */
void search_chunk(const struct search *s, size_t chunk, struct search_result *r,
                  search_visit_fn *visit, void *arg);

/* Who searches: some threads in each of the processes. */
struct searchers {
    struct ranks ranks;
    int threads; /* 0: one a processor, or one where there are several processes */
};

/* Chunks that fall to this process: each takes every n-th, so that none need ask for work. */
int64_t search_share(const struct search *s, const struct ranks *ranks);

/* All chunks. Every process must call it; rank 0 has the whole result, the others what they found.
 * `progress` may be NULL; it counts this process's chunks. */
void search_run(const struct search *s, const struct searchers *by, struct progress *progress,
                struct search_result *r);

/* The union of the families in `families` (bits), Helix with all its sub-batches. */
void search_union(const struct search_result *r, unsigned families, struct frontier *out);

#endif
