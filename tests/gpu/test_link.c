/* SPDX-License-Identifier: Apache-2.0
 *
 * The link between GPUs: test_link RANKS nccl|direct [--share] [ITERATIONS]. Random exchanges
 * against what the boxes say, sums against double, ranks that come late and ranks that die.
 * --share puts several ranks on one GPU where there are too few, which NCCL refuses.
 */
#include "tests/gpu/link_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unistd.h>

#include "kernels/values.h"

enum { WAIT_S = 10 /* a rank must be gone this long after another died */ };

/* Each rank in turn comes late; no other may leave before it came. */
static int test_barrier(struct test *t)
{
    enum { LATE_NS = 30000000 };
    cudaEvent_t start, stop;
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));
    for (int i = 0; i < LINK_CHANNELS * t->f->ranks; i++) {
        enum link_channel channel = i % LINK_CHANNELS;
        cudaStream_t stream = t->track[channel].stream[0];
        float ms;
        if (comm_barrier(&t->f->comm, &t->err) < 0)
            return -1;
        CUDA(cudaEventRecord(start, stream));
        if (t->f->rank == i / LINK_CHANNELS)
            CUDA(values_delay(LATE_NS, stream));
        if (link_barrier(t->link, channel, stream, &t->err) < 0)
            return -1;
        CUDA(cudaEventRecord(stop, stream));
        if (sync_streams(t) < 0)
            return -1;
        CUDA(cudaEventElapsedTime(&ms, start, stop));
        if (ms < 0.8e-6f * LATE_NS)
            return err_run(&t->err, "left a barrier after %.3f ms, before rank %d came", (double)ms,
                           i / LINK_CHANNELS);
    }
    CUDA(cudaEventDestroy(start));
    CUDA(cudaEventDestroy(stop));
    return 0;
}

/* Returns whether it is right everywhere. */
static bool run_case(struct test *t, const char *name, int (*body)(struct test *t))
{
    double start_s = forked_now_s(), failed = 0;
    if (body(t) < 0) {
        fprintf(stderr, "rank %d: %s: FAILED: %s\n", t->f->rank, name, t->err.text);
        return false;
    }
    if (comm_all_reduce(&t->f->comm, &failed, 1, &t->err) < 0)
        failed = 1;
    if (t->f->rank == 0)
        printf("%s: %s (%.1f s)\n", name, failed == 0 ? "ok" : "FAILED", forked_now_s() - start_s);
    fflush(stdout);
    return failed == 0;
}

static int be_well(struct forked *f)
{
    struct test t = {.f = f, .o = f->arg, .err = ERR_NONE};
    double start_s = forked_now_s();
    if (test_open(&t) < 0) {
        fprintf(stderr, "rank %d: opening: FAILED: %s\n", f->rank, t.err.text);
        return 1;
    }
    if (f->rank == 0)
        printf("opening: ok (%.1f s): %s, %.0f GB/s one way to the next rank\n",
               forked_now_s() - start_s, link_description(t.link), link_gb_per_s(t.link));
    bool ok = run_case(&t, "barrier", test_barrier) &&
              run_case(&t, "sums of all sizes", test_sums) &&
              run_case(&t, "small exchanges on every channel", test_small_exchanges) &&
              run_case(&t, "many sums", test_many_sums) &&
              run_case(&t, "graphs beside eager transfers", test_graphs) &&
              run_case(&t, "large exchanges on every channel", test_large_exchanges);
    if (!ok)
        return 1;
    link_close(t.link);
    return 0;
}

static void *abort_link(void *link)
{
    link_abort(link);
    return NULL;
}

static bool is_idle(struct test *t)
{
    bool idle = true;
    for (int c = 0; c < LINK_CHANNELS; c++)
        idle &= cudaStreamQuery(t->track[c].stream[0]) != cudaErrorNotReady;
    return idle;
}

