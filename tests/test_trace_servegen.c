/* SPDX-License-Identifier: Apache-2.0
 *
 * ServeGen's clients: how many requests are drawn, when, how long, and what is refused. Runs in the
 * root of the repository, for the sample.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/trace.h"

static char folder[] = "/tmp/test_servegen_XXXXXX";

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = {"a-trace.csv", "a-dataset.json", "b-trace.csv",
                                        "b-dataset.json", "a.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

static char *write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static int load(struct trace *t, const char *rows, const char *dataset, int64_t seed,
                struct err *err)
{
    char *path = write_file("a-trace.csv", rows), *lengths = write_file("a-dataset.json", dataset);
    int rc = trace_load(t, path, &(struct trace_reading){.seed = seed}, err);
    free(path);
    free(lengths);
    return rc;
}

static struct trace loaded(const char *rows, const char *dataset)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&t, rows, dataset, 0, &err), 0, "%s", err.text);
    return t;
}

#define WINDOW(input, output) "{\"input_tokens\": \"" input "\", \"output_tokens\": \"" output "\"}"
#define ALWAYS                "{\"0\": " WINDOW("{10: 1.0}", "{20: 1.0}") "}"

TestSuite(trace_servegen, .init = make_folder, .fini = remove_folder);

/* rate x 600 s: 60, none, 3; each in its window. */
Test(trace_servegen, draws_as_many_as_each_window_had)
{
    struct trace t = loaded("0,0.1,1.0,Gamma,1.0,10.0\n"
                            "600,0,0,,0,0\n"
                            "1200,0.005,2.0,Weibull,0.5,1\n",
                            ALWAYS);
    cr_assert_eq(t.n, 63);
    cr_expect_str_eq(t.format, "servegen");
    cr_expect_eq(t.noted[NOTE_DRAWN], 63);
    for (size_t i = 0; i < t.n; i++) {
        int64_t at_ps = (int64_t)t.origin_ps + t.request[i].arrival_ps;
        cr_expect_eq(at_ps >= 1200 * PS_PER_S, i >= 60);
        cr_expect(i >= 60 || at_ps < 600 * PS_PER_S);
        cr_expect(at_ps < 1800 * PS_PER_S);
        cr_expect_eq(t.request[i].line, i < 60 ? 1 : 3);
        cr_expect_eq(t.request[i].input_tokens, 10);
        cr_expect_eq(t.request[i].output_tokens, 20);
    }
    trace_release(&t);
}

/* The coefficient of variation of the gaps: 1 / sqrt(shape) for Gamma. */
Test(trace_servegen, gaps_are_as_bursty_as_the_shape_says)
{
    static const struct {
        const char *row;
        double cv, tolerance;
    } cases[] = {
        {"0,100,1,Gamma,1.0,1\n", 1, 0.02},        {"0,100,1,Gamma,4.0,1\n", 0.5, 0.01},
        {"0,100,1,Gamma,0.25,1\n", 2, 0.06},       {"0,100,1,Weibull,1.0,1\n", 1, 0.02},
        {"0,100,1,Weibull,2.0,1\n", 0.5227, 0.01}, /* sqrt(4 / pi - 1) */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct trace t = loaded(cases[c].row, ALWAYS);
        double sum = 0, squares = 0;
        cr_assert_eq(t.n, 60000);
        for (size_t i = 1; i < t.n; i++) {
            double gap = ps_to_s(t.request[i].arrival_ps - t.request[i - 1].arrival_ps);
            sum += gap;
            squares += gap * gap;
        }
        double n = (double)(t.n - 1), mean = sum / n;
        double cv = sqrt(squares / n - mean * mean) / mean;
        cr_expect_float_eq(mean, 0.01, 0.0005);
        cr_expect_float_eq(cv, cases[c].cv, cases[c].tolerance, "%s: %g", cases[c].row, cv);
        trace_release(&t);
    }
}

