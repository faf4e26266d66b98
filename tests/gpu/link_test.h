/* SPDX-License-Identifier: Apache-2.0
 *
 * What one rank of test_link works with, and the cases that need more than a few lines. Cases
 * return 0, or -1 with what went wrong in t->err.
 */
#ifndef TESTS_GPU_LINK_TEST_H
#define TESTS_GPU_LINK_TEST_H

#include "replay/cuda/gpu.h"
#include "replay/cuda/link.h"
#include "sim/base/rng.h"
#include "tests/gpu/forked.h"
#include "tests/gpu/traffic.h"

enum { SUM_ROOM = 18 << 20 /* numbers */, POISON = 0xff };

struct options {
    enum link_transport transport;
    bool share;
    int iterations;
};

/* What uses one channel. Exchanges go into two arrays in turns: while one is written, the other is
 * poisoned for the next, as the contract of link_run() asks. */
struct track {
    enum link_channel channel;
    int round;
    cudaStream_t stream[2];
    unsigned char *from, *to[2];                   /* device */
    unsigned char *source, *got[2], *want, *scrap; /* host, the first two pinned */
    struct traffic traffic;
    struct link_exchange *exchange;
};

struct test {
    struct forked *f;
    const struct options *o;
    struct link *link;
    struct track track[LINK_CHANNELS];
    uint16_t *x, *x_host;   /* [SUM_ROOM + SUM_MARGIN], in the arena and pinned */
    struct rng common, own; /* the same draws on every rank, and this rank's */
    struct err err;
};

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        if (gpu_try((call), #call, &t->err) < 0)                                                   \
            return -1;                                                                             \
    } while (0)

int test_open(struct test *t);
int random_delay(struct test *t, cudaStream_t stream);
/* Wait for all streams; fails when the link has seen an error. */
int sync_streams(struct test *t);

int test_small_exchanges(struct test *t);
int test_large_exchanges(struct test *t);
int test_graphs(struct test *t);

enum { SUM_MARGIN = 16 };
int test_sums(struct test *t);
int test_many_sums(struct test *t);
/* Numbers [shift, shift + n) of x become new ones, then the sum; x_host is what x then is. */
int sum_upload(struct test *t, int64_t n, int shift, uint64_t seed, cudaStream_t stream);
int sum_download(struct test *t, int64_t n, cudaStream_t stream);
int sum_compare(struct test *t, int64_t n, int shift, uint64_t seed);

#endif
