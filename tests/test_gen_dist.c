/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributions as presets say them, and those of the presets against the published quantiles: at
 * 100,000 draws p50 and p90 within 5%, p99 within 15%. Runs in the root of the repository.
 */
#include "workloads/dist.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/made_trace.h"

enum { DRAWS = 100000 };

static int parse(struct dist *d, const char *text, struct err *err)
{
    json_t *json = json_loads(text, 0, NULL);
    struct jobj root;
    cr_assert_not_null(json, "%s", text);
    cr_assert_eq(jobj_root(&root, "p.json", json, err), 0);
    int rc = dist_parse(d, &root, "d", 1000, err);
    json_decref(json);
    return rc;
}

static struct dist parsed(const char *text)
{
    struct dist d;
    struct err err = ERR_NONE;
    cr_assert_eq(parse(&d, text, &err), 0, "%s", err.text);
    return d;
}

Test(gen_dist, a_constant_is_itself)
{
    struct dist d = parsed("{\"d\":{\"kind\":\"constant\",\"value\":7,\"source\":\"assumed:\"}}");
    struct rng r;
    rng_init(&r, 1);
    cr_expect_eq(dist_draw(&d, &r), 7);
    cr_expect_eq(dist_count(&d, &r), 7);
    cr_expect_eq(dist_ps(&d, &r), 7000000000000);
    cr_expect_eq(dist_at(&d, 3), 7);
}

Test(gen_dist, a_table_is_linear_between_its_points)
{
    struct dist d = parsed("{\"d\":{\"kind\":\"table\",\"quantiles\":[[0,10],[0.5,20],[1,100]],"
                           "\"source\":\"s\"}}");
    cr_expect_float_eq(dist_at(&d, 0), 20, 1e-9);
    cr_expect_float_eq(dist_at(&d, -0.6744897501960817), 15, 1e-9); /* p = 1/4 */
    cr_expect_float_eq(dist_at(&d, 0.6744897501960817), 60, 1e-9);  /* p = 3/4 */
    cr_expect_float_eq(dist_at(&d, -40), 10, 1e-9);
    cr_expect_float_eq(dist_at(&d, 40), 100, 1e-9);
}

Test(gen_dist, weights_are_of_small_counts)
{
    struct dist d = parsed("{\"d\":{\"kind\":\"weights\",\"weights\":[3,1],\"source\":\"s\"}}");
    struct rng r;
    int ones = 0;
    rng_init(&r, 5);
    for (int i = 0; i < DRAWS; i++) {
        int64_t count = dist_count(&d, &r);
        cr_assert(count == 1 || count == 2);
        ones += count == 1;
    }
    cr_expect_float_eq((double)ones / DRAWS, 0.75, 0.01);
    cr_expect_eq(dist_at(&d, 0.6), 1); /* p = 0.726 */
    cr_expect_eq(dist_at(&d, 0.7), 2); /* p = 0.758 */
}

Test(gen_dist, a_log_normal_has_its_median_and_is_cut)
{
    struct dist d = parsed("{\"d\":{\"kind\":\"lognormal\",\"median\":100,\"sigma\":1,\"min\":50,"
                           "\"max\":500,\"source\":\"s\"}}");
    cr_expect_float_eq(dist_at(&d, 0), 100, 1e-9);
    cr_expect_float_eq(dist_at(&d, 1), 271.8281828, 1e-6);
    cr_expect_eq(dist_at(&d, -2), 50);
    cr_expect_eq(dist_at(&d, 2), 500);
}

Test(gen_dist, a_gamma_has_its_mean_and_variation)
{
    struct dist d = parsed("{\"d\":{\"kind\":\"gamma\",\"mean\":10,\"cv\":0.5,\"source\":\"s\"}}");
    struct rng r;
    double sum = 0, squares = 0;
    rng_init(&r, 3);
    for (int i = 0; i < DRAWS; i++) {
        double x = dist_draw(&d, &r);
        sum += x;
        squares += x * x;
    }
    double mean = sum / DRAWS;
    cr_expect_float_eq(mean, 10, 0.1);
    cr_expect_float_eq(sqrt(squares / DRAWS - mean * mean) / mean, 0.5, 0.01);
}

