/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles and collective tables as files: what is written reads back, and names find each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "hw/profile.h"

static char folder[] = "/tmp/test_profile_XXXXXX";
static char previous[4096];

static void enter(void)
{
    cr_assert(mkdtemp(folder) != NULL && getcwd(previous, sizeof previous) != NULL);
    cr_assert_eq(chdir(folder), 0);
}

static void leave(void)
{
    unlink("mine.json");
    unlink("mine.csv");
    if (chdir(previous) == 0)
        rmdir(folder);
}

static struct profile load(const char *name_or_path)
{
    struct profile p;
    struct err err = ERR_NONE;
    cr_assert_eq(profile_load(&p, name_or_path, &err), 0, "%s", err.text);
    return p;
}

static void write_files(const struct profile *p)
{
    static const char *const source[] = {"a \"quoted\" line", "assumed: another"};
    FILE *out = fopen("mine.json", "w");
    profile_write(p, source, 2, out);
    fclose(out);
    out = fopen("mine.csv", "w");
    fputs("# a comment\n", out);
    collective_write(&p->collectives, out);
    fclose(out);
}

static struct profile invent(void)
{
    struct profile p = load("h200-analytic");
    snprintf(p.name, sizeof p.name, "mine");
    snprintf(p.kind, sizeof p.kind, "measured");
    snprintf(p.collectives_name, sizeof p.collectives_name, "mine.csv");
    p.stage[STAGE_PROJ].launch_us = 12.5;
    p.stage[STAGE_FFN].hbm_frac.frac[0] = 0.8125;
    p.transfer.kv_factor = 1.75;
    p.transfer.regroup_hbm_frac = 0.25;
    p.expert_imbalance = 1.2;
    p.transfer.beside_frac = 0.875;
    p.transfer.regroup_interference = 0.5;
    p.attention =
        (struct attention_profile){MLA_ABSORBED, POSITIONS_PARTIAL, 224, 0.375, 2.5, 0.125};
    p.collectives.curve[COLL_ALL_GATHER][0].point[3].us = 4.125;
    return p;
}

static void expect_same_curve(const struct efficiency *a, const struct efficiency *b)
{
    cr_assert_eq(a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        cr_expect_eq(a->size[i], b->size[i]);
        cr_expect_eq(a->frac[i], b->frac[i]);
    }
}

static void expect_same_collectives(const struct collective_table *a,
                                    const struct collective_table *b)
{
    for (int op = 0; op < COLL_COUNT; op++) {
        cr_assert_eq(a->n[op], b->n[op]);
        for (int i = 0; i < a->n[op]; i++) {
            const struct collective_curve *x = &a->curve[op][i], *y = &b->curve[op][i];
            cr_assert(x->n == y->n && x->ranks == y->ranks);
            for (int k = 0; k < x->n; k++)
                cr_expect(x->point[k].bytes == y->point[k].bytes &&
                          x->point[k].us == y->point[k].us);
        }
    }
}

Test(profile, what_is_written_reads_back, .init = enter, .fini = leave)
{
    struct profile p = invent();
    write_files(&p);
    struct profile q = load("./mine.json");
    cr_expect_str_eq(q.name, "mine");
    cr_expect_str_eq(q.kind, "measured");
    cr_expect_str_eq(q.collectives_name, "mine.csv");
    for (int s = 0; s < STAGE_COUNT; s++) {
        expect_same_curve(&p.stage[s].flop_frac, &q.stage[s].flop_frac);
        expect_same_curve(&p.stage[s].hbm_frac, &q.stage[s].hbm_frac);
        cr_expect_eq(p.stage[s].launch_us, q.stage[s].launch_us);
    }
    cr_expect_eq(q.stage[STAGE_PROJ].launch_us, 12.5);
    cr_expect_eq(q.stage[STAGE_FFN].launch_us, 0, "without the key");
    cr_expect_eq(q.attention.mla_prefill, MLA_ABSORBED);
    cr_expect_eq(q.attention.positions, POSITIONS_PARTIAL);
    cr_expect_eq(q.attention.row_tokens, 224);
    cr_expect_eq(q.attention.merge_us, 0.375);
    cr_expect_eq(q.attention.combine_us, 2.5);
    cr_expect_eq(q.attention.spill_frac, 0.125);
    cr_expect_eq(q.layer_launch_us, 7);
    cr_expect_eq(q.step_launch_us, 300);
    cr_expect_eq(q.expert_imbalance, 1.2);
    cr_expect_eq(q.transfer.kv_factor, 1.75);
    cr_expect_eq(q.transfer.repack_hbm_frac, 0.8);
    cr_expect_eq(q.transfer.regroup_hbm_frac, 0.25);
    cr_expect_eq(q.transfer.beside_frac, 0.875);
    cr_expect_eq(q.transfer.regroup_interference, 0.5);
    cr_expect_eq(q.transfer.link_interference, 0, "without the key");
    expect_same_collectives(&p.collectives, &q.collectives);
    profile_release(&p);
    profile_release(&q);
}

/* "mine.csv" is beside mine.json, wherever the program runs. */
Test(profile, a_table_named_by_a_path_lies_beside_the_profile, .init = enter, .fini = leave)
{
    char path[64];
    struct profile p = invent();
    write_files(&p);
    snprintf(path, sizeof path, "%s/mine.json", folder);
    cr_assert_eq(chdir("/"), 0);
    struct profile q = load(path);
    cr_expect_eq(q.collectives.curve[COLL_ALL_GATHER][0].point[3].us, 4.125);
    profile_release(&p);
    profile_release(&q);
    cr_assert_eq(chdir(folder), 0);
}

Test(profile, a_table_that_is_not_there_is_named, .init = enter, .fini = leave)
{
    struct profile p = invent(), q;
    struct err err = ERR_NONE;
    write_files(&p);
    unlink("mine.csv");
    cr_expect_eq(profile_load(&q, "./mine.json", &err), -1);
    cr_expect(strstr(err.text, "./mine.csv: ") != NULL, "%s", err.text);
    profile_release(&p);
}

Test(collective, a_copy_has_its_own_numbers)
{
    struct profile p = load("h200-analytic");
    struct collective_table copy = collective_copy(&p.collectives);
    expect_same_collectives(&copy, &p.collectives);
    double before = collective_s(&p.collectives, COLL_ALL_REDUCE, 2, 1 << 20);
    copy.curve[COLL_ALL_REDUCE][0].point[11].us *= 2;
    cr_expect_eq(collective_s(&p.collectives, COLL_ALL_REDUCE, 2, 1 << 20), before);
    cr_expect_eq(collective_s(&copy, COLL_ALL_REDUCE, 2, 1 << 20), 2 * before);
    collective_release(&copy);
    profile_release(&p);
}