/* Lengths of the window begun last, over ones without any; of the first one before it. */
Test(trace_servegen, lengths_follow_the_windows_and_pass_over_empty_ones)
{
    static const char rows[] = "0,0.01,1,Gamma,1,1\n"
                               "600,0.01,1,Gamma,1,1\n"
                               "1200,0.01,1,Gamma,1,1\n"
                               "1800,0.01,1,Gamma,1,1\n";
    /* clang-format off */
    static const char dataset[] = "{\"0\": " WINDOW("{}", "{}")
                                  ", \"600\": " WINDOW("{1: 1}", "{2: 1}")
                                  ", \"1200\": " WINDOW("{}", "{}")
                                  ", \"1700\": " WINDOW("{3: 1}", "{4: 1}") "}";
    /* clang-format on */
    struct trace t = loaded(rows, dataset);
    cr_assert_eq(t.n, 24);
    for (size_t i = 0; i < t.n; i++) {
        cr_expect_eq(t.request[i].input_tokens, i < 18 ? 1 : 3);
        cr_expect_eq(t.request[i].output_tokens, i < 18 ? 2 : 4);
    }
    trace_release(&t);
}

Test(trace_servegen, lengths_of_zero_are_skipped_and_not_counted_as_drawn)
{
    struct trace t =
        loaded("0,1,1,Gamma,1,1\n", "{\"0\": " WINDOW("{0: 0.5, 5: 0.5}", "{2: 1}") "}");
    cr_expect_eq((int64_t)t.n + t.skipped[SKIP_NO_INPUT], 600);
    cr_expect_eq(t.noted[NOTE_DRAWN], (int64_t)t.n);
    cr_expect(t.n > 240 && t.n < 360, "300 expected, 5 standard deviations are 61, got %zu", t.n);
    trace_release(&t);
}

static bool same_arrivals(const struct trace *a, const struct trace *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->request[i].arrival_ps == b->request[i].arrival_ps &&
               a->request[i].output_tokens == b->request[i].output_tokens;
    return same;
}

Test(trace_servegen, the_seed_decides)
{
    static const char rows[] = "0,1,1,Gamma,1,1\n";
    struct trace a, b, c;
    struct err err = ERR_NONE;
    cr_assert_eq(load(&a, rows, ALWAYS, 5, &err), 0, "%s", err.text);
    cr_assert_eq(load(&b, rows, ALWAYS, 5, &err), 0, "%s", err.text);
    cr_assert_eq(load(&c, rows, ALWAYS, 6, &err), 0, "%s", err.text);
    cr_expect(same_arrivals(&a, &b));
    cr_expect(!same_arrivals(&a, &c));
    trace_release(&a);
    trace_release(&b);
    trace_release(&c);
}

Test(trace_servegen, a_folder_is_all_its_clients)
{
    static const char rows[] = "0,0.1,1,Gamma,1,1\n";
    char *paths[] = {write_file("a-trace.csv", rows), write_file("a-dataset.json", ALWAYS),
                     write_file("b-trace.csv", rows), write_file("b-dataset.json", ALWAYS)};
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert_eq(trace_load(&t, folder, &(struct trace_reading){0}, &err), 0, "%s", err.text);
    cr_expect_eq(t.n, 120);
    for (size_t i = 1; i < t.n; i++)
        cr_expect_neq(t.request[i].arrival_ps, t.request[i - 1].arrival_ps, "drawn alike");
    trace_release(&t);
    for (size_t i = 0; i < 4; i++)
        free(paths[i]);
}

#define ROW "0,0.1,1,Gamma,1,1\n"

