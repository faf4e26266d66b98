/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/comm.h"

#include "sim/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is still to be moved between this rank and one other. */
struct lane {
    const char *out;
    char *in;
    size_t out_bytes, in_bytes;
};

static int lost(int peer, int error, struct err *err)
{
    return err_run(err, "rank %d is gone: %s", peer,
                   error != 0 ? strerror(error) : "it closed its connection");
}

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int lane_send(struct lane *l, int fd, int peer, struct err *err)
{
    ssize_t n = send(fd, l->out, l->out_bytes, MSG_NOSIGNAL);
    if (n < 0)
        return would_block(errno) ? 0 : lost(peer, errno, err);
    l->out += n;
    l->out_bytes -= (size_t)n;
    return 0;
}

static int lane_receive(struct lane *l, int fd, int peer, struct err *err)
{
    ssize_t n = recv(fd, l->in, l->in_bytes, 0);
    if (n < 0)
        return would_block(errno) ? 0 : lost(peer, errno, err);
    if (n == 0)
        return lost(peer, 0, err);
    l->in += n;
    l->in_bytes -= (size_t)n;
    return 0;
}

/* Ask poll for what each lane still waits for. Returns whether any does. */
static bool want(const struct comm *c, const struct lane *lanes, struct pollfd *set)
{
    bool any = false;
    for (int r = 0; r < c->ranks; r++) {
        int events = (lanes[r].out_bytes > 0 ? POLLOUT : 0) | (lanes[r].in_bytes > 0 ? POLLIN : 0);
        set[r] = (struct pollfd){.fd = events != 0 ? c->peer_fd[r] : -1, .events = (short)events};
        any |= events != 0;
    }
    return any;
}

/* Serve every peer that is ready, in both directions: a rank that sends first and receives later
 * would deadlock with its peer once both socket buffers are full. */
static int drain(const struct comm *c, struct lane *lanes, struct err *err)
{
    int result = -1;
    struct pollfd *set = xcalloc((size_t)c->ranks, sizeof *set);
    while (want(c, lanes, set)) {
        if (poll(set, (nfds_t)c->ranks, -1) < 0) {
            if (errno == EINTR)
                continue;
            err_run(err, "waiting for the other ranks: %s", strerror(errno));
            goto out;
        }
        for (int r = 0; r < c->ranks; r++) {
            bool ready = set[r].fd >= 0 && set[r].revents != 0;
            if (ready && lanes[r].in_bytes > 0 && lane_receive(&lanes[r], set[r].fd, r, err) < 0)
                goto out;
            if (ready && lanes[r].out_bytes > 0 && lane_send(&lanes[r], set[r].fd, r, err) < 0)
                goto out;
        }
    }
    result = 0;
out:
    free(set);
    return result;
}

static int exchange(const struct comm *c, const void *const *send, const size_t *send_bytes,
                    void *const *recv, const size_t *recv_bytes, struct err *err)
{
    assert(send_bytes[c->rank] == recv_bytes[c->rank]);
    struct lane *lanes = xcalloc((size_t)c->ranks, sizeof *lanes);
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank)
            lanes[r] = (struct lane){send[r], recv[r], send_bytes[r], recv_bytes[r]};
    if (send_bytes[c->rank] > 0)
        memmove(recv[c->rank], send[c->rank], send_bytes[c->rank]);
    int result = drain(c, lanes, err);
    free(lanes);
    return result;
}

int comm_all_to_all(struct comm *c, const void *const *send, const size_t *send_bytes,
                    void *const *recv, const size_t *recv_bytes, struct err *err)
{
    enum stage before = stopwatch_enter(c->watch, ON_EXCHANGE);
    if (c->on_wait != NULL)
        c->on_wait(c->wait_arg, true);
    int result = exchange(c, send, send_bytes, recv, recv_bytes, err);
    if (c->on_wait != NULL)
        c->on_wait(c->wait_arg, false);
    stopwatch_enter(c->watch, before);
    if (result < 0)
        return -1;
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank) {
            c->sent_bytes += (int64_t)send_bytes[r];
            c->received_bytes += (int64_t)recv_bytes[r];
        }
    return 0;
}

