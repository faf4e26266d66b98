/* SPDX-License-Identifier: Apache-2.0
 *
 * hw/collective: interpolation on a small table worked by hand, and the shipped tables.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "hw/catalog.h"
#include "hw/collective.h"
#include "sim/base/units.h"

#define N(array) ((int)(sizeof(array) / sizeof *(array)))

/* Columns and rows out of order on purpose; all_to_all has one rank count and a dip. */
static const char small[] = "# comment\n"
                            "ranks,op,us,bytes\n"
                            "\n"
                            "2,all_reduce,20,4000\n"
                            "8,all_reduce,16,1000\n"
                            "8,all_reduce,20,2000\n"
                            "# another\n"
                            "8,all_reduce,30,4000\n"
                            "2,all_reduce,10,1000\n"
                            "2,all_reduce,12,2000\n"
                            "2,all_gather,1,1\n"
                            "2,all_gather,2,2\n"
                            "2,reduce_scatter,1,1\n"
                            "2,reduce_scatter,1,2\n"
                            "4,all_to_all,9,1000\n"
                            "4,all_to_all,7,2000\n"
                            "4,all_to_all,8,3000\n";

static int load_text(struct collective_table *t, const char *text, struct err *err)
{
    char path[] = "/tmp/test_collective_XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int status = collective_load(t, path, err);
    unlink(path);
    return status;
}

static void load_small(struct collective_table *t)
{
    struct err err = ERR_NONE;
    cr_assert_eq(load_text(t, small, &err), 0, "%s", err.text);
}

static void assert_us(double got_s, double want_us)
{
    cr_assert(fabs(got_s * 1e6 - want_us) <= 1e-12 * want_us, "got %.17g us, want %.17g us",
              got_s * 1e6, want_us);
}

Test(collective, sizes_interpolate_linearly)
{
    struct collective_table t;
    load_small(&t);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 1), 10);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 1000), 10);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 1500), 11);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 2000), 12);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 2500), 14);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 4000), 20);
    /* the last slope, 4 us per 1000 bytes, goes on */
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 6000), 28);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 8, 3000), 25);
    collective_release(&t);
}

Test(collective, nothing_to_do_takes_no_time)
{
    struct collective_table t;
    load_small(&t);
    cr_assert_eq(collective_s(&t, COLL_ALL_REDUCE, 1, 1e9), 0);
    cr_assert_eq(collective_s(&t, COLL_ALL_REDUCE, 8, 0), 0);
    cr_assert_eq(collective_s(&t, COLL_ALL_REDUCE, 8, -1), 0);
    cr_assert_eq(collective_latency_s(&t, COLL_ALL_REDUCE, 1), 0);
    collective_release(&t);
}

Test(collective, ranks_interpolate_in_log2)
{
    struct collective_table t;
    load_small(&t);
    /* 4 is half way from 2 to 8 */
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 4, 1000), (10 + 16) / 2.0);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 4, 3000), (16 + 25) / 2.0);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 6, 1000), 10 + 6 * (log2(6) - 1) / 2);
    assert_us(collective_latency_s(&t, COLL_ALL_REDUCE, 4), 13);
    collective_release(&t);
}

Test(collective, fewer_ranks_than_measured_take_the_smallest_count)
{
    struct collective_table t;
    load_small(&t);
    assert_us(collective_s(&t, COLL_ALL_TO_ALL, 2, 3000), 8);
    collective_release(&t);
}

Test(collective, more_ranks_than_measured_scale_wire_and_latency)
{
    struct collective_table t;
    load_small(&t);
    /* 64 ranks from 8: latency 16 us x 6/3, wire 14 us x (63/64) / (7/8) */
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 64, 4000), 16 * 2 + 14 * 1.125);
    assert_us(collective_latency_s(&t, COLL_ALL_REDUCE, 64), 32);
    /* from 2 to 4: latency 1 us x 2, wire 1 us x (3/4) / (1/2) */
    assert_us(collective_s(&t, COLL_ALL_GATHER, 4, 2), 2 + 1.5);
    collective_release(&t);
}

Test(collective, latency_is_the_smallest_time)
{
    struct collective_table t;
    load_small(&t);
    assert_us(collective_latency_s(&t, COLL_ALL_TO_ALL, 4), 7);
    assert_us(collective_latency_s(&t, COLL_ALL_REDUCE, 2), 10);
    collective_release(&t);
}

