/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores and findings of studies small enough to work out by hand: the objective is e2e_s_mean.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "sim/tune/findings.h"

enum { SETTINGS_MAX = 8, DRAWS_MAX = 4 };

static const bool all[SETTINGS_MAX] = {true, true, true, true, true, true, true, true};

struct bench {
    struct formula objective;
    struct metrics run[SETTINGS_MAX * DRAWS_MAX];
    struct grid grid;
    int64_t point[SETTINGS_MAX];
    struct study study;
};

/* Every run completes 10 requests. */
static void fill(struct bench *b, const double *e2e_s, int n)
{
    struct err err = ERR_NONE;
    cr_assert_eq(formula_parse(&b->objective, "x", "e2e", &err), 0);
    for (int i = 0; i < n; i++) {
        b->run[i] = (struct metrics){{0}};
        b->run[i].value[metric_find("e2e_s_mean")] = e2e_s[i];
        b->run[i].value[metric_find("completed")] = 10;
    }
}

Test(scores, compare_with_the_best_of_each_draw)
{
    static const double e2e_s[] = {1, 22, 2, 20}; /* two settings, two draws */
    static const int trace[] = {0, 1};
    struct bench b;
    struct scores s;
    struct draw_set draws = {2, trace};
    fill(&b, e2e_s, 4);
    scores_make(&s, &b.objective, &draws, b.run, all, 2);
    cr_expect_float_eq(s.above_frac[1], 0.1, 1e-12); /* 22 over 20 */
    cr_expect_float_eq(s.above_frac[2], 1, 1e-12);   /* 2 over 1 */
    cr_expect_float_eq(s.mean_frac[0], 0.05, 1e-12);
    cr_expect_float_eq(s.mean_frac[1], 0.5, 1e-12);
    cr_expect_float_eq(scores_objective(&s, 0), 11.5, 1e-12);
    scores_release(&s);
}

Test(scores, traces_count_alike_however_many_their_draws)
{
    static const double e2e_s[] = {1, 1, 1, 2, 2, 2, 2, 1}; /* two settings, four draws */
    static const int trace[] = {0, 0, 0, 1};
    struct bench b;
    struct scores s;
    struct draw_set draws = {4, trace};
    fill(&b, e2e_s, 8);
    scores_make(&s, &b.objective, &draws, b.run, all, 2);
    cr_expect_float_eq(s.weight[0], 1.0 / 6, 1e-12);
    cr_expect_float_eq(s.mean_frac[0], 0.5, 1e-12); /* half of the weight is 100% above */
    cr_expect_float_eq(s.mean_frac[1], 0.5, 1e-12);
    scores_release(&s);
}

Test(scores, negative_objectives_and_a_best_of_zero)
{
    static const double e2e_s[] = {-4, 0, -5, 0.25}; /* -4 is a fifth above -5 */
    static const int trace[] = {0, 1};
    struct bench b;
    struct scores s;
    struct draw_set draws = {2, trace};
    fill(&b, e2e_s, 4);
    scores_make(&s, &b.objective, &draws, b.run, all, 2);
    cr_expect_float_eq(s.above_frac[0], 0.2, 1e-12);
    cr_expect_float_eq(s.above_frac[3], 0.25, 1e-12); /* the difference itself */
    scores_release(&s);
}

Test(scores, fewer_completed_rank_behind_and_set_no_mark)
{
    static const double e2e_s[] = {3, 1, 2, NAN, 9};
    static const int trace[] = {0};
    static const bool in[] = {true, true, true, true, false};
    struct bench b;
    struct scores s;
    struct draw_set draws = {1, trace};
    int64_t *order;
    fill(&b, e2e_s, 5);
    b.run[1].value[metric_find("completed")] = 9;
    scores_make(&s, &b.objective, &draws, b.run, in, 5);
    cr_expect_float_eq(s.mean_frac[0], 0.5, 1e-12); /* over 2, not over 1 */
    cr_expect(isnan(s.mean_frac[1]) && isnan(s.mean_frac[3]) && isnan(s.mean_frac[4]));
    cr_assert_eq(scores_order(&s, &order), 4);
    cr_expect(order[0] == 2 && order[1] == 0 && order[2] == 3 && order[3] == 1);
    free(order);
    scores_release(&s);
}

