/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank-replay PLAN: run a plan's steps for real and write what was measured.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hw/device.h"
#include "replay/calibrate.h"
#include "replay/collectives.h"
#include "replay/driver.h"
#include "replay/launch.h"
#include "replay/origin.h"
#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/base/opt.h"
#include "sim/base/progress.h"

static const struct backend *const backends[] = {&backend_host, &backend_cuda}; /* as named below */

struct settings {
    int backend;
    struct backend_options backend_options;
    int64_t ranks, layers, port;
    double stall_s;
    const char *out;
    const char *model, *cluster, *work, *grid; /* of a calibration; collectives: the cluster */
};

#define FIELD(name)  offsetof(struct settings, name)
#define OPTION(name) offsetof(struct settings, backend_options.name)

static const struct opt options[] = {
    {"backend", 0, OPT_ENUM, FIELD(backend), "NAME", "host", 0, 0, "host|cuda",
     "host: CPU reference kernels in double; cuda: one GPU a rank (make replay)"},
    {"ranks", 0, OPT_I64, FIELD(ranks), "N", "0", 0, RANKS_MAX, NULL,
     "ranks to run, as many as the plan is for (0: those, or the cluster's)"},
    {"layers", 0, OPT_I64, FIELD(layers), "N", "0", 0, 1 << 16, NULL,
     "first so many layers of the model (0: the plan's)"},
    {"out", 'o', OPT_STR, FIELD(out), "FILE", NULL, 0, 0, NULL,
     "write the plan's lines with what was measured (\"-\": standard output)"},
    {"transport", 0, OPT_ENUM, OPTION(transport), "NAME", "nccl", 0, 0, "nccl|direct",
     "cuda: how GPUs exchange: nccl, or direct stores into each other's memory"},
    {"transfer-sms", 0, OPT_I64, OPTION(transfer_sms), "N", "8", 1, 64, NULL,
     "cuda: SMs that a switch under way, or HOP-B's exchange, may take from computation"},
    {"repeats", 0, OPT_I64, OPTION(repeats), "N", "1", 1, 100000, NULL,
     "cuda: runs of each step that has no switch, for p50 and p95"},
    {"enough-ms", 0, OPT_I64, OPTION(enough_ms), "N", "0", 0, 1000000, NULL,
     "cuda: fewer repeats, five at least, where these take so long (0: all)"},
    {"eager", 0, OPT_FLAG, OPTION(eager), NULL, NULL, 0, 0, NULL, "cuda: no CUDA graphs"},
    {"unchecked", 0, OPT_FLAG, OPTION(unchecked), NULL, NULL, 0, 0, NULL,
     "compare nothing with the reference, for timing alone"},
    {"delay-us", 0, OPT_I64, OPTION(delay_us), "N", "0", 0, 1000000, NULL,
     "cuda: random waits up to this before exchanges, to shake out races"},
    {"model", 0, OPT_STR, FIELD(model), "NAME", NULL, 0, 0, NULL,
     "calibrate: the model whose shapes are measured"},
    {"cluster", 0, OPT_STR, FIELD(cluster), "NAME", NULL, 0, 0, NULL,
     "calibrate, collectives: the machine that is measured"},
    {"work", 0, OPT_STR, FIELD(work), "FOLDER", NULL, 0, 0, NULL,
     "calibrate: keep what is measured here (default: FILE.work)"},
    {"grid", 0, OPT_STR, FIELD(grid), "PLAN", NULL, 0, 0, NULL,
     "calibrate: measure this plan (default: what wavetank plan grid and switches make)"},
    {"stall-s", 0, OPT_F64, FIELD(stall_s), "S", "60", 1, 86400, NULL,
     "a rank that stays so long in one step has stalled, and the run ends"},
    {"port", 0, OPT_I64, FIELD(port), "N", "0", 0, 65535, NULL,
     "port where the ranks meet (0: MASTER_PORT's, or any for ranks forked here)"},
    {0},
};

/* The parent's side: lines are written as steps come in. */
struct session {
    struct settings settings;
    int argc;
    char **argv;
    struct driver_job job;
    struct outfile out;
    struct progress progress;
    double worst_error;
    int n_done;
};

