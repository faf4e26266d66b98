/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/link_test.h"

#include <string.h>

static float to_float(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Number i of a rank: between 2^-3 and 2 in size, either sign. */
static uint16_t number(uint64_t seed, int rank, int64_t i)
{
    uint64_t h = seed * 0x9e3779b97f4a7c15 + (uint64_t)rank * 0xbf58476d1ce4e5b9 + (uint64_t)i;
    h = (h ^ h >> 31) * 0x94d049bb133111eb;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9;
    return (uint16_t)(((h >> 40) & 0x81ff) | 0x3e00);
}

int sum_upload(struct test *t, int64_t n, int shift, uint64_t seed, cudaStream_t stream)
{
    size_t bytes = (size_t)(n + SUM_MARGIN) * sizeof *t->x;
    memset(t->x_host, POISON, bytes);
    for (int64_t i = 0; i < n; i++)
        t->x_host[shift + i] = number(seed, t->f->rank, i);
    CUDA(cudaMemcpyAsync(t->x, t->x_host, bytes, cudaMemcpyHostToDevice, stream));
    return 0;
}

int sum_download(struct test *t, int64_t n, cudaStream_t stream)
{
    size_t bytes = (size_t)(n + SUM_MARGIN) * sizeof *t->x;
    CUDA(cudaMemcpyAsync(t->x_host, t->x, bytes, cudaMemcpyDeviceToHost, stream));
    return 0;
}

/* One rounding at the end, or one whenever a rank's number is added. */
static double tolerance(const struct test *t, double sum, double sum_of_sizes)
{
    return (t->o->transport == LINK_DIRECT ? (sum < 0 ? -sum : sum) : sum_of_sizes) / 256;
}

static int compare_number(struct test *t, int64_t i, uint64_t seed, uint16_t bits)
{
    double want = 0, sizes = 0, got = (double)to_float(bits);
    for (int r = 0; r < t->f->ranks; r++) {
        double part = (double)to_float(number(seed, r, i));
        want += part;
        sizes += part < 0 ? -part : part;
    }
    if (got - want <= tolerance(t, want, sizes) && want - got <= tolerance(t, want, sizes))
        return 0;
    return err_run(&t->err, "number %lld is %g instead of %g", (long long)i, got, want);
}

static int compare_bits(struct test *t, uint64_t mine)
{
    uint64_t hash[FORKED_MAX];
    size_t each[FORKED_MAX];
    for (int r = 0; r < t->f->ranks; r++)
        each[r] = sizeof mine;
    hash[t->f->rank] = mine;
    if (comm_all_gather(&t->f->comm, hash, each, &t->err) < 0)
        return -1;
    for (int r = 0; r < t->f->ranks; r++)
        if (hash[r] != mine)
            return err_run(&t->err, "rank %d has other bits", r);
    return 0;
}

int sum_compare(struct test *t, int64_t n, int shift, uint64_t seed)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < n + SUM_MARGIN; i++) {
        bool in_x = i >= shift && i < shift + n;
        uint16_t bits = t->x_host[i];
        if (in_x && compare_number(t, i - shift, seed, bits) < 0)
            return -1;
        if (!in_x && bits != 0xffff)
            return err_run(&t->err, "number %lld of %lld was written", (long long)i - shift,
                           (long long)n);
        hash = (hash ^ bits) * 0x100000001b3;
    }
    return compare_bits(t, hash);
}

static int one_sum(struct test *t, int64_t n, int shift, uint64_t seed, enum link_channel channel)
{
    cudaStream_t stream = t->track[channel].stream[rng_range(&t->own, 0, 1)];
    if (sum_upload(t, n, shift, seed, stream) < 0 || random_delay(t, stream) < 0 ||
        link_all_reduce(t->link, t->x + shift, n, channel, stream, &t->err) < 0 ||
        sum_download(t, n, stream) < 0 || sync_streams(t) < 0)
        return -1;
    return sum_compare(t, n, shift, seed);
}

int test_sums(struct test *t)
{
    static const int64_t sizes[] = {2,     8,      10,     1000,    1026,    7168,
                                    65536, 100000, 458752, 1048578, 4194304, 17000010};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int k = 0; k < 4; k++)
            if (one_sum(t, sizes[i], k < 2 ? 0 : 2, 10 * i + (size_t)k, k % 2) < 0)
                return -1;
    return 0;
}

int test_many_sums(struct test *t)
{
    for (int i = 0; i < t->o->iterations / 2; i++) {
        int64_t n = 2 * rng_range(&t->common, 1, rng_range(&t->common, 0, 7) ? 8192 : 300000);
        int shift = 2 * (int)rng_range(&t->common, 0, 4);
        if (one_sum(t, n, shift, 1000 + (uint64_t)i, rng_range(&t->common, 0, 1)) < 0)
            return -1;
    }
    return 0;
}
