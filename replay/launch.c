/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/launch.h"

#include "sim/base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>

static void tell_client(void *client, bool waits)
{
    client_set_waits(client, waits);
}

/* What SIGINT and SIGTERM do in a rank: once it has joined nothing, since the coordinator takes
 * them for all and has the last word on why a run ended. */
static void set_signals(void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* How many ranks before this one are at the same address. */
static int count_neighbours(const struct tcp_address *at, int rank)
{
    int n = 0;
    for (int r = 0; r < rank; r++)
        n += strcmp(at[r].host, at[rank].host) == 0;
    return n;
}

/* The life of a rank, with its socket pairs or, without, a way to find the others. Ends with _exit:
 * what the parent registered for its own exit, or for signals, is not ours. */
static _Noreturn void be_rank(const struct launch *l, const struct world *w, int *pairs)
{
    struct err err = ERR_NONE;
    struct rank_context ctx = {.rank = w->rank,
                               .ranks = w->ranks,
                               .local_rank = w->local_rank,
                               .comm = {.rank = w->rank, .ranks = w->ranks},
                               .arg = l->arg};
    struct tcp_address *at = xcalloc((size_t)w->ranks, sizeof *at);
    int listen_fd = -1;
    set_signals(SIG_DFL);
    if (pairs != NULL)
        comm_adopt(&ctx.comm, w->rank, w->ranks, pairs);
    else
        listen_fd = tcp_listen(w->host, 0, &err);
    if (!err.set)
        ctx.client = client_new(w, pairs != NULL ? 0 : tcp_own(listen_fd).port, at, &err);
    if (err.set)
        _exit(err_report(&err, "wavetank-replay"));
    set_signals(SIG_IGN);
    if (ctx.local_rank < 0)
        ctx.local_rank = count_neighbours(at, w->rank);
    ctx.comm.on_wait = tell_client;
    ctx.comm.wait_arg = ctx.client;
    if ((pairs == NULL && comm_meet(&ctx.comm, listen_fd, at, &err) < 0) || l->body(&ctx, &err) < 0)
        client_fail(ctx.client, &err);
    client_leave(ctx.client);
    comm_release(&ctx.comm);
    free(at);
    fflush(NULL);
    _exit(0);
}

static void kill_ranks(const pid_t *pid, int n)
{
    for (int i = 0; i < n; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
}

/* Returns errno. */
static int start_ranks(const struct launch *l, const struct world *w, int listen_fd, int *pairs,
                       pid_t *pid)
{
    fflush(NULL); /* or every rank would print what is buffered */
    for (int r = 0; r < (w->launched ? 1 : w->ranks); r++) {
        pid[r] = fork();
        if (pid[r] < 0) {
            int error = errno;
            kill_ranks(pid, r);
            return error;
        }
        if (pid[r] == 0) {
            struct world mine = *w;
            mine.rank = r;
            close(listen_fd);
            be_rank(l, &mine, pairs);
        }
    }
    return 0;
}

int launch_run(const struct launch *l, struct err *err)
{
    struct world w = l->world;
    if (w.launched && w.rank > 0)
        be_rank(l, &w, NULL);
    int listen_fd = tcp_listen(w.host, w.port, err);
    if (listen_fd < 0)
        return -1;
    w.port = tcp_own(listen_fd).port;
    size_t ranks = (size_t)w.ranks;
    pid_t *pid = xcalloc(ranks, sizeof *pid);
    int *pairs = w.launched ? NULL : xcalloc(ranks * ranks, sizeof *pairs);
    int result = -1;
    if (pairs != NULL && comm_make_pairs(w.ranks, pairs, err) < 0)
        goto out;
    int error = start_ranks(l, &w, listen_fd, pairs, pid);
    if (pairs != NULL)
        comm_close_pairs(w.ranks, pairs);
    if (error != 0) {
        err_run(err, "starting %d ranks: %s", w.ranks, strerror(error));
        goto out;
    }
    const struct control_config config = {w.ranks, pid, l->stall_s, l->on_step, l->arg};
    result = control_run(&config, listen_fd, err);
    listen_fd = -1;
out:
    if (listen_fd >= 0)
        close(listen_fd);
    free(pairs);
    free(pid);
    return result;
}