static int write_step(void *arg, int index, const struct control_result *results, struct err *err)
{
    struct session *s = arg;
    int ranks = s->job.plan.header.ranks;
    struct driver_result *r = xcalloc((size_t)ranks, sizeof *r);
    struct plan_step *step = &s->job.plan.step[index];
    (void)err;
    for (int i = 0; i < ranks; i++)
        memcpy(&r[i], results[i].data, sizeof *r);
    driver_join(step, r, ranks);
    free(r);
    plan_write_step(s->out.f, step);
    if (step->check_error > s->worst_error)
        s->worst_error = step->check_error;
    s->n_done++;
    progress_update(&s->progress, s->n_done);
    return 0;
}

static int deliver(void *context, int index, const struct driver_result *r, struct err *err)
{
    struct rank_context *rank = context;
    (void)err;
    client_send_result(rank->client, index, r, sizeof *r);
    if (index + 1 < ((struct session *)rank->arg)->job.plan.n)
        client_at_step(rank->client, index + 1);
    return 0;
}

static int rank_body(struct rank_context *rank, struct err *err)
{
    const struct session *s = rank->arg;
    client_at_step(rank->client, 0);
    return driver_run_rank(&s->job, &rank->comm, rank->local_rank, deliver, rank, err);
}

static int check(const struct settings *s, const struct driver_job *job, struct err *err)
{
    int ranks = job->plan.header.ranks;
    if (s->ranks != 0 && s->ranks != ranks)
        return err_set(err, "--ranks: the plan is for %d ranks, got %lld", ranks,
                       (long long)s->ranks);
    return 0;
}

static void print_summary(const struct session *s)
{
    const struct plan *p = &s->job.plan;
    int switches = 0;
    int64_t step_ns = 0, switch_ns = 0;
    for (int i = 0; i < s->n_done; i++) {
        switches += p->step[i].from[0] != '\0';
        step_ns += p->step[i].meas_p50.step_ns;
        switch_ns += p->step[i].meas_p50.switch_exposed_ns;
    }
    fprintf(stderr,
            "%d of %d steps with %d switches on %d ranks (%s backend, %d layers of %s)\n"
            "%.3f s in steps, %.3f s of it in switches; largest error against the reference %.3g\n",
            s->n_done, p->n, switches, p->header.ranks, s->job.backend->name, s->job.slice.layers,
            p->header.model, (double)step_ns * 1e-9, (double)switch_ns * 1e-9, s->worst_error);
}

static int open_out(struct session *s, const char *path, struct err *err)
{
    if (outfile_open(&s->out, path, err) < 0)
        return -1;
    struct plan_header header = s->job.plan.header;
    header.layers = s->job.slice.layers;
    header.origin = origin_of(s->job.backend, &s->job.options, s->argc, s->argv);
    plan_write_header(s->out.f, &header);
    fflush(s->out.f); /* or every rank inherits the unwritten line */
    return 0;
}

static int replay(void *arg, const char *plan, const char *measured, struct err *err)
{
    struct session *s = arg;
    const struct settings *set = &s->settings;
    struct world world;
    driver_release(&s->job); /* a calibration replays several plans */
    s->job =
        (struct driver_job){.backend = backends[set->backend], .options = set->backend_options};
    s->worst_error = 0;
    s->n_done = 0;
    if (driver_load(&s->job, plan, (int)set->layers, err) < 0 || check(set, &s->job, err) < 0 ||
        world_read(&world, s->job.plan.header.ranks, (int)set->port, err) < 0 ||
        (world.rank == 0 && open_out(s, measured, err) < 0))
        return -1;
    progress_begin(&s->progress, "steps", s->job.plan.n);
    struct launch launch = {
        .world = world,
        .stall_s = set->stall_s,
        .body = rank_body,
        .on_step = write_step,
        .arg = s,
    };
    int rc = launch_run(&launch, err);
    progress_end(&s->progress);
    print_summary(s);
    /* What was measured before a failure is kept. */
    struct err late = ERR_NONE;
    if (outfile_commit(&s->out, rc < 0 ? &late : err) < 0)
        rc = -1;
    return rc;
}

