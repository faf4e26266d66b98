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

/* The life of a rank. Ends with _exit: what the parent registered for its own exit is not ours. */
static _Noreturn void be_rank(const struct launch *l, int rank, int port, int *fd)
{
    struct err err = ERR_NONE;
    struct rank_context ctx = {.rank = rank, .ranks = l->ranks, .arg = l->arg};
    comm_adopt(&ctx.comm, rank, l->ranks, fd);
    ctx.client = client_new(port, rank, &err);
    if (ctx.client == NULL) {
        err_report(&err, "wavetank-replay");
        _exit(1);
    }
    ctx.comm.on_wait = tell_client;
    ctx.comm.wait_arg = ctx.client;
    if (l->body(&ctx, &err) < 0)
        client_fail(ctx.client, &err);
    client_leave(ctx.client);
    comm_release(&ctx.comm);
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

static int start_ranks(const struct launch *l, int listen_fd, int port, int *fd, pid_t *pid)
{
    fflush(NULL); /* or every rank would print what is buffered */
    for (int r = 0; r < l->ranks; r++) {
        pid[r] = fork();
        if (pid[r] < 0) {
            int error = errno;
            kill_ranks(pid, r);
            return error;
        }
        if (pid[r] == 0) {
            close(listen_fd);
            be_rank(l, r, port, fd);
        }
    }
    return 0;
}

int launch_run(const struct launch *l, struct err *err)
{
    size_t ranks = (size_t)l->ranks;
    pid_t *pid = xcalloc(ranks, sizeof *pid);
    int *fd = xcalloc(ranks * ranks, sizeof *fd);
    int result = -1, port = 0;
    int listen_fd = control_listen(l->port, &port, err);
    if (listen_fd < 0)
        goto out;
    if (comm_make_pairs(l->ranks, fd, err) < 0) {
        close(listen_fd);
        goto out;
    }
    int error = start_ranks(l, listen_fd, port, fd, pid);
    comm_close_pairs(l->ranks, fd);
    if (error != 0) {
        close(listen_fd);
        err_run(err, "starting %d ranks: %s", l->ranks, strerror(error));
        goto out;
    }
    struct control_config config = {l->ranks, pid, l->stall_s, l->on_step, l->arg};
    result = control_run(&config, listen_fd, err);
out:
    free(fd);
    free(pid);
    return result;
}
