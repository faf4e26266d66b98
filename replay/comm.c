/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/comm.h"

#include "sim/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { MARK = 0x57544b32 }; /* "WTK2": what a rank says first, then its number */

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
    ssize_t n = send(fd, l->out, l->out_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return would_block(errno) ? 0 : lost(peer, errno, err);
    l->out += n;
    l->out_bytes -= (size_t)n;
    return 0;
}

static int lane_receive(struct lane *l, int fd, int peer, struct err *err)
{
    ssize_t n = recv(fd, l->in, l->in_bytes, MSG_DONTWAIT);
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
    }
    comm_close_pairs(ranks, fd);
}

static int dial(struct comm *c, int rank, const struct tcp_address *at, struct err *err)
{
    const uint32_t hello[] = {htonl(MARK), htonl((uint32_t)c->rank)};
    struct err why = ERR_NONE;
    int fd = tcp_connect(at->host, at->port, 0, &why);
    if (fd < 0)
        return err_run(err, "no way to rank %d: %s", rank, why.text);
    c->peer_fd[rank] = fd;
    tcp_set_prompt(fd);
    if (send(fd, hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        return lost(rank, errno, err);
    return 0;
}

/* Which rank is this? Returns -1 when it is none that is awaited, or says nothing for a while. */
static int identify(const struct comm *c, int fd)
{
    const struct timeval patience = {.tv_sec = 2};
    uint32_t hello[2];
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(fd, hello, sizeof hello, MSG_WAITALL) != sizeof hello || ntohl(hello[0]) != MARK)
        return -1;
    uint32_t rank = ntohl(hello[1]);
    bool awaited = rank > (uint32_t)c->rank && rank < (uint32_t)c->ranks && c->peer_fd[rank] < 0;
    return awaited ? (int)rank : -1;
}

static int await_one(struct comm *c, int listen_fd, struct err *err)
{
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return err_run(err, "awaiting other ranks: %s", strerror(errno));
        int rank = fd < 0 ? -1 : identify(c, fd);
        if (rank >= 0) {
            tcp_set_prompt(fd);
            c->peer_fd[rank] = fd;
            return 0;
        }
        if (fd >= 0)
            close(fd);
    }
}

int comm_meet(struct comm *c, int listen_fd, const struct tcp_address *at, struct err *err)
{
    int result = 0;
    c->peer_fd = xcalloc((size_t)c->ranks, sizeof *c->peer_fd);
    for (int r = 0; r < c->ranks; r++)
        c->peer_fd[r] = -1;
    for (int r = 0; result == 0 && r < c->rank; r++)
        result = dial(c, r, &at[r], err);
    if (c->on_wait != NULL)
        c->on_wait(c->wait_arg, true);
    for (int r = c->rank + 1; result == 0 && r < c->ranks; r++)
        result = await_one(c, listen_fd, err);
    if (c->on_wait != NULL)
        c->on_wait(c->wait_arg, false);
    close(listen_fd);
    return result;
}

void comm_release(struct comm *c)
{
    for (int r = 0; c->peer_fd != NULL && r < c->ranks; r++)
        if (c->peer_fd[r] >= 0)
            close(c->peer_fd[r]);
    free(c->peer_fd);
    *c = (struct comm){0};
}
