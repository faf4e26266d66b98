/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of replay/comm: ranks are forked here, without a coordinator, and each judges what it got.
 */
#include "replay/comm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/mem.h"

enum { RANKS_MAX = 8, PIECE_MAX_BYTES = 1 << 20 };

typedef int (*rank_fn)(struct comm *c); /* 0: all was well */

enum wiring { PAIRS, TCP, WIRING_COUNT };

/* How the ranks find each other; made before the fork. */
struct wires {
    enum wiring wiring;
    int fd[RANKS_MAX * RANKS_MAX]; /* pairs */
    int listen_fd[RANKS_MAX];      /* TCP */
    struct tcp_address at[RANKS_MAX];
};

static void make_wires(struct wires *w, int ranks)
{
    struct err err = ERR_NONE;
    if (w->wiring == PAIRS)
        comm_make_pairs(ranks, w->fd, &err);
    for (int r = 0; w->wiring == TCP && r < ranks; r++) {
        w->listen_fd[r] = tcp_listen("127.0.0.1", 0, &err);
        w->at[r] = tcp_own(w->listen_fd[r]);
    }
    cr_assert_not(err.set, "%s", err.text);
}

static void drop_wires(struct wires *w, int ranks, int except)
{
    if (w->wiring == PAIRS)
        comm_close_pairs(ranks, w->fd);
    for (int r = 0; w->wiring == TCP && r < ranks; r++)
        if (r != except)
            close(w->listen_fd[r]);
}

static int be_rank(struct wires *w, int rank, int ranks, rank_fn fn)
{
    struct comm c = {.rank = rank, .ranks = ranks};
    struct err err = ERR_NONE;
    if (w->wiring == PAIRS) {
        comm_adopt(&c, rank, ranks, w->fd);
    } else {
        drop_wires(w, ranks, rank);
        if (comm_meet(&c, w->listen_fd[rank], w->at, &err) < 0)
            return 2;
    }
    int status = fn(&c);
    comm_release(&c);
    return status;
}

/* Run fn in every rank. Returns how many did not end with 0; none is left. */
static int run_wired(enum wiring wiring, int ranks, rank_fn fn)
{
    struct wires w = {.wiring = wiring};
    pid_t pid[RANKS_MAX];
    make_wires(&w, ranks);
    for (int r = 0; r < ranks; r++) {
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(be_rank(&w, r, ranks, fn));
    }
    drop_wires(&w, ranks, -1);
    int bad = 0;
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        cr_assert_eq(waitpid(pid[r], &status, 0), pid[r]);
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return bad;
}

/* The same over every wiring. */
static int run_ranks(int ranks, rank_fn fn)
{
    int bad = 0;
    for (int w = 0; w < WIRING_COUNT; w++)
        bad += run_wired((enum wiring)w, ranks, fn);
    return bad;
}

static uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    return x ^ (x >> 16);
}

/* Known on both sides: one piece in four is empty, one is of the largest size. */
static size_t piece_bytes(int round, int from, int to)
{
    uint32_t h = mix((uint32_t)(round * 64 + from * 8 + to + 1));
    return h % 4 == 0 ? 0 : h % 4 == 1 ? PIECE_MAX_BYTES : (h >> 2) % PIECE_MAX_BYTES;
}

static unsigned char byte_at(int round, int from, int to, size_t i)
{
    return (unsigned char)(7 * round + 31 * from + 13 * to + (int)(i % 251));
}

static int exchange_round(struct comm *c, int round)
{
    void *send[RANKS_MAX], *recv[RANKS_MAX];
    size_t send_bytes[RANKS_MAX], recv_bytes[RANKS_MAX];
    for (int r = 0; r < c->ranks; r++) {
        send_bytes[r] = piece_bytes(round, c->rank, r);
        recv_bytes[r] = piece_bytes(round, r, c->rank);
        send[r] = xmalloc(send_bytes[r]);
        recv[r] = xmalloc(recv_bytes[r]);
        for (size_t i = 0; i < send_bytes[r]; i++)
            ((unsigned char *)send[r])[i] = byte_at(round, c->rank, r, i);
    }
    struct err err = ERR_NONE;
    int wrong = comm_all_to_all(c, (const void *const *)send, send_bytes, recv, recv_bytes, &err);
    for (int r = 0; r < c->ranks; r++) {
        for (size_t i = 0; wrong == 0 && i < recv_bytes[r]; i++)
            wrong = ((unsigned char *)recv[r])[i] != byte_at(round, r, c->rank, i);
        free(send[r]);
        free(recv[r]);
    }
    return wrong;
}

static int exchange_and_count(struct comm *c)
{
    int64_t sent_bytes = 0, received_bytes = 0;
    for (int round = 0; round < 4; round++) {
        if (exchange_round(c, round) != 0)
            return 1;
        for (int r = 0; r < c->ranks; r++) {
            sent_bytes += r == c->rank ? 0 : (int64_t)piece_bytes(round, c->rank, r);
            received_bytes += r == c->rank ? 0 : (int64_t)piece_bytes(round, r, c->rank);
        }
    }
    bool counted = c->sent_bytes == sent_bytes && c->received_bytes == received_bytes;
    comm_reset_counts(c);
    return !counted || c->sent_bytes != 0 || c->received_bytes != 0;
}

Test(comm, all_to_all_moves_pieces_of_any_size, .timeout = 60)
{
    static const int ranks[] = {1, 2, 4, 8};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        cr_expect_eq(run_ranks(ranks[i], exchange_and_count), 0, "%d ranks", ranks[i]);
}

