/* SPDX-License-Identifier: Apache-2.0
 *
 * replay/collectives with real ranks and a backend whose times are made up.
 */
#include "replay/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "replay/driver.h"

static int agree(const struct driver_job *job, const char *path, struct err *err)
{
    (void)path, (void)err;
    cr_assert_eq(job->plan.n, 0);
    return 0;
}

/* Rank r takes r us more than this. */
static double made_up_us(int op, int64_t bytes)
{
    return 5 + op + (double)bytes / 1e4;
}

static int make_up(const struct backend_options *o, struct comm *comm, int local_rank,
                   backend_collective_fn *deliver, void *context, struct err *err)
{
    int index = 0;
    cr_assert_eq(local_rank, comm->rank);
    for (int op = 0; op < COLL_COUNT; op++)
        for (int64_t bytes = 1024; bytes <= 4096; bytes *= 2) {
            struct backend_collective one = {(enum collective)op, bytes,
                                             made_up_us(op, bytes) + comm->rank};
            if (o->delay_us > 0 && comm->rank == 1 && index == 5)
                return err_run(err, "no more");
            deliver(context, index++, &one);
        }
    return 0;
}

static const struct backend made_up = {.name = "made-up", .check = agree, .collectives = make_up};

static struct collectives of_ranks(int ranks)
{
    struct collectives c = {.backend = &made_up, .ranks = ranks, .stall_s = 5};
    snprintf(c.origin.device, sizeof c.origin.device, "a machine");
    return c;
}

Test(collectives, become_a_table_of_the_slowest_ranks_times, .timeout = 30)
{
    char folder[] = "/tmp/test_collectives_XXXXXX", path[64], line[256];
    struct collectives c = of_ranks(3);
    struct collective_table t;
    struct err err = ERR_NONE;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table.csv", folder);
    cr_assert_eq(collectives_run(&c, path, &err), 0, "%s", err.text);
    FILE *f = fopen(path, "r");
    cr_assert(f != NULL && fgets(line, sizeof line, f) != NULL);
    fclose(f);
    cr_expect(strstr(line, "# collectives by themselves on 3 ranks, a machine, ") == line, "%s",
              line);
    cr_assert_eq(collective_load(&t, path, &err), 0, "%s", err.text);
    for (int op = 0; op < COLL_COUNT; op++) {
        cr_assert(t.n[op] == 1 && t.curve[op][0].ranks == 3 && t.curve[op][0].n == 3);
        for (int i = 0; i < 3; i++) {
            const struct collective_point *p = &t.curve[op][0].point[i];
            cr_expect_eq(p->bytes, 1024 << i);
            cr_expect_float_eq(p->us, made_up_us(op, 1024 << i) + 2, 1e-3);
        }
    }
    collective_release(&t);
    unlink(path);
    cr_expect_eq(rmdir(folder), 0, "something else is left");
}

Test(collectives, leave_no_half_a_table, .timeout = 30)
{
    char folder[] = "/tmp/test_collectives_XXXXXX", path[64];
    struct collectives c = of_ranks(2);
    struct err err = ERR_NONE;
    c.options.delay_us = 1;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table.csv", folder);
    cr_expect_eq(collectives_run(&c, path, &err), -1);
    cr_expect(strstr(err.text, "no more") != NULL, "%s", err.text);
    cr_expect_eq(rmdir(folder), 0, "a file is left");
}

Test(collectives, need_two_ranks_and_a_network)
{
    struct collectives c = of_ranks(1);
    struct err err = ERR_NONE;
    cr_expect_eq(collectives_run(&c, "/tmp/none/table.csv", &err), -1);
    cr_expect(strstr(err.text, "a rank alone exchanges nothing") != NULL, "%s", err.text);
    err = ERR_NONE;
    c.backend = &backend_host;
    c.ranks = 2;
    cr_expect_eq(collectives_run(&c, "/tmp/none/table.csv", &err), -1);
    cr_expect(strstr(err.text, "the host backend's exchanges say nothing") != NULL, "%s", err.text);
}