/* Measured on a machine of 2 ranks, and all_reduce on one of 4; all_gather only there. */
static const char measured[] = "op,ranks,bytes,us\n"
                               "all_reduce,2,1000,20\n"
                               "all_reduce,2,3000,40\n"
                               "all_reduce,4,1000,7\n"
                               "all_reduce,4,4000,9\n"
                               "all_gather,4,1,5\n"
                               "all_gather,4,2,6\n"
                               "reduce_scatter,2,1,3\n"
                               "reduce_scatter,2,4,6\n"
                               "all_to_all,2,1000,18\n"
                               "all_to_all,2,3000,20\n";

Test(collective, measurements_replace_times_and_scale_those_of_other_rank_counts)
{
    struct collective_table base, m;
    struct err err = ERR_NONE;
    load_small(&base);
    cr_assert_eq(load_text(&m, measured, &err), 0, "%s", err.text);
    cr_assert(collective_has(&m, COLL_ALL_GATHER, 4) && !collective_has(&m, COLL_ALL_GATHER, 2));
    struct collective_table t = collective_rebase(&base, &m, 2);
    /* as measured, between and beyond its points too */
    cr_assert_eq(t.n[COLL_ALL_REDUCE], 3);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 2000), 30);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 2, 4000), 50);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 4, 4000), 9);
    /* over 8: 16, 20 and 30 us, times 20 / 10, 30 / 12 and 50 / 20 */
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 8, 1000), 32);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 8, 2000), 50);
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 8, 4000), 75);
    assert_us(collective_latency_s(&t, COLL_ALL_REDUCE, 8), 32);
    assert_us(collective_latency_s(&t, COLL_ALL_REDUCE, 2), 20);
    /* not measured over 2: the base's */
    cr_assert_eq(t.n[COLL_ALL_GATHER], 1);
    assert_us(collective_s(&t, COLL_ALL_GATHER, 2, 2), 2);
    assert_us(collective_s(&t, COLL_REDUCE_SCATTER, 2, 4), 6);
    /* base has 4 alone, which is what it takes 2 for: 9, 7 and 8 us, times 18 / 9, 19 / 7, 20 / 8
     */
    cr_assert_eq(t.n[COLL_ALL_TO_ALL], 2);
    assert_us(collective_s(&t, COLL_ALL_TO_ALL, 2, 2000), 19);
    assert_us(collective_s(&t, COLL_ALL_TO_ALL, 4, 1000), 18);
    assert_us(collective_s(&t, COLL_ALL_TO_ALL, 4, 2000), 19);
    assert_us(collective_s(&t, COLL_ALL_TO_ALL, 4, 3000), 20);
    assert_us(collective_latency_s(&t, COLL_ALL_TO_ALL, 4), 18);
    collective_release(&t);
    collective_release(&m);
    collective_release(&base);
}

Test(collective, faults_name_file_and_line)
{
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"op,ranks,bytes\n",
         ":1: the header must name the columns op, ranks, bytes and us; \"us\""},
        {"op,ranks,bytes,us\nall_red,2,8,1\n", ":2: op must be all_reduce"},
        {"op,ranks,bytes,us\nall_reduce,2,8\n", ":2: us is missing: the row has 3 fields"},
        {"op,ranks,bytes,us\nall_reduce,1,8,1\n", ":2: ranks: must be"},
        {"op,ranks,bytes,us\nall_reduce,2.5,8,1\n", ":2: ranks: must be"},
        {"op,ranks,bytes,us\nall_reduce,2,0,1\n", ":2: bytes: must be"},
        {"op,ranks,bytes,us\nall_reduce,2,8,0\n", ":2: us: must be"},
        {"op,ranks,bytes,us\nall_reduce,2,8,-3\n", ":2: us: must be"},
        {"op,ranks,bytes,us\n\nall_reduce,2,8,nan\n", ":3: us: must be"},
        {"op,ranks,bytes,us\nall_reduce,2,8,1\nall_reduce,2,9,1\nall_reduce,2,8,2\n",
         ":4: this size of all_reduce over 2 ranks is given twice"},
        {"op,ranks,bytes,us\nall_reduce,2,8,1\n", ":2: all_reduce over 2 ranks has one size"},
        {"op,ranks,bytes,us\nall_reduce,2,8,2\nall_reduce,2,9,1\n", ":3: the largest size"},
        {"op,ranks,bytes,us\nall_reduce,2,8,1\nall_reduce,2,9,1\n", "has no rows of all_gather"},
        {"op,ranks,bytes,us\n", "has no rows of all_reduce"},
        {"", "has no rows of all_reduce"},
    };
    for (int i = 0; i < N(bad); i++) {
        struct collective_table t;
        struct err err = ERR_NONE;
        cr_assert_eq(load_text(&t, bad[i].text, &err), -1, "case %d", i);
        cr_assert(strstr(err.text, "/tmp/test_collective_") == err.text, "%s", err.text);
        cr_assert(strstr(err.text, bad[i].want) != NULL, "case %d: %s", i, err.text);
    }
}

