/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/calibrate.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/plan/plan.h"

enum { PARTS_MAX = 64, ARGS_MAX = PARTS_MAX + 16 };

extern char **environ;

enum { PLANS_MAX = 2 };

/* Files of the work folder. */
struct folder {
    char *path, *rest, *collectives;
    char *plan[PLANS_MAX]; /* to measure one after the other */
    int n_plans;
    char *part[PARTS_MAX];
    int n_parts; /* that are there */
};

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static int open_folder(struct folder *f, const struct calibrate *c, struct err *err)
{
    f->path = c->work != NULL ? xstrdup(c->work) : xasprintf("%s.work", c->profile);
    if (c->grid != NULL) {
        f->plan[f->n_plans++] = xstrdup(c->grid);
    } else {
        f->plan[f->n_plans++] = xasprintf("%s/grid.plan.jsonl", f->path);
        f->plan[f->n_plans++] = xasprintf("%s/switches.plan.jsonl", f->path);
    }
    f->rest = xasprintf("%s/rest.plan.jsonl", f->path);
    f->collectives = xasprintf("%s/collectives.csv", f->path);
    for (int i = 0; i < PARTS_MAX; i++)
        f->part[i] = xasprintf("%s/part%d.measured.jsonl", f->path, i);
    if (mkdir(f->path, 0777) < 0 && errno != EEXIST)
        return err_set(err, "%s: cannot make the work folder: %s", f->path, strerror(errno));
    while (f->n_parts < PARTS_MAX && exists(f->part[f->n_parts]))
        f->n_parts++;
    if (f->n_parts + PLANS_MAX > PARTS_MAX)
        return err_set(err, "%s: cut %d times: remove it and start anew", f->path, PARTS_MAX);
    return 0;
}

static void close_folder(struct folder *f)
{
    for (int i = 0; i < PARTS_MAX; i++)
        free(f->part[i]);
    free(f->path);
    for (int i = 0; i < f->n_plans; i++)
        free(f->plan[i]);
    free(f->rest);
    free(f->collectives);
}

/* wavetank lies beside this program. */
static char *find_wavetank(struct err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) {
        err_run(err, "cannot find out where this program is: %s", strerror(errno));
        return NULL;
    }
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    char *program = xasprintf("%s/wavetank", self);
    if (exists(program))
        return program;
    err_set(err, "%s: not there; it makes the plan and the fit", program);
    free(program);
    return NULL;
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int run_wavetank(const char *const *args, struct err *err)
{
    char *program = find_wavetank(err);
    char *argv[ARGS_MAX + 2] = {program};
    pid_t pid;
    if (program == NULL)
        return -1;
    for (int n = 1; args[n - 1] != NULL; n++)
        argv[n] = (char *)args[n - 1];
    int e = posix_spawn(&pid, program, NULL, NULL, argv, environ);
    int rc = e == 0 ? wait_for(pid) : -1;
    if (rc < 0)
        err_run(err, "%s %s: %s", program, args[0], e != 0 ? strerror(e) : "failed, see above");
    free(program);
    return rc;
}

/* What each stage costs, and what a switch costs the step around it. */
static int make_plans(const struct calibrate *c, const struct folder *f, struct err *err)
{
    const char *grid[] = {"plan",     "grid", "--model",  c->model, "--cluster",
                          c->cluster, "-o",   f->plan[0], NULL};
    const char *switches[] = {"plan",      "switches", "--model", c->model,    "--cluster",
                              c->cluster,  "--batch",  "16",      "--context", "16K",
                              "--repeats", "4",        "-o",      f->plan[1],  NULL};
    if (c->grid != NULL)
        return 0;
    if (!exists(f->plan[0]) && run_wavetank(grid, err) < 0)
        return -1;
    return exists(f->plan[1]) ? 0 : run_wavetank(switches, err);
}

static int count_measured(const struct folder *f, int *n, struct err *err)
{
    *n = 0;
    for (int i = 0; i < f->n_parts; i++) {
        struct plan p;
        if (plan_load(&p, f->part[i], err) < 0)
            return -1;
        *n += p.n;
        plan_release(&p);
    }
    return 0;
}

/* The plan's steps from the first unmeasured one on. */
static int write_rest(const struct plan *p, int first, const char *path, struct err *err)
{
    struct plan rest = *p;
    rest.step = p->step + first;
    rest.n = p->n - first;
    return plan_save(&rest, path, err);
}

/* The steps of one plan behind the first *done, which then counts down to the next plan's. */
static int measure(const struct calibrate *c, struct folder *f, const char *plan, int *done,
                   struct err *err)
{
    struct plan p;
    int rc = 0;
    if (plan_load(&p, plan, err) < 0)
        return -1;
    if (*done < p.n) {
        fprintf(stderr, "%s: measuring %d of %d steps\n", plan, p.n - *done, p.n);
        rc = write_rest(&p, *done, f->rest, err);
        if (rc == 0)
            rc = c->replay(c->arg, f->rest, f->part[f->n_parts++], err);
    }
    *done = *done < p.n ? 0 : *done - p.n;
    plan_release(&p);
    return rc;
}

static int measure_all(const struct calibrate *c, struct folder *f, struct err *err)
{
    int done;
    int rc = count_measured(f, &done, err);
    for (int i = 0; rc == 0 && i < f->n_plans; i++)
        rc = measure(c, f, f->plan[i], &done, err);
    return rc;
}

static int measure_collectives(const struct calibrate *c, const struct folder *f, struct err *err)
{
    if (c->collectives == NULL || exists(f->collectives))
        return 0;
    fprintf(stderr, "%s: measuring collectives\n", f->collectives);
    return c->collectives(c->arg, f->collectives, err);
}

static int fit(const struct calibrate *c, const struct folder *f, struct err *err)
{
    const char *args[ARGS_MAX] = {"fit"};
    int n = 1;
    for (int i = 0; i < f->n_parts; i++)
        args[n++] = f->part[i];
    const char *rest[] = {"--model", c->model, "--cluster", c->cluster, "-o", c->profile};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        args[n++] = rest[i];
    if (c->collectives != NULL) {
        args[n++] = "--collectives";
        args[n++] = f->collectives;
    }
    return run_wavetank(args, err);
}

int calibrate_run(const struct calibrate *c, struct err *err)
{
    struct folder f = {0};
    int rc = open_folder(&f, c, err);
    if (rc == 0)
        rc = make_plans(c, &f, err);
    if (rc == 0)
        rc = measure_collectives(c, &f, err);
    if (rc == 0)
        rc = measure_all(c, &f, err);
    if (rc == 0)
        rc = fit(c, &f, err);
    close_folder(&f);
    return rc;
}