static const struct {
    const char *rows, *dataset, *message;
} malformed[] = {
    {ROW "600,0.1,1,Gamma,1\n", ALWAYS, "a-trace.csv:2: expected start, rate, cv, family, p1, p2"},
    {ROW "600,0.1,1,Gamma,1,1,1\n", ALWAYS, "a-trace.csv:2: expected start, rate, cv"},
    {ROW "600,nan,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: rate: "},
    {ROW "600,-1,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: rate: "},
    {ROW "600,1e7,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: rate: "},
    {ROW "600,0.1,inf,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: cv: "},
    {ROW "600,0.1,1,Pareto,1,1\n", ALWAYS,
     "a-trace.csv:2: family: \"Pareto\" is neither Gamma nor Weibull"},
    {ROW "600,0.1,1,,1,1\n", ALWAYS, "a-trace.csv:2: family: \"\" is neither"},
    {ROW "600,0.1,1,Gamma,0,1\n", ALWAYS, "a-trace.csv:2: p1 (shape): must be at least 0.01"},
    {ROW "600,0.1,1,Gamma,1e9,1\n", ALWAYS, "a-trace.csv:2: p1 (shape): "},
    {ROW "599,0.1,1,Gamma,1,1\n", ALWAYS,
     "a-trace.csv:2: starts in the window of the row before, which lasts 600 s"},
    {ROW "x,0.1,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: start: \"x\" is not a number"},
    {ROW "8640000,0.1,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:2: start: \"8640000\" is 100 days"},
    {"0,200000,1,Gamma,1,1\n", ALWAYS, "a-trace.csv:1: more than 100000000 requests"},
    {"0,0,0,,0,0\n", ALWAYS, "a-trace.csv: holds no request"},
    {ROW, "{}", "a-dataset.json: has no lengths in any window"},
    {ROW, "[]", "a-dataset.json: expected a JSON object of windows"},
    {ROW, "{\"0\": 5}", "a-dataset.json: .0: must be an object, got a number"},
    {ROW, "{\"x\": " WINDOW("{1: 1}", "{1: 1}") "}", "a-dataset.json: .x: expected a start in sec"},
    {ROW, "{\"0\": {\"input_tokens\": \"{}\"}}", "a-dataset.json: .0.output_tokens: required"},
    {ROW, "{\"0\": {\"input_tokens\": {}, \"output_tokens\": \"{}\"}}",
     "a-dataset.json: .0.input_tokens: must be a string, got an object"},
    {ROW, "{\"0\": " WINDOW("{1: 1}", "{}") "}", "a-dataset.json: .0: has lengths of inputs or"},
    {ROW, "{\"0\": " WINDOW("{}", "{}") "}", "a-dataset.json: has no lengths in any window"},
    {ROW, "{\"0\": " WINDOW("{1: 2}", "{1: 1}") "}",
     "a-dataset.json: .0.input_tokens: after 5 characters: expected a probability"},
    {ROW, "{\"5\": " WINDOW("{1: 1}", "{1: 1}") ", \"5.0\": " WINDOW("{1: 1}", "{1: 1}") "}",
     "a-dataset.json: .5.0: starts before the window above it"},
    {ROW, "{\"0\": ", "a-dataset.json:1: "},
};

Test(trace_servegen, refuses_malformed_files_with_place_and_cause)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct trace t = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect_eq(load(&t, malformed[i].rows, malformed[i].dataset, 0, &err), -1, "%s",
                     malformed[i].message);
        cr_expect_not_null(strstr(err.text, malformed[i].message), "expected \"%s\", got \"%s\"",
                           malformed[i].message, err.text);
        cr_expect(err.kind == ERR_INPUT && t.n == 77);
    }
}

Test(trace_servegen, asks_for_the_name_that_finds_the_lengths)
{
    struct trace t;
    struct err err = ERR_NONE;
    char *path = write_file("a.csv", ROW);
    cr_expect_eq(trace_load(&t, path, &(struct trace_reading){0}, &err), -1);
    cr_expect_not_null(strstr(err.text, "a.csv: name it NAME-trace.csv, with NAME-dataset.json"));
    free(path);
    path = write_file("b-trace.csv", ROW);
    err = ERR_NONE;
    cr_expect_eq(trace_load(&t, path, &(struct trace_reading){0}, &err), -1);
    cr_expect_not_null(strstr(err.text, "b-dataset.json: cannot open"));
    free(path);
}

/* A client of DeepSeek-R1: 92,449 requests in 13 windows (the sum of rate x 600); the pdfs of its
 * one window with lengths have means 130.27 and 991.70, of which a draw of so many is off by 0.30
 * and 1.80 (standard errors). */
Test(trace_servegen, a_long_draw_has_the_rate_and_mean_lengths_of_its_client)
{
    struct trace t;
    struct err err = ERR_NONE;
    double input = 0, output = 0;
    cr_assert_eq(trace_load(&t, "traces/samples/servegen_deepseek-r1_chunk-3-trace.csv",
                            &(struct trace_reading){0}, &err),
                 0, "%s", err.text);
    cr_assert_eq(t.n, 92449);
    for (size_t i = 0; i < t.n; i++) {
        input += (double)t.request[i].input_tokens;
        output += (double)t.request[i].output_tokens;
    }
    cr_expect_float_eq(input / (double)t.n, 130.27, 1.2);
    cr_expect_float_eq(output / (double)t.n, 991.70, 7.2);
    cr_expect_float_eq(ps_to_s(t.last_ps), 7800, 2, "13 windows of 600 s");
    trace_release(&t);
}
