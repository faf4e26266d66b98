/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* setpriority() */ /* NOLINT(bugprone-reserved-identifier) */
#include "sim/serve/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/base/progress.h"

enum { PROGRESS_FD = 3, NICENESS = 10, FILE_MIB_MAX = 2048, EXIT_NOT_STARTED = 127 };

void worker_prepare(void)
{
    char fd[16];
    snprintf(fd, sizeof fd, "%d", PROGRESS_FD);
    setenv(PROGRESS_FD_VARIABLE, fd, 1);
}

/* The signal of the first limit is one that tells what it was; the second one just kills. */
static void limit(int what, int64_t value)
{
    struct rlimit r = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value + 1};
    setrlimit(what, &r);
}

static void limit_all(const struct worker_ask *ask)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, (int64_t)FILE_MIB_MAX << 20);
    limit(RLIMIT_CPU, ask->cpu_s);
    if (ask->memory_bytes > 0)
        limit(RLIMIT_AS, ask->memory_bytes);
}

static void redirect(const char *path, int flags, int to)
{
    int fd = open(path, flags, 0600);
    if (fd < 0 || dup2(fd, to) < 0)
        _exit(EXIT_NOT_STARTED);
    close(fd);
}

/* In the child, between fork and exec: system calls only. What else is open closes by itself:
 * libevent, SQLite and we open everything so. */
static void become_worker(const struct worker_ask *ask, int progress_fd)
{
    static const int create = O_WRONLY | O_CREAT | O_TRUNC;
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(ask->out, create, STDOUT_FILENO);
    redirect(ask->log, create, STDERR_FILENO);
    if (dup2(progress_fd, PROGRESS_FD) < 0 || chdir(ask->folder) < 0)
        _exit(EXIT_NOT_STARTED);
    limit_all(ask);
    setpriority(PRIO_PROCESS, 0, NICENESS); /* the server answers first */
    execv("/proc/self/exe", ask->argv);
    _exit(EXIT_NOT_STARTED);
}

int worker_start(struct worker *w, const struct worker_ask *ask, struct err *err)
{
    int ends[2];
    if (pipe(ends) < 0)
        return err_run(err, "cannot start a worker: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become_worker(ask, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_run(err, "cannot start a worker: %s", strerror(errno));
    }
    setpgid(pid, pid); /* both set it: whoever comes first */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    *w = (struct worker){.pid = pid, .progress_fd = ends[0]};
    return 0;
}

void worker_kill(const struct worker *w)
{
    kill(-w->pid, SIGKILL);
    kill(w->pid, SIGKILL); /* before it is its group's leader there is no such group */
}

/* The last line that says something, without the program's name before it; "" for none. */
static void read_last_line(const char *path, char *line, size_t size)
{
    static const char ours[] = "wavetank: ";
    FILE *f = fopen(path, "r");
    char buf[1024];
    line[0] = '\0';
    while (f != NULL && fgets(buf, sizeof buf, f) != NULL) {
        buf[strcspn(buf, "\r\n")] = '\0';
        if (buf[0] != '\0')
            snprintf(line, size, "%s",
                     strncmp(buf, ours, strlen(ours)) == 0 ? buf + strlen(ours) : buf);
    }
    if (f != NULL)
        fclose(f);
}

char *worker_fault(int status, const char *log)
{
    char line[1024];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    read_last_line(log, line, sizeof line);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return xstrdup("took more processor time than the server allows (--worker-s)");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        return xasprintf("wrote a file of more than %d MiB", FILE_MIB_MAX);
    if (WIFSIGNALED(status))
        return xasprintf("the worker was ended by signal %d", WTERMSIG(status));
    if (line[0] == '\0')
        return xasprintf("the worker ended with exit code %d", WEXITSTATUS(status));
    return xstrdup(line);
}