/* 0.1, 0.2, ... and 1e16 in turn: another order of summation would give other bits. */
static double addend(int rank, size_t i)
{
    return (rank + (int)i) % 3 == 0 ? 1e16 : 0.1 * (rank + 1) - (double)i;
}

static int reduce(struct comm *c)
{
    enum { N = 1000 };
    double x[N], want[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = addend(c->rank, i);
        want[i] = addend(0, i);
        for (int r = 1; r < c->ranks; r++)
            want[i] += addend(r, i);
    }
    struct err err = ERR_NONE;
    return comm_all_reduce(c, x, N, &err) < 0 || memcmp(x, want, sizeof x) != 0 ||
           comm_all_reduce(c, x, 0, &err) < 0;
}

Test(comm, all_reduce_sums_in_rank_order_bit_for_bit, .timeout = 30)
{
    for (int ranks = 1; ranks <= RANKS_MAX; ranks *= 2)
        cr_expect_eq(run_ranks(ranks, reduce), 0, "%d ranks", ranks);
}

static int gather_abc(struct comm *c)
{
    static const size_t bytes[] = {1, 0, 2, 3};
    static const size_t start[] = {0, 1, 1, 3};
    static const char all[] = "abbccc";
    char x[6] = "......";
    struct err err = ERR_NONE;
    memcpy(x + start[c->rank], all + start[c->rank], bytes[c->rank]);
    return comm_all_gather(c, x, bytes, &err) < 0 || memcmp(x, all, sizeof x) != 0 ||
           c->sent_bytes != 3 * (int64_t)bytes[c->rank] ||
           c->received_bytes != 6 - (int64_t)bytes[c->rank];
}

Test(comm, all_gather_lays_pieces_in_rank_order, .timeout = 30)
{
    cr_assert_eq(run_ranks(4, gather_abc), 0);
}

static int pass_barrier(struct comm *c)
{
    struct err err = ERR_NONE;
    for (int i = 0; i < 100; i++)
        if (comm_barrier(c, &err) < 0)
            return 1;
    return c->sent_bytes != 0 || c->received_bytes != 0;
}

Test(comm, barrier_counts_nothing, .timeout = 30)
{
    cr_assert_eq(run_ranks(4, pass_barrier), 0);
}

static int lose_rank_1(struct comm *c)
{
    if (c->rank == 1)
        return 0;
    struct err err = ERR_NONE;
    return comm_barrier(c, &err) == 0 || strstr(err.text, "rank 1 is gone") == NULL;
}

Test(comm, a_peer_that_is_gone_is_named, .timeout = 30)
{
    cr_assert_eq(run_ranks(2, lose_rank_1), 0);
}

/* Connect to an address and say something that no rank awaited there says. Returns the socket. */
static int call(const struct tcp_address *at, const void *words, size_t bytes)
{
    struct err err = ERR_NONE;
    int fd = tcp_connect(at->host, at->port, 0, &err);
    cr_assert(fd >= 0, "%s", err.text);
    cr_assert_eq(write(fd, words, bytes), (ssize_t)bytes);
    return fd;
}

/* Strangers queue up before the ranks: a browser, one that says nothing, ranks that are not
 * awaited. Each is hung up on, and the ranks meet. */
Test(comm, strangers_do_not_disturb_ranks_that_meet, .timeout = 30)
{
    static const unsigned char self[] = {'W', 'T', 'K', '2', 0, 0, 0, 0};
    static const unsigned char beyond[] = {'W', 'T', 'K', '2', 0, 0, 0, 2};
    static const unsigned char negative[] = {'W', 'T', 'K', '2', 255, 255, 255, 255};
    struct wires w = {.wiring = TCP};
    make_wires(&w, 2);
    int fd[] = {call(&w.at[0], "GET / HTTP/1.0\r\n\r\n", 18), call(&w.at[0], "", 0),
                call(&w.at[0], self, 8), call(&w.at[0], beyond, 8), call(&w.at[0], negative, 8)};
    pid_t pid[2];
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(be_rank(&w, r, 2, pass_barrier));
    }
    drop_wires(&w, 2, -1);
    for (int r = 0; r < 2; r++) {
        int status = 1;
        cr_expect_eq(waitpid(pid[r], &status, 0), pid[r]);
        cr_expect_eq(status, 0, "rank %d", r);
    }
    for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++) {
        char byte;
        cr_expect(read(fd[i], &byte, 1) <= 0, "stranger %zu is still served", i);
        close(fd[i]);
    }
}

Test(comm, a_rank_that_cannot_be_reached_is_named, .timeout = 30)
{
    struct wires w = {.wiring = TCP};
    struct comm c = {.rank = 1, .ranks = 2};
    struct err err = ERR_NONE;
    make_wires(&w, 2);
    close(w.listen_fd[0]);
    cr_assert_eq(comm_meet(&c, w.listen_fd[1], w.at, &err), -1);
    cr_expect_not_null(strstr(err.text, "no way to rank 0: port "), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "of 127.0.0.1: Connection refused"), "%s", err.text);
    comm_release(&c);
}

static int tell_own_mistakes(struct comm *c)
{
    return c->rank == 2;
}

Test(comm, harness_sees_a_rank_that_fails, .timeout = 30)
{
    cr_assert_eq(run_ranks(4, tell_own_mistakes), WIRING_COUNT);
}