/* Send the own piece to all and receive theirs at `to`, where the pieces lie in rank order. */
static int gather(struct comm *c, const void *own, char *to, const size_t *bytes, struct err *err)
{
    size_t ranks = (size_t)c->ranks;
    const void **send = xcalloc(ranks, sizeof *send);
    void **recv = xcalloc(ranks, sizeof *recv);
    size_t *send_bytes = xcalloc(ranks, sizeof *send_bytes);
    for (size_t r = 0, offset = 0; r < ranks; offset += bytes[r], r++) {
        send[r] = own;
        send_bytes[r] = bytes[c->rank];
        recv[r] = to + offset;
    }
    int result = comm_all_to_all(c, send, send_bytes, recv, bytes, err);
    free(send_bytes);
    free(recv);
    free(send);
    return result;
}

int comm_all_reduce(struct comm *c, double *x, size_t n, struct err *err)
{
    size_t ranks = (size_t)c->ranks;
    double *all = xcalloc(ranks * n, sizeof *all);
    size_t *bytes = xcalloc(ranks, sizeof *bytes);
    for (size_t r = 0; r < ranks; r++)
        bytes[r] = n * sizeof *x;
    int result = gather(c, x, (char *)all, bytes, err);
    for (size_t i = 0; result == 0 && i < n; i++) {
        x[i] = all[i];
        for (size_t r = 1; r < ranks; r++)
            x[i] += all[r * n + i];
    }
    free(bytes);
    free(all);
    return result;
}

int comm_all_gather(struct comm *c, void *x, const size_t *bytes, struct err *err)
{
    char *own = x;
    for (int r = 0; r < c->rank; r++)
        own += bytes[r];
    return gather(c, own, x, bytes, err);
}

int comm_barrier(struct comm *c, struct err *err)
{
    /* the traffic counts speak of the caller's data, so they stay as they are */
    struct comm uncounted = *c;
    char *tokens = xcalloc((size_t)c->ranks, 1);
    size_t *bytes = xcalloc((size_t)c->ranks, sizeof *bytes);
    for (int r = 0; r < c->ranks; r++)
        bytes[r] = 1;
    int result = comm_all_gather(&uncounted, tokens, bytes, err);
    free(bytes);
    free(tokens);
    return result;
}

void comm_reset_counts(struct comm *c)
{
    c->sent_bytes = 0;
    c->received_bytes = 0;
}

int comm_make_pairs(int ranks, int *fd, struct err *err)
{
    for (int i = 0; i < ranks * ranks; i++)
        fd[i] = -1;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < a; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
                err_run(err, "connecting %d ranks: %s: use fewer ranks or raise ulimit -n", ranks,
                        strerror(errno));
                comm_close_pairs(ranks, fd);
                return -1;
            }
            fd[a * ranks + b] = pair[0];
            fd[b * ranks + a] = pair[1];
        }
    return 0;
}

void comm_close_pairs(int ranks, int *fd)
{
    for (int i = 0; i < ranks * ranks; i++)
        if (fd[i] >= 0) {
            close(fd[i]);
            fd[i] = -1;
        }
}

void comm_adopt(struct comm *c, int rank, int ranks, int *fd)
{
    *c = (struct comm){.rank = rank, .ranks = ranks};
    c->peer_fd = xcalloc((size_t)ranks, sizeof *c->peer_fd);
    for (int r = 0; r < ranks; r++) {
        int *mine = &fd[rank * ranks + r];
        c->peer_fd[r] = *mine;
        *mine = -1;
        if (r != rank) {
            int flags = fcntl(c->peer_fd[r], F_GETFL);
            int set = fcntl(c->peer_fd[r], F_SETFL, flags | O_NONBLOCK);
            assert(flags >= 0 && set == 0);
        }
    }
    comm_close_pairs(ranks, fd);
}

void comm_release(struct comm *c)
{
    for (int r = 0; c->peer_fd != NULL && r < c->ranks; r++)
        if (r != c->rank)
            close(c->peer_fd[r]);
    free(c->peer_fd);
    *c = (struct comm){0};
}