Test(gen_dist, what_makes_no_sense_is_refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"kind\":\"normal\"}", "kind"},
        {"{\"kind\":\"constant\",\"value\":-1,\"source\":\"s\"}", ".d.value: "},
        {"{\"kind\":\"constant\",\"value\":1001,\"source\":\"s\"}", ".d.value: "},
        {"{\"kind\":\"constant\",\"value\":1}", "source"},
        {"{\"kind\":\"constant\",\"value\":1,\"source\":\"\"}", "must say where"},
        {"{\"kind\":\"constant\",\"value\":1,\"source\":\"s\",\"sigma\":1}", "sigma"},
        {"{\"kind\":\"constant\",\"value\":1,\"min\":5,\"max\":4,\"source\":\"s\"}", ".d.max: "},
        {"{\"kind\":\"gamma\",\"mean\":1,\"cv\":0,\"source\":\"s\"}", ".d.cv: "},
        {"{\"kind\":\"lognormal\",\"median\":1,\"sigma\":-1,\"source\":\"s\"}", ".d.sigma: "},
        {"{\"kind\":\"weights\",\"weights\":[],\"source\":\"s\"}", "must have 1 to"},
        {"{\"kind\":\"weights\",\"weights\":[1,0],\"source\":\"s\"}", "above 0"},
        {"{\"kind\":\"weights\",\"weights\":[1,\"2\"],\"source\":\"s\"}", "above 0"},
        {"{\"kind\":\"table\",\"quantiles\":[[0,1]],\"source\":\"s\"}", "must have 2 to"},
        {"{\"kind\":\"table\",\"quantiles\":[[0,1],[1]],\"source\":\"s\"}", "point 1 is not"},
        {"{\"kind\":\"table\",\"quantiles\":[[0.1,1],[1,2]],\"source\":\"s\"}", "point 0: "},
        {"{\"kind\":\"table\",\"quantiles\":[[0,-1],[1,2]],\"source\":\"s\"}", "point 0: "},
        {"{\"kind\":\"table\",\"quantiles\":[[0,3],[1,2]],\"source\":\"s\"}", "point 1: "},
        {"{\"kind\":\"table\",\"quantiles\":[[0,1],[0.9,2]],\"source\":\"s\"}", "probability 1"},
        {"{\"kind\":\"table\",\"quantiles\":[[0,1],[1,2000]],\"source\":\"s\"}", "at most 1000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dist d;
        struct err err = ERR_NONE;
        char *text = xasprintf("{\"d\":%s}", cases[i].text);
        cr_expect_eq(parse(&d, text, &err), -1, "%s", text);
        cr_expect_not_null(strstr(err.text, cases[i].message), "%s: %s", text, err.text);
        free(text);
    }
}

/* Callers' units; 0: not published. */
static const struct {
    const char *preset, *key;
    double p50, p90, p99;
} published[] = {
    /* Claude Code sessions, kv-cache-tester */
    {"claude-code", "calls", 44, 149, 331},
    {"claude-code", "first_input_tokens", 24259, 260201, 716534},
    {"claude-code", "growth_tokens", 663, 3659, 16640},
    {"claude-code", "shrink_tokens", 62104, 131288, 223015},
    {"claude-code", "output_tokens", 217, 894, 3678},
    {"claude-code", "calls_per_turn", 1, 15, 66},
    {"claude-code", "tool_s", 9, 68, 607},
    {"claude-code", "user_s", 126, 1682, 9261},
    /* DeepSeek-R1, ServeGen */
    {"deepseek-r1", "output_tokens", 792, 3432, 12607},
    {"deepseek-r1", "input_tokens", 208, 0, 0},
    /* p99 / p50 = exp(2.326 sigma): 15.9 at 1.19, 10 at 0.99, the latter above the cap */
    {"dapo", "output_tokens", 1500, 6890, 20480},
    {"verl-grpo", "output_tokens", 300, 1024, 1024},
    /* L-Eval; vicuna-13b of LMSYS-Chat-1M */
    {"long-documents", "questions", 3, 10.7, 19},
    {"mixed-chat", "questions", 3, 10.7, 19},
};

static double draw_quantile(const double *sorted, double p)
{
    return sorted[(size_t)(p * (DRAWS - 1))];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void expect_near(size_t i, const double *sorted, double p, double target, double tolerance)
{
    double x = draw_quantile(sorted, p);
    if (target > 0)
        cr_expect_leq(error_frac(x, target), tolerance, "%s %s p%g: %g, published %g",
                      published[i].preset, published[i].key, 100 * p, x, target);
}

Test(gen_dist, presets_draw_the_published_quantiles)
{
    double *value = xcalloc(DRAWS, sizeof *value);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        struct catalog_doc doc;
        struct dist d;
        struct err err = ERR_NONE;
        struct rng r;
        char name[CATALOG_NAME_SIZE];
        char *path = xasprintf("workloads/presets/%s.json", published[i].preset);
        cr_assert_eq(catalog_open(&doc, "presets", path, name, &err), 0, "%s", err.text);
        cr_assert_str_eq(name, published[i].preset);
        cr_assert_eq(dist_parse(&d, &doc.root, published[i].key, 1e9, &err), 0, "%s", err.text);
        rng_init(&r, i);
        for (int k = 0; k < DRAWS; k++)
            value[k] = dist_draw(&d, &r);
        qsort(value, DRAWS, sizeof *value, by_value);
        expect_near(i, value, 0.5, published[i].p50, 0.05);
        expect_near(i, value, 0.9, published[i].p90, 0.05);
        expect_near(i, value, 0.99, published[i].p99, 0.15);
        catalog_close(&doc);
        free(path);
    }
    free(value);
}
