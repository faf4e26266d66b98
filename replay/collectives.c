/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/collectives.h"

#include <string.h>

#include "replay/driver.h"
#include "replay/launch.h"
#include "sim/base/file.h"
#include "sim/base/progress.h"

enum { POINTS = COLL_COUNT * (COLLECTIVES_LAST_POWER - COLLECTIVES_FIRST_POWER + 1) };

/* One run; the file is the coordinator's. */
struct session {
    const struct collectives *c;
    struct outfile out;
    struct progress progress;
};

static int check(const struct collectives *c, struct err *err)
{
    const struct driver_job none = {.backend = c->backend, .options = c->options};
    if (c->backend->check(&none, "", err) < 0)
        return -1;
    if (c->backend->collectives == NULL)
        return err_set(err,
                       "--backend: the %s backend's exchanges say nothing of a network; use cuda",
                       c->backend->name);
    if (c->ranks < 2)
        return err_set(err, "--ranks: a rank alone exchanges nothing; needs at least 2");
    return 0;
}

static int open_out(struct session *s, const char *path, struct err *err)
{
    const struct plan_origin *o = &s->c->origin;
    if (outfile_open(&s->out, path, err) < 0)
        return -1;
    fprintf(s->out.f,
            "# collectives by themselves on %d ranks, %s, %s, transport %s, median of %d graphs of "
            "%d calls, command: %s\n"
            "# each as a step of wavetank-replay does it; bytes: \"size\" of nccl-tests\n"
            "op,ranks,bytes,us\n",
            s->c->ranks, o->device, o->date, o->transport, COLLECTIVES_REPEATS, COLLECTIVES_CALLS,
            o->command);
    fflush(s->out.f); /* or every rank inherits the unwritten lines */
    return 0;
}

static void deliver(void *context, int index, const struct backend_collective *one)
{
    struct rank_context *rank = context;
    client_send_result(rank->client, index, one, sizeof *one);
    client_at_step(rank->client, index + 1);
}

static int rank_body(struct rank_context *rank, struct err *err)
{
    const struct collectives *c = ((const struct session *)rank->arg)->c;
    client_at_step(rank->client, 0);
    return c->backend->collectives(&c->options, &rank->comm, rank->local_rank, deliver, rank, err);
}

/* Ranks end a collective together: the slowest one's time is everyone's. */
static int write_point(void *arg, int index, const struct control_result *results, struct err *err)
{
    struct session *s = arg;
    struct backend_collective slowest, one;
    (void)err;
    memcpy(&slowest, results[0].data, sizeof slowest);
    for (int r = 1; r < s->c->ranks; r++) {
        memcpy(&one, results[r].data, sizeof one);
        slowest.us = one.us > slowest.us ? one.us : slowest.us;
    }
    fprintf(s->out.f, "%s,%d,%lld,%.3f\n", collective_names[slowest.op], s->c->ranks,
            (long long)slowest.bytes, slowest.us);
    progress_update(&s->progress, index + 1);
    return 0;
}

int collectives_run(const struct collectives *c, const char *path, struct err *err)
{
    struct session s = {.c = c};
    struct world world;
    if (check(c, err) < 0 || world_read(&world, c->ranks, c->port, err) < 0 ||
        (world.rank == 0 && open_out(&s, path, err) < 0))
        return -1;
    progress_begin(&s.progress, "collectives", POINTS);
    struct launch launch = {
        .world = world,
        .stall_s = c->stall_s,
        .body = rank_body,
        .on_step = write_point,
        .arg = &s,
    };
    int rc = launch_run(&launch, err);
    progress_end(&s.progress);
    if (rc == 0)
        return outfile_commit(&s.out, err);
    outfile_abort(&s.out);
    return -1;
}