static int count_ranks(const struct settings *set, int *ranks, struct err *err)
{
    struct cluster cluster = {.ranks = (int)set->ranks};
    if (set->ranks == 0 && set->cluster == NULL)
        return err_set(err, "collectives: say --ranks or --cluster");
    if (set->ranks == 0 && cluster_load(&cluster, set->cluster, err) < 0)
        return -1;
    *ranks = cluster.ranks;
    return 0;
}

static int measure_collectives(void *arg, const char *table, struct err *err)
{
    const struct session *s = arg;
    const struct settings *set = &s->settings;
    struct collectives c = {
        .backend = backends[set->backend],
        .options = set->backend_options,
        .port = (int)set->port,
        .stall_s = set->stall_s,
    };
    c.origin = origin_of(c.backend, &c.options, s->argc, s->argv);
    return count_ranks(set, &c.ranks, err) < 0 ? -1 : collectives_run(&c, table, err);
}

static int calibrate(struct session *s, struct err *err)
{
    const struct settings *set = &s->settings;
    int ranks;
    if (set->model == NULL || set->cluster == NULL)
        return err_set(err, "calibrate: say --model and --cluster");
    if (count_ranks(set, &ranks, err) < 0)
        return -1;
    bool exchanges = ranks > 1 && backends[set->backend]->collectives != NULL;
    s->settings.backend_options.unchecked = true;
    const struct calibrate c = {
        .model = set->model,
        .cluster = set->cluster,
        .profile = set->out,
        .work = set->work,
        .grid = set->grid,
        .replay = replay,
        .collectives = exchanges ? measure_collectives : NULL,
        .arg = s,
    };
    return calibrate_run(&c, err);
}

static int run(struct session *s, int n_args, char **args, struct err *err)
{
    if (n_args != 1)
        return err_set(err, "expected one PLAN, calibrate or collectives (see --help)");
    if (s->settings.out == NULL)
        return err_set(err, "-o: say where to write what is measured");
    if (strcmp(args[0], "calibrate") == 0)
        return calibrate(s, err);
    if (strcmp(args[0], "collectives") == 0)
        return measure_collectives(s, s->settings.out, err);
    return replay(s, args[0], s->settings.out, err);
}

static void print_help(void)
{
    puts(
        "usage: wavetank-replay PLAN -o FILE [option]...\n"
        "       wavetank-replay calibrate --model M --cluster C -o PROFILE.json [option]...\n"
        "       wavetank-replay collectives --ranks N --backend cuda -o TABLE.csv [option]...\n"
        "\n"
        "Runs every step of a plan (wavetank sim --plan) with real data: one process per rank,\n"
        "each holding only what the layout gives it. Writes the plan's lines with the slowest\n"
        "rank's times and the largest error against a plain reference.\n"
        "\n"
        "Forks the ranks, unless mpirun, srun or torchrun started this process as one of them\n"
        "(RANK, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID is set): those meet at MASTER_ADDR\n"
        "(127.0.0.1), port --port or MASTER_PORT, and rank 0 writes.\n"
        "\n"
        "calibrate measures this machine over a grid of steps and fits a profile to it; cut "
        "short,\n"
        "it goes on where it was when run again. collectives times each collective by itself,\n"
        "1 KiB to 256 MiB, into a table for wavetank fit; calibrate does so on GPUs.\n");
    opt_help(options, stdout);
}

static void on_signal(int number)
{
    outfile_abort_all();
    _exit(128 + number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    struct err err = ERR_NONE;
    struct session session = {.argc = argc, .argv = argv};
    bool help = false;
    int n_args = 0, rc = 0;
    catch_signals();
    opt_defaults(options, &session.settings);
    if (opt_parse_argv(options, &session.settings, argc, argv, &n_args, &help, &err) < 0 ||
        (!help && run(&session, n_args, argv + 1, &err) < 0))
        rc = err_report(&err, "wavetank-replay");
    else if (help)
        print_help();
    outfile_abort(&session.out);
    driver_release(&session.job);
    return rc;
}
