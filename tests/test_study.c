/* SPDX-License-Identifier: Apache-2.0
 *
 * Studies and the team that does them, with runs that are arithmetic: the objective of setting s on
 * draw d is |s - 5| + d / 10 + 1, halved on the first ninth of the trace.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/tune/study.h"

enum { SETTINGS = 10, DRAWS = 2 };

static const int draw_trace[DRAWS] = {0, 0};
static const struct ranks alone = {.rank = 0, .n = 1};

struct world {
    struct formula objective;
    struct grid grid;
    int64_t point[SETTINGS];
    struct study study;
    int64_t fails; /* the job that does; -1: none */
    int labelled;
};

static void world_init(struct world *w, int rungs)
{
    struct err err = ERR_NONE;
    *w = (struct world){.fails = -1};
    cr_assert_eq(formula_parse(&w->objective, "x", "e2e_s_mean", &err), 0);
    cr_assert_eq(grid_add(&w->grid, "a=0:9", &err), 0);
    for (int64_t i = 0; i < SETTINGS; i++)
        w->point[i] = i;
    w->study = (struct study){.grid = &w->grid,
                              .point = w->point,
                              .n = SETTINGS,
                              .draws = {DRAWS, draw_trace},
                              .rungs = rungs,
                              .objective = &w->objective};
}

static void world_release(struct world *w)
{
    study_release(&w->study);
    grid_release(&w->grid);
}

struct worker {
    const struct world *world;
};

static void *worker_new(const void *context)
{
    struct worker *w = malloc(sizeof *w);
    w->world = context;
    return w;
}

static void work(void *worker, int64_t job, struct outcome *out)
{
    const struct world *w = ((struct worker *)worker)->world;
    struct study_job j = study_job(&w->study, job);
    out->metrics = (struct metrics){{0}};
    out->metrics.value[metric_find("completed")] = 1;
    out->metrics.value[metric_find("e2e_s_mean")] =
        (fabs((double)j.setting - 5) + j.draw / 10.0 + 1) /
        (study_cut(&w->study, j.rung) > 3 ? 2 : 1);
    out->wall_ns = 10;
    if (job == w->fails)
        err_set(&out->err, "job %lld fails", (long long)job);
}

static int label(void *world, int64_t job, struct run_row *row, struct err *err)
{
    struct world *w = world;
    (void)err;
    *row = (struct run_row){.version = "1",
                            .model = "m",
                            .cluster = "c",
                            .profile = "p",
                            .trace = "t",
                            .policy = "q",
                            .settings = "{}"};
    snprintf(row->key, sizeof row->key, "%032lld", (long long)job);
    w->labelled++;
    return 0;
}

static int run(struct world *w, int threads, struct run_store *store, struct err *err)
{
    struct team_task task = {worker_new, free, work, w};
    struct team *team = team_new(&alone, threads, &task);
    int rc = study_run(&w->study, team, store, label, w, err);
    team_dismiss(team);
    team_free(team);
    return rc;
}

Test(study, every_run_is_made_once)
{
    static const int threads[] = {1, 2, 7, 40};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        struct world w;
        struct err err = ERR_NONE;
        world_init(&w, 1);
        cr_assert_eq(run(&w, threads[i], NULL, &err), 0);
        cr_expect_eq(w.study.made, SETTINGS * DRAWS);
        cr_expect_eq(w.study.wall_ns, 10 * SETTINGS * DRAWS);
        for (int s = 0; s < SETTINGS; s++)
            cr_expect_float_eq(w.study.rung[0].run[s * DRAWS + 1].value[metric_find("e2e_s_mean")],
                               abs(s - 5) + 1.1, 1e-12);
        world_release(&w);
    }
}

Test(study, halving_keeps_the_best_third)
{
    struct world w;
    struct err err = ERR_NONE;
    world_init(&w, STUDY_RUNGS_MAX);
    cr_expect_eq(study_cut(&w.study, 0), 9);
    cr_expect_eq(study_cut(&w.study, 2), 1);
    cr_expect_eq(study_runs(&w.study), (10 + 4 + 2) * DRAWS);
    cr_assert_eq(run(&w, 2, NULL, &err), 0);
    cr_expect_eq(w.study.made, 32);
    static const bool second[SETTINGS] = {[4] = true, [5] = true, [6] = true, [3] = true};
    static const bool third[SETTINGS] = {[4] = true, [5] = true};
    for (int s = 0; s < SETTINGS; s++) {
        cr_expect_eq(w.study.rung[1].in[s], second[s], "%d", s);
        cr_expect_eq(w.study.rung[2].in[s], third[s], "%d", s);
    }
    world_release(&w);
}

Test(study, a_run_that_fails_ends_it)
{
    struct world w;
    struct err err = ERR_NONE;
    world_init(&w, 1);
    w.fails = 13;
    cr_expect_eq(run(&w, 3, NULL, &err), -1);
    cr_expect_str_eq(err.text, "job 13 fails");
    cr_expect(w.study.made >= 11 && w.study.made < 20); /* those under way are lost */
    world_release(&w);
}

Test(study, what_the_store_has_is_not_made_again)
{
    struct world w, again;
    struct err err = ERR_NONE;
    char path[] = "/tmp/test_study_XXXXXX";
    close(mkstemp(path));
    struct run_store *store = run_store_open(path, &err);
    cr_assert_not_null(store, "%s", err.text);
    world_init(&w, 1);
    w.fails = 13;
    cr_expect_eq(run(&w, 1, store, &err), -1);
    cr_expect_eq(w.study.made, 13);
    err = ERR_NONE;
    world_init(&again, 1);
    cr_expect_eq(run(&again, 2, store, &err), 0);
    cr_expect_eq(again.study.found, 13);
    cr_expect_eq(again.study.made, 7);
    for (int i = 0; i < SETTINGS * DRAWS; i++)
        cr_expect_float_eq(again.study.rung[0].run[i].value[metric_find("e2e_s_mean")],
                           abs(i / 2 - 5) + i % 2 * 0.1 + 1, 1e-12);
    run_store_close(store);
    unlink(path);
    world_release(&w);
    world_release(&again);
}

Test(study, settings_are_found_by_point)
{
    static const int64_t point[] = {2, 3, 9};
    struct study s = {.point = point, .n = 3};
    cr_expect_eq(study_find(&s, 2), 0);
    cr_expect_eq(study_find(&s, 9), 2);
    cr_expect_eq(study_find(&s, 4), -1);
    cr_expect_eq(study_find(&s, 10), -1);
}
