/* SPDX-License-Identifier: Apache-2.0
 *
 * The reports of a study that is small enough to read: objectives 1, 1.5, 2 over one option and
 * twice that where the other is on.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/tune_text.h"

enum { SETTINGS_MAX = 40 };

static const int one_trace[] = {0};

struct bench {
    struct formula objective;
    struct grid grid;
    int64_t point[SETTINGS_MAX];
    bool in[SETTINGS_MAX];
    struct metrics run[SETTINGS_MAX];
    struct study study;
    struct findings findings;
};

static void bench_init(struct bench *b, const char *a_axis, const char *b_axis)
{
    struct err err = ERR_NONE;
    *b = (struct bench){.grid = {.n = 0}};
    cr_assert_eq(formula_parse(&b->objective, "x", "e2e", &err), 0);
    cr_assert_eq(grid_add(&b->grid, a_axis, &err), 0);
    cr_assert_eq(grid_add(&b->grid, b_axis, &err), 0);
    int64_t n = grid_points(&b->grid);
    for (int64_t i = 0; i < n; i++) {
        b->point[i] = i;
        b->in[i] = true;
        b->run[i].value[metric_find("completed")] = 10;
        b->run[i].value[metric_find("switches")] = (double)i;
        b->run[i].value[metric_find("e2e_s_mean")] =
            (1 + 0.5 * grid_at(&b->grid, i, 0)) * (1 + grid_at(&b->grid, i, 1));
    }
    b->study = (struct study){.grid = &b->grid,
                              .point = b->point,
                              .n = n,
                              .draws = {1, one_trace},
                              .rungs = 1,
                              .objective = &b->objective,
                              .rung = {{.in = b->in, .run = b->run}},
                              .made = n,
                              .wall_ns = 2000000 * (uint64_t)n};
    findings_make(&b->findings, &b->study, 0);
}

static void bench_release(struct bench *b)
{
    findings_release(&b->findings);
    grid_release(&b->grid);
}

static char *written(const struct bench *b, void (*write)(const struct findings *, FILE *))
{
    static char *text; /* a stream writes it, which gcc does not see */
    static size_t size;
    FILE *f = open_memstream(&text, &size);
    write(&b->findings, f);
    fclose(f);
    return text;
}

Test(tune_report, a_small_map_has_numbers)
{
    struct bench b;
    bench_init(&b, "m=0,1,2", "on=0,1");
    char *text = written(&b, tune_map_print);
    cr_expect_str_eq(text, "\nAbove the best setting: m across, on down\n\n"
                           "      0     1     2\n"
                           "0  0.0%   50%  100%\n"
                           "1  100%  200%  300%\n");
    free(text);
    bench_release(&b);
}

Test(tune_report, a_wide_map_has_shades)
{
    struct bench b;
    bench_init(&b, "m=1:9", "on=1");
    char *text = written(&b, tune_map_print);
    cr_expect_str_eq(text, "\nAbove the best setting: m across\n\n"
                           "             |.23456789|\n"
                           "              from 1 to 9\n"
                           "              \".\" within 1%; 9: 400%\n");
    free(text);
    bench_release(&b);
}

Test(tune_report, csv_has_a_row_for_every_setting)
{
    struct bench b;
    bench_init(&b, "m=0,1,2", "on=0,1");
    char *text = written(&b, tune_csv_write);
    const char *line = strchr(text, '\n') + 1;
    cr_expect_eq(
        strncmp(text, "m,on,trace_share,rank,objective,above_frac,flat,recommended,requests,", 69),
        0);
    cr_expect_eq(strncmp(line, "0,0,1,1,1,0,1,1,0,10,", 21), 0, "%.30s", line);
    line = strchr(line, '\n') + 1;
    cr_expect_eq(strncmp(line, "0,1,1,3,2,1,0,0,0,10,", 21), 0, "%.30s", line);
    int lines = 0;
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    cr_expect_eq(lines, 7);
    free(text);
    bench_release(&b);
}

Test(tune_report, the_text_says_cost_flat_region_and_recommendation)
{
    struct bench b;
    bench_init(&b, "m=0,1,2", "on=0,1");
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    struct tune_report report = {.findings = &b.findings,
                                 .objective = "e2e",
                                 .setting = "--policy x",
                                 .traces = 1,
                                 .workers = 2,
                                 .seeds = 1,
                                 .top = 1,
                                 .wall_ns = 6000000};
    tune_text_print(&report, f);
    fclose(f);
    cr_expect_not_null(strstr(text, "study    6 settings on 1 draw of 1 trace: 6 runs\n"));
    cr_expect_not_null(strstr(text, "cost     2 ms a run; 6 ms on 2 workers\n"), "%s", text);
    cr_expect_not_null(strstr(text, "   1  0   0       1.00   0.0%    10         0\n"), "%s", text);
    cr_expect_null(strstr(text, "\n   2 "));
    cr_expect_not_null(strstr(text, "Flat region: 1 of 6 settings are"));
    cr_expect_not_null(strstr(text, "on           2        150%   100%\n"), "%s", text);
    cr_expect_not_null(strstr(text, "\nrecommended: --policy x\nOne draw of each trace:"));
    free(text);
    bench_release(&b);
}