/* Calls `check` on every shipped table. */
static void for_shipped(void (*check)(const char *name, const struct collective_table *t))
{
    int n;
    char **names = catalog_names("nccl", &n);
    cr_assert_geq(n, 5);
    for (int i = 0; i < n; i++) {
        struct collective_table t;
        struct err err = ERR_NONE;
        cr_assert_eq(collective_load(&t, names[i], &err), 0, "%s", err.text);
        check(names[i], &t);
        collective_release(&t);
    }
    catalog_free(names, n);
}

static void check_points(const char *name, const struct collective_table *t)
{
    for (int op = 0; op < COLL_COUNT; op++) {
        for (int i = 0; i < t->n[op]; i++) {
            const struct collective_curve *c = &t->curve[op][i];
            for (int p = 0; p < c->n; p++)
                assert_us(collective_s(t, (enum collective)op, c->ranks, c->point[p].bytes),
                          c->point[p].us);
            cr_assert(i == 0 || t->curve[op][i - 1].ranks < c->ranks, "%s", name);
        }
    }
}

Test(collective, measured_points_come_back)
{
    for_shipped(check_points);
}

static void check_monotone(const char *name, const struct collective_table *t)
{
    static const int ranks[] = {2, 3, 4, 6, 8, 16, 72};
    for (int op = 0; op < COLL_COUNT; op++) {
        for (int r = 0; r < N(ranks); r++) {
            double before = collective_latency_s(t, (enum collective)op, ranks[r]);
            for (double bytes = MIB; bytes < 1e12; bytes *= 1.3) {
                double s = collective_s(t, (enum collective)op, ranks[r], bytes);
                cr_assert(before <= s, "%s %s over %d, %g bytes", name, collective_names[op],
                          ranks[r], bytes);
                before = s;
            }
        }
    }
}

/* Below 1 MiB the measurements dip where NCCL changes protocol. */
Test(collective, shipped_times_rise_with_bytes_from_one_mib)
{
    for_shipped(check_monotone);
}

static void check_above_latency(const char *name, const struct collective_table *t)
{
    for (int op = 0; op < COLL_COUNT; op++)
        for (int ranks = 2; ranks <= 80; ranks++)
            for (double bytes = 1; bytes < 1e9; bytes *= 7)
                cr_assert(collective_s(t, (enum collective)op, ranks, bytes) >=
                              collective_latency_s(t, (enum collective)op, ranks) * (1 - 1e-12),
                          "%s %s %d %g", name, collective_names[op], ranks, bytes);
}

Test(collective, no_time_is_below_the_latency)
{
    for_shipped(check_above_latency);
}

/* Bus bandwidth of 512 MiB over 8 ranks in GB/s, as published for the same measurements. */
Test(collective, shipped_h200_has_the_published_bus_bandwidth)
{
    static const struct {
        enum collective op;
        double factor, gb_per_s;
    } want[] = {
        {COLL_ALL_REDUCE, 2 * 7 / 8.0, 460},
        {COLL_ALL_GATHER, 7 / 8.0, 337},
        {COLL_REDUCE_SCATTER, 7 / 8.0, 337},
        {COLL_ALL_TO_ALL, 7 / 8.0, 311},
    };
    struct collective_table t;
    struct err err = ERR_NONE;
    cr_assert_eq(collective_load(&t, "h200", &err), 0, "%s", err.text);
    for (int i = 0; i < N(want); i++) {
        double bytes = 512 * MIB;
        double rate = want[i].factor * bytes / collective_s(&t, want[i].op, 8, bytes) / 1e9;
        cr_assert(fabs(rate - want[i].gb_per_s) <= 0.6, "%s: %g", collective_names[want[i].op],
                  rate);
    }
    assert_us(collective_s(&t, COLL_ALL_REDUCE, 8, 16 * MIB), 121.74);
    collective_release(&t);
}
