/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of replay/world: what launchers set, what hostile ones might, and what comes of it.
 */
#include "replay/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

static const char *const names[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_ID",
};

/* Have exactly these variables of those above: "NAME=value NAME=value". */
static void set_environment(const char *text)
{
    char copy[256], *rest;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(name, '=');
        *value = '\0';
        setenv(name, value + 1, 1);
    }
}

struct good_case {
    const char *env;
    int port; /* asked for */
    struct world want;
};

#define HERE "127.0.0.1"

static const struct good_case good[] = {
    {"", 0, {false, 0, 4, -1, HERE, 0}},
    {"", 7000, {false, 0, 4, -1, HERE, 7000}},
    {"MASTER_ADDR=::1 MASTER_PORT=9 LOCAL_RANK=1", 0, {false, 0, 4, -1, HERE, 0}},
    {"RANK=3 WORLD_SIZE=4 MASTER_PORT=29500", 0, {true, 3, 4, -1, HERE, 29500}},
    {"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 MASTER_PORT=1 MASTER_ADDR=::1",
     0,
     {true, 3, 4, 1, "::1", 1}},
    {"RANK=0 WORLD_SIZE=4 MASTER_PORT=29500", 7000, {true, 0, 4, -1, HERE, 7000}},
    {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0",
     7000,
     {true, 1, 4, 0, HERE, 7000}},
    {"PMI_RANK=2 PMI_SIZE=4", 7000, {true, 2, 4, -1, HERE, 7000}},
    {"PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=2", 7000, {true, 2, 4, 2, HERE, 7000}},
    {"SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=1",
     7000,
     {true, 3, 4, 1, HERE, 7000}},
    /* a batch script is no rank */
    {"SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0", 0, {false, 0, 4, -1, HERE, 0}},
    /* two that agree */
    {"RANK=2 WORLD_SIZE=4 PMI_RANK=2 PMI_SIZE=4", 7000, {true, 2, 4, -1, HERE, 7000}},
    /* mpirun and torchrun started by srun, once per host */
    {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 SLURM_STEP_ID=0 "
     "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0",
     7000,
     {true, 3, 4, 1, HERE, 7000}},
    {"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 SLURM_STEP_ID=0 PMI_RANK=1 PMI_SIZE=2",
     7000,
     {true, 3, 4, 1, HERE, 7000}},
};

Test(world, is_what_the_launcher_says)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct world *want = &good[i].want;
        struct world w;
        struct err err = ERR_NONE;
        set_environment(good[i].env);
        cr_assert_eq(world_read(&w, 4, good[i].port, &err), 0, "%s: %s", good[i].env, err.text);
        cr_expect_eq(w.launched, want->launched, "%s", good[i].env);
        cr_expect_eq(w.rank, want->rank, "%s", good[i].env);
        cr_expect_eq(w.ranks, want->ranks, "%s", good[i].env);
        cr_expect_eq(w.local_rank, want->local_rank, "%s: %d", good[i].env, w.local_rank);
        cr_expect_str_eq(w.host, want->host, "%s", good[i].env);
        cr_expect_eq(w.port, want->port, "%s", good[i].env);
    }
}

static const struct {
    const char *env, *message;
} bad[] = {
    {"RANK=1", "RANK is set but WORLD_SIZE is not"},
    {"WORLD_SIZE=4", "WORLD_SIZE is set but RANK is not"},
    {"RANK= WORLD_SIZE=4", "RANK: must be a whole number"},
    {"RANK=1x WORLD_SIZE=4", "RANK: must be a whole number"},
    {"RANK=-1 WORLD_SIZE=4", "RANK: must be in [0, 3], got \"-1\""},
    {"RANK=4 WORLD_SIZE=4", "RANK: must be in [0, 3], got \"4\""},
    {"RANK=99999999999999999999 WORLD_SIZE=4", "RANK: must be in [0, 3]"},
    {"RANK=0 WORLD_SIZE=0", "WORLD_SIZE: must be in [1, 128]"},
    {"RANK=0 WORLD_SIZE=1000000", "WORLD_SIZE: must be in [1, 128]"},
    {"RANK=0 WORLD_SIZE=4 LOCAL_RANK=4", "LOCAL_RANK: must be in [0, 3]"},
    {"RANK=0 WORLD_SIZE=4 LOCAL_RANK=zero", "LOCAL_RANK: must be a whole number"},
    {"RANK=0 WORLD_SIZE=8 MASTER_PORT=1", "WORLD_SIZE: the plan is for 4 ranks, got 8"},
    {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2",
     "OMPI_COMM_WORLD_SIZE: the plan is for 4 ranks, got 2"},
    {"PMI_RANK=5 PMI_SIZE=4", "PMI_RANK: must be in [0, 3]"},
    {"SLURM_STEP_ID=0 SLURM_PROCID=1", "SLURM_PROCID is set but SLURM_NTASKS is not"},
    {"RANK=1 WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4",
     "RANK=1 of 4 and OMPI_COMM_WORLD_RANK=2 of 4 disagree"},
    {"RANK=1 WORLD_SIZE=4 PMI_RANK=1 PMI_SIZE=2", "RANK=1 of 4 and PMI_RANK=1 of 2 disagree"},
    {"RANK=1 WORLD_SIZE=4", "RANK is set, so a launcher started this rank: say where"},
    {"SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4", "--port N or MASTER_PORT"},
    {"RANK=1 WORLD_SIZE=4 MASTER_PORT=0", "MASTER_PORT: must be in [1, 65535]"},
    {"RANK=1 WORLD_SIZE=4 MASTER_PORT=65536", "MASTER_PORT: must be in [1, 65535]"},
    {"RANK=1 WORLD_SIZE=4 MASTER_PORT=http", "MASTER_PORT: must be a whole number"},
    {"RANK=1 WORLD_SIZE=4 MASTER_PORT=1 MASTER_ADDR=", "MASTER_ADDR: no host \"\""},
    {"RANK=1 WORLD_SIZE=4 MASTER_PORT=1 MASTER_ADDR=1.2.3.4:5",
     "MASTER_ADDR: no host \"1.2.3.4:5\""},
};

Test(world, nonsense_is_refused_by_the_name_of_the_variable)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world w = {.ranks = -7};
        struct err err = ERR_NONE;
        set_environment(bad[i].env);
        cr_expect_eq(world_read(&w, 4, 0, &err), -1, "%s", bad[i].env);
        cr_expect_eq(err.kind, ERR_INPUT, "%s", bad[i].env);
        cr_expect_not_null(strstr(err.text, bad[i].message), "%s: %s", bad[i].env, err.text);
        cr_expect_eq(w.ranks, -7, "written on an error: %s", bad[i].env);
    }
}
