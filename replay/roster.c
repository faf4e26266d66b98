/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/roster.h"

#include "sim/base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static const double SILENT_S = 1; /* five heartbeats */

void roster_init(struct roster *r, int ranks, const pid_t *pid, double now_s)
{
    *r = (struct roster){.ranks = ranks, .member = xcalloc((size_t)ranks, sizeof *r->member)};
    for (int i = 0; i < ranks; i++)
        r->member[i] = (struct member){.pid = pid != NULL ? pid[i] : 0,
                                       .step = ROSTER_START_UP,
                                       .advanced_s = now_s,
                                       .heard_s = now_s};
}

void roster_release(struct roster *r)
{
    free(r->member);
    *r = (struct roster){0};
}

bool roster_all_joined(const struct roster *r)
{
    for (int i = 0; i < r->ranks; i++)
        if (!r->member[i].joined)
            return false;
    return true;
}

bool roster_all_ended(const struct roster *r)
{
    for (int i = 0; i < r->ranks; i++)
        if (!r->member[i].ended)
            return false;
    return true;
}

void roster_hear(struct roster *r, int rank, int step, bool waits, double now_s)
{
    struct member *m = &r->member[rank];
    if (step != m->step)
        m->advanced_s = now_s;
    m->step = step;
    m->waits = waits;
    m->heard_s = now_s;
}

void roster_join(struct roster *r, int rank, double now_s)
{
    r->member[rank].joined = true;
    r->member[rank].advanced_s = r->member[rank].heard_s = now_s;
}

void roster_finish(struct roster *r, int rank, double now_s)
{
    r->member[rank].done = true;
    r->member[rank].advanced_s = r->member[rank].heard_s = now_s;
}

const char *roster_place(const struct roster *r, int rank, char *buf, size_t size)
{
    const struct member *m = &r->member[rank];
    if (m->done)
        return "shutdown";
    if (m->step == ROSTER_START_UP)
        return "start-up";
    snprintf(buf, size, "step %d", m->step);
    return buf;
}

static int judge_end(const struct roster *r, int rank, int status, struct err *err)
{
    char buf[32];
    const char *place = roster_place(r, rank, buf, sizeof buf);
    if (WIFSIGNALED(status))
        return err_run(err, "rank %d died (signal %d) in %s", rank, WTERMSIG(status), place);
    if (WEXITSTATUS(status) != 0 || !r->member[rank].done)
        return err_run(err, "rank %d exited (status %d) in %s", rank, WEXITSTATUS(status), place);
    return 0;
}

int roster_reap(struct roster *r, struct err *err)
{
    int result = 0;
    for (int i = 0; i < r->ranks; i++) {
        struct member *m = &r->member[i];
        int status = 0;
        if (m->pid == 0 || m->ended)
            continue;
        pid_t pid = waitpid(m->pid, &status, WNOHANG);
        m->ended = pid == m->pid || (pid < 0 && errno == ECHILD);
        if (m->ended && judge_end(r, i, status, err) < 0)
            result = -1;
    }
    return result;
}

/* Whether a is to be named rather than b. */
static bool is_worse(const struct member *a, const struct member *b, double now_s)
{
    bool a_waits = a->waits && now_s - a->heard_s < SILENT_S;
    bool b_waits = b->waits && now_s - b->heard_s < SILENT_S;
    if (a_waits != b_waits)
        return b_waits;
    return a->step < b->step;
}

static bool is_missing(const struct member *m, double stall_s, double now_s)
{
    return m->pid == 0 && !m->joined && now_s - m->advanced_s >= stall_s;
}

static int check_missing(const struct roster *r, double stall_s, double now_s, struct err *err)
{
    char list[256] = "";
    FILE *f = fmemopen(list, sizeof list, "w");
    int n = 0;
    for (int i = 0; f != NULL && i < r->ranks; i++) {
        int first = i;
        while (i < r->ranks && is_missing(&r->member[i], stall_s, now_s))
            i++;
        if (i == first)
            continue;
        fprintf(f, "%s%d", n > 0 ? ", " : "", first);
        if (i > first + 1)
            fprintf(f, "-%d", i - 1);
        n += i - first;
    }
    if (f != NULL)
        fclose(f);
    if (n == 0)
        return 0;
    return err_run(err,
                   "rank%s %s of %d did not come within %.0f s: were they started, with this "
                   "MASTER_ADDR and port?",
                   n > 1 ? "s" : "", list, r->ranks, stall_s);
}

int roster_check_stall(const struct roster *r, double stall_s, double now_s, struct err *err)
{
    bool stalled = false;
    int worst = -1;
    if (check_missing(r, stall_s, now_s, err) < 0)
        return -1;
    for (int i = 0; i < r->ranks; i++) {
        const struct member *m = &r->member[i];
        double age_s = now_s - m->advanced_s;
        if (m->ended || age_s < stall_s / 2)
            continue;
        stalled |= age_s >= stall_s;
        if (worst < 0 || is_worse(m, &r->member[worst], now_s))
            worst = i;
    }
    if (!stalled)
        return 0;
    char buf[32];
    return err_run(err, "rank %d has been in %s for %.0f s: stalled", worst,
                   roster_place(r, worst, buf, sizeof buf), now_s - r->member[worst].advanced_s);
}

void roster_kill(const struct roster *r)
{
    for (int i = 0; i < r->ranks; i++)
        if (r->member[i].pid > 0 && !r->member[i].ended)
            kill(r->member[i].pid, SIGKILL);
}