static void nap(void)
{
    const struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

/* Wait for a rank that died, on every channel. */
static int miss_a_rank(struct test *t)
{
    for (int c = 0; c < LINK_CHANNELS; c++)
        if (link_barrier(t->link, (enum link_channel)c, t->track[c].stream[0], &t->err) < 0)
            return -1;
    for (double end_s = forked_now_s() + 1; forked_now_s() < end_s; nap())
        if (is_idle(t))
            return err_run(&t->err, "did not wait for the dead rank");
    return 0;
}

static int live_or_die(struct test *t)
{
    if (test_open(t) < 0 || comm_barrier(&t->f->comm, &t->err) < 0)
        return -1;
    if (t->f->rank == t->f->ranks - 1)
        raise(SIGKILL);
    return miss_a_rank(t);
}

static int end_with(struct test *t, int result)
{
    if (result < 0)
        fprintf(stderr, "rank %d: FAILED: %s\n", t->f->rank, t->err.text);
    fflush(NULL);
    _exit(result < 0 ? 1 : 0);
}

/* The host finds out and lets go. */
static int be_aborted(struct forked *f)
{
    struct test t = {.f = f, .o = f->arg, .err = ERR_NONE};
    struct err reason = ERR_NONE;
    pthread_t thread;
    int result = live_or_die(&t);
    if (result == 0) {
        pthread_create(&thread, NULL, abort_link, t.link);
        for (double end_s = forked_now_s() + 5; forked_now_s() < end_s && !is_idle(&t);)
            nap();
        if (!is_idle(&t) && t.o->transport == LINK_DIRECT)
            result = err_run(&t.err, "still waits after the abort");
        if (link_check(t.link, &reason) == 0)
            result = err_run(&t.err, "link_check() finds nothing after the abort");
    }
    return end_with(&t, result);
}

/* Nobody lets go: the kernels themselves give up. */
static int be_left_alone(struct forked *f)
{
    struct test t = {.f = f, .o = f->arg, .err = ERR_NONE};
    struct err reason = ERR_NONE;
    int result = live_or_die(&t);
    double start_s = forked_now_s() - 1;
    if (result == 0) {
        while (!is_idle(&t) && forked_now_s() < start_s + WAIT_S + 5)
            nap();
        double waited_s = forked_now_s() - start_s;
        if (!is_idle(&t) || waited_s < WAIT_S / 2)
            result = err_run(&t.err, "gave up after %.1f s", waited_s);
        else if (link_check(t.link, &reason) == 0)
            result = err_run(&t.err, "link_check() does not say that a rank is late");
        else
            printf("rank %d after %.1f s: %s\n", f->rank, waited_s, reason.text);
    }
    return end_with(&t, result);
}

/* All but the last rank, which killed itself, must have ended well and in time. */
static int run_death(int ranks, struct options *o, const char *name, double limit_s,
                     int (*body)(struct forked *f))
{
    struct forked_end end[FORKED_MAX];
    int bad = 0;
    forked_run(ranks, o->share, 60, body, o, end);
    double died_s = end[ranks - 1].after_s, last_s = 0;
    for (int r = 0; r < ranks - 1; r++)
        last_s = end[r].after_s > last_s ? end[r].after_s : last_s;
    bad = forked_verdict(ranks - 1, end) != 0 || last_s - died_s > limit_s;
    printf("%s: %s (the others ended %.1f s later)\n", name, bad ? "FAILED" : "ok",
           last_s - died_s);
    return bad;
}

static bool parse(int argc, char **argv, int *ranks, struct options *o)
{
    if (argc < 3)
        return false;
    *ranks = atoi(argv[1]);
    o->transport = strcmp(argv[2], "nccl") == 0 ? LINK_NCCL : LINK_DIRECT;
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], "--share") == 0)
            o->share = true;
        else
            o->iterations = atoi(argv[i]);
    return *ranks >= 2 && *ranks <= FORKED_MAX && o->iterations > 0 &&
           strcmp(argv[2], link_transport_names[o->transport]) == 0;
}

int main(int argc, char **argv)
{
    int ranks;
    struct options o = {.iterations = 1000};
    struct forked_end end[FORKED_MAX];
    if (!parse(argc, argv, &ranks, &o)) {
        fprintf(stderr, "usage: test_link RANKS nccl|direct [--share] [ITERATIONS]\n");
        return 2;
    }
    printf("test_link: %d ranks, %s%s\n", ranks, argv[2], o.share ? ", sharing GPUs" : "");
    forked_run(ranks, o.share, 300, be_well, &o, end);
    int bad = forked_verdict(ranks, end);
    if (bad == FORKED_NO_GPU) {
        printf("no GPU: skipped\n");
        return 0;
    }
    bad |= run_death(ranks, &o, "a rank dies and the host aborts", WAIT_S, be_aborted);
    if (o.transport == LINK_DIRECT)
        bad |= run_death(ranks, &o, "a rank dies and nobody aborts", WAIT_S + 4, be_left_alone);
    printf("test_link: %s\n", bad ? "FAILED" : "all right");
    return bad ? 1 : 0;
}