/* A study that has run, all in one rung. */
static void study_of(struct bench *b, const double *e2e_s, const char *const *axis, int n_axes,
                     struct draw_set draws)
{
    struct err err = ERR_NONE;
    b->grid = (struct grid){.n = 0};
    for (int a = 0; a < n_axes; a++)
        cr_assert_eq(grid_add(&b->grid, axis[a], &err), 0);
    int64_t n = grid_points(&b->grid);
    fill(b, e2e_s, (int)n * draws.n);
    for (int64_t i = 0; i < n; i++)
        b->point[i] = i;
    b->study = (struct study){.grid = &b->grid,
                              .point = b->point,
                              .n = n,
                              .draws = draws,
                              .rungs = 1,
                              .objective = &b->objective,
                              .rung = {{.in = (bool *)all, .run = b->run}}};
}

Test(findings, flat_region_effects_and_axes)
{
    static const char *const axis[] = {"a=1,2", "b=1,2,3", "c=5"};
    static const double e2e_s[] = {1, 1.5, 2, 1.005, 1.2, 1.5};
    static const int trace[] = {0};
    struct bench b;
    struct findings f;
    int strongest[2];
    study_of(&b, e2e_s, axis, 3, (struct draw_set){1, trace});
    findings_make(&f, &b.study, 0);
    cr_expect_eq(f.best, 0);
    cr_expect_eq(f.n_flat, 2);
    cr_expect(f.flat[0] && f.flat[3]);
    cr_expect(f.effect[0].flat_first == 0 && f.effect[0].flat_last == 1);
    cr_expect(f.effect[1].flat_first == 0 && f.effect[1].flat_last == 0);
    cr_expect_float_eq(f.effect[0].mean_frac, 0.265, 1e-12); /* 0.5 - (0.005 + 0.2 + 0.5) / 3 */
    cr_expect_float_eq(f.effect[0].alone_frac, 0.005, 1e-12);
    cr_expect_float_eq(f.effect[1].mean_frac, 0.7475, 1e-12); /* 0.75 - 0.0025 */
    cr_expect_float_eq(f.effect[1].alone_frac, 1, 1e-12);
    cr_expect(isnan(f.effect[2].mean_frac));
    findings_axes(&f, strongest);
    cr_expect(strongest[0] == 1 && strongest[1] == 0);
    cr_expect(isnan(f.confidence_frac)); /* one draw */
    findings_release(&f);
    grid_release(&b.grid);
}

/* Two draws, two settings. The first is best on one by 10%, the second on the other by 4%: of the
 * four pairs of draws only that of the second twice makes the second the better one. */
Test(findings, confidence_is_the_share_of_resamples)
{
    static const char *const axis[] = {"a=1,2"};
    static const double e2e_s[] = {1, 1.04, 1.1, 1};
    static const int trace[] = {0, 0};
    struct bench b;
    struct findings f;
    study_of(&b, e2e_s, axis, 1, (struct draw_set){2, trace});
    findings_make(&f, &b.study, 0);
    cr_expect_eq(f.best, 0);
    cr_expect_float_eq(f.confidence_frac, 0.75, 0.05); /* deviation 0.014 */
    findings_release(&f);
    grid_release(&b.grid);
}

Test(findings, traces_are_not_mixed_in_resamples)
{
    static const char *const axis[] = {"a=1,2"};
    static const double e2e_s[] = {1, 1, 1.04, 1.1, 1.1, 1}; /* draws of traces 0, 0, 1 */
    static const int trace[] = {0, 0, 1};
    struct bench b;
    struct findings f;
    study_of(&b, e2e_s, axis, 1, (struct draw_set){3, trace});
    findings_make(&f, &b.study, 0);
    cr_expect_float_eq(f.confidence_frac, 1, 1e-12); /* 0.02 and 0.05 above, whatever is drawn */
    findings_release(&f);
    grid_release(&b.grid);
}

Test(findings, without_a_value_there_is_no_recommendation)
{
    static const char *const axis[] = {"a=1,2"};
    static const double e2e_s[] = {NAN, NAN};
    static const int trace[] = {0};
    struct bench b;
    struct findings f;
    study_of(&b, e2e_s, axis, 1, (struct draw_set){1, trace});
    findings_make(&f, &b.study, 0);
    cr_expect_eq(f.best, -1);
    cr_expect_eq(f.n_flat, 0);
    findings_release(&f);
    grid_release(&b.grid);
}
