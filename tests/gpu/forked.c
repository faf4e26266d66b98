/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/forked.h"

#include <cuda_runtime_api.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/progress.h"

enum { GRACE_S = 15 };

double forked_now_s(void)
{
    return 1e-9 * (double)wall_ns();
}

static int choose_gpu(int rank, int ranks, bool share)
{
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)
        return FORKED_NO_GPU;
    if (ranks > gpus && !share) {
        fprintf(stderr, "%d GPUs do not suffice for %d ranks\n", gpus, ranks);
        return 1;
    }
    cudaError_t e = cudaSetDevice(rank % gpus);
    if (e != cudaSuccess)
        fprintf(stderr, "rank %d: GPU %d: %s\n", rank, rank % gpus, cudaGetErrorString(e));
    return e == cudaSuccess ? 0 : 1;
}

static _Noreturn void be_rank(struct forked *f, bool share, int (*body)(struct forked *f))
{
    int code = choose_gpu(f->rank, f->ranks, share);
    if (code == 0)
        code = body(f);
    fflush(NULL);
    _exit(code);
}

static void wait_for_all(int ranks, const pid_t *pid, double limit_s, struct forked_end *end)
{
    const struct timespec nap = {0, 1000000};
    double start_s = forked_now_s();
    for (int left = ranks; left > 0;) {
        double now_s = forked_now_s() - start_s;
        for (int r = 0; r < ranks; r++) {
            if (end[r].after_s >= 0)
                continue;
            if (waitpid(pid[r], &end[r].status, WNOHANG) == pid[r]) {
                end[r].after_s = now_s;
                left--;
                if (end[r].status != 0 && limit_s > now_s + GRACE_S)
                    limit_s = now_s + GRACE_S;
            } else if (now_s > limit_s) {
                fprintf(stderr, "rank %d is stuck: killed after %.0f s\n", r, now_s);
                kill(pid[r], SIGKILL);
                waitpid(pid[r], &end[r].status, 0);
                end[r].after_s = now_s;
                left--;
            }
        }
        nanosleep(&nap, NULL);
    }
}

void forked_run(int ranks, bool share, double limit_s, int (*body)(struct forked *f), void *arg,
                struct forked_end end[FORKED_MAX])
{
    int fd[FORKED_MAX * FORKED_MAX];
    pid_t pid[FORKED_MAX];
    struct err err = ERR_NONE;
    if (comm_make_pairs(ranks, fd, &err) < 0)
        exit(err_report(&err, "forked"));
    fflush(NULL);
    for (int r = 0; r < ranks; r++) {
        pid[r] = fork();
        if (pid[r] < 0) {
            perror("fork");
            exit(1);
        }
        if (pid[r] == 0) {
            struct forked f = {.rank = r, .ranks = ranks, .arg = arg};
            comm_adopt(&f.comm, r, ranks, fd);
            be_rank(&f, share, body);
        }
        end[r] = (struct forked_end){0, -1};
    }
    comm_close_pairs(ranks, fd);
    wait_for_all(ranks, pid, limit_s, end);
}

int forked_verdict(int ranks, const struct forked_end *end)
{
    int verdict = 0;
    for (int r = 0; r < ranks; r++) {
        int status = end[r].status;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == FORKED_NO_GPU)
            return FORKED_NO_GPU;
        verdict = 1;
        if (WIFSIGNALED(status))
            fprintf(stderr, "rank %d: ended by signal %d\n", r, WTERMSIG(status));
        else
            fprintf(stderr, "rank %d: exit code %d\n", r, WEXITSTATUS(status));
    }
    return verdict;
}
