/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/opt: the same table read from argv, JSON and lists, its help and its dump.
 */
#include "sim/base/opt.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "sim/base/units.h"

/* Static in each test process: strings taken from lists live as long as the settings. */
static struct settings {
    bool quiet;
    int64_t seed, dwell_ps, budget_tokens;
    double rate;
    const char *trace;
    int mode;
    struct opt_list policies;
} s;

static const struct opt table[] = {
    {"dwell", 0, OPT_TIME, offsetof(struct settings, dwell_ps), "TIME", "50ms", 0.001, 10, NULL,
     "least time between switches"},
    {"mode", 'm', OPT_ENUM, offsetof(struct settings, mode), "MODE", "ondemand", 0, 0,
     "reserve|ondemand", "how blocks are taken"},
    {"policy", 'p', OPT_LIST, offsetof(struct settings, policies), "NAME", NULL, 0, 0, NULL,
     "policy to score"},
    {"quiet", 'q', OPT_FLAG, offsetof(struct settings, quiet), NULL, NULL, 0, 0, NULL,
     "print no table"},
    {"rate", 'r', OPT_F64, offsetof(struct settings, rate), "X", "1", 0.01, 1000, NULL,
     "factor on the arrival rate of the trace; a value of two halves every gap between requests"},
    {"seed", 0, OPT_I64, offsetof(struct settings, seed), "N", "1", 0, 1e19, NULL, "random seed"},
    {"token-budget", 0, OPT_TOKENS, offsetof(struct settings, budget_tokens), "N", "8K", 1, 1048576,
     NULL, "tokens in one iteration"},
    {"trace", 't', OPT_STR, offsetof(struct settings, trace), "FILE", NULL, 0, 0, NULL,
     "request trace"},
    {0},
};

static struct err err;
static int n_args;
static bool help;

static void defaults(void)
{
    opt_defaults(table, &s);
}

static void release(void)
{
    opt_release(table, &s);
}

/* Parse up to six arguments; the array is static since the settings borrow from it. */
static int parse(const char *a, const char *b, const char *c, const char *d, const char *e,
                 const char *f)
{
    static const char *argv[8];
    const char *given[] = {"wavetank", a, b, c, d, e, f, NULL};
    int argc = 0;
    memcpy(argv, given, sizeof given);
    while (argv[argc] != NULL)
        argc++;
    return opt_parse_argv(table, &s, argc, (char **)argv, &n_args, &help, &err);
}

#define PARSE(...)                       PARSE_SIX(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL)
#define PARSE_SIX(a, b, c, d, e, f, ...) parse(a, b, c, d, e, f)

TestSuite(opt, .init = defaults, .fini = release);

Test(opt, defaults_fill_every_field)
{
    cr_assert_eq(s.dwell_ps, 50 * PS_PER_MS);
    cr_assert_eq(s.mode, 1);
    cr_assert_eq(s.budget_tokens, 8192);
    cr_assert_eq(s.rate, 1.0);
    cr_assert_eq(s.seed, 1);
    cr_assert_null(s.trace);
    cr_assert_not(s.quiet);
    cr_assert_eq(s.policies.n, 0);
}

Test(opt, argv_forms_all_work)
{
    cr_assert_eq(PARSE("--rate", "2.5", "--token-budget=64K", "-q", "-m", "reserve"), 0, "%s",
                 err.text);
    cr_assert(s.rate == 2.5 && s.budget_tokens == 65536 && s.quiet && s.mode == 0);
    cr_assert_eq(PARSE("-r3", "-t", "-", "--dwell=1ms", "--seed", "9223372036854775807"), 0, "%s",
                 err.text);
    cr_assert(s.rate == 3 && s.dwell_ps == PS_PER_MS && s.seed == INT64_MAX);
    cr_assert_str_eq(s.trace, "-");
    cr_assert_eq(PARSE("--quiet=0"), 0);
    cr_assert_not(s.quiet);
}

Test(opt, positional_arguments_move_to_the_front)
{
    char *argv[] = {"wavetank", "a", "-q", "-", "--rate", "2", "--", "-r", NULL};
    cr_assert_eq(opt_parse_argv(table, &s, 8, argv, &n_args, &help, &err), 0, "%s", err.text);
    cr_assert_eq(n_args, 3);
    cr_assert_str_eq(argv[1], "a");
    cr_assert_str_eq(argv[2], "-");
    cr_assert_str_eq(argv[3], "-r");
}

Test(opt, list_option_repeats)
{
    cr_assert_eq(PARSE("-p", "never", "--policy", "splash:margin=0.05", "--policy=block"), 0);
    cr_assert_eq(s.policies.n, 3);
    cr_assert_str_eq(s.policies.item[0], "never");
    cr_assert_str_eq(s.policies.item[1], "splash:margin=0.05");
    cr_assert_str_eq(s.policies.item[2], "block");
}

Test(opt, help_ends_the_parse)
{
    cr_assert_eq(PARSE("x", "--help", "--nonsense"), 0);
    cr_assert(help);
    cr_assert_eq(n_args, 1);
    help = false;
    cr_assert_eq(PARSE("-h"), 0);
    cr_assert(help);
}

static const struct {
    const char *arg, *value, *message;
} bad[] = {
    {"--raet", "1", "unknown option \"--raet\" (did you mean \"--rate\"?)"},
    {"--raet=1", NULL, "unknown option \"--raet\" (did you mean \"--rate\"?)"},
    {"--token-bugdet", "1", "unknown option \"--token-bugdet\" (did you mean \"--token-budget\"?)"},
    {"--zzzzzzzzzz", NULL, "unknown option \"--zzzzzzzzzz\""},
    {"-z", NULL, "unknown option \"-z\" (see --help)"},
    {"--rate", NULL, "--rate: needs a value (X)"},
    {"--rate", "x", "--rate: must be a number such as 0.5, in [0.01, 1000], got \"x\""},
    {"--rate", "0", "--rate: must be in [0.01, 1000], got \"0\""},
    {"-r", "nan", "--rate: must be a number such as 0.5, in [0.01, 1000], got \"nan\""},
    {"--seed", "-1", "--seed: must be at least 0, got \"-1\""},
    {"--dwell", "11s", "--dwell: must be in [0.001, 10] s, got \"11s\""},
    {"--dwell=", NULL, "--dwell: must be a time such as 50ms, 2s or 1h, got \"\""},
    {"--token-budget", "2M", "--token-budget: must be in [1, 1048576], got \"2M\""},
    {"--mode", "reserv", "--mode: must be one of reserve|ondemand, got \"reserv\""},
    {"--mode", "", "--mode: must be one of reserve|ondemand, got \"\""},
    {"--quiet=maybe", NULL, "--quiet: must be 0 or 1, got \"maybe\""},
};

ParameterizedTestParameters(opt, bad_arguments_are_explained)
{
    static size_t row[sizeof bad / sizeof *bad];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, opt, bad_arguments_are_explained)
{
    struct settings before;
    opt_defaults(table, &s);
    before = s;
    cr_assert_eq(PARSE(bad[*i].arg, bad[*i].value), -1);
    cr_assert_str_eq(err.text, bad[*i].message);
    cr_assert(s.rate == before.rate && s.seed == before.seed && s.dwell_ps == before.dwell_ps &&
              s.budget_tokens == before.budget_tokens && s.mode == before.mode);
}

static int parse_json(const char *text)
{
    static json_t *obj; /* kept: settings borrow its strings */
    json_decref(obj);
    obj = json_loads(text, 0, NULL);
    cr_assert_not_null(obj, "%s", text);
    return opt_parse_json(table, &s, "c.json", obj, &err);
}

Test(opt, json_accepts_numbers_and_command_line_texts)
{
    cr_assert_eq(parse_json("{\"token_budget\": 16384, \"rate\": 0.1, \"dwell\": \"20ms\","
                            " \"quiet\": true, \"policy\": [\"a\", \"b\"], \"trace\": null}"),
                 0, "%s", err.text);
    cr_assert(s.budget_tokens == 16384 && s.rate == 0.1 && s.dwell_ps == 20 * PS_PER_MS && s.quiet);
    cr_assert_eq(s.policies.n, 2);
    cr_assert_null(s.trace);
    cr_assert_eq(parse_json("{\"token-budget\": \"1M\", \"dwell_s\": 0.25, \"trace\": \"t.csv\"}"),
                 0, "%s", err.text);
    cr_assert(s.budget_tokens == 1048576 && s.dwell_ps == 250 * PS_PER_MS);
    cr_assert_str_eq(s.trace, "t.csv");
}

static const struct {
    const char *text, *message;
} bad_json[] = {
    {"{\"raet\": 1}", "c.json: .raet: unknown key (did you mean \"rate\"?)"},
    {"{\"token_bugdet\": 1}",
     "c.json: .token_bugdet: unknown key (did you mean \"token_budget\"?)"},
    {"{\"rate_s\": 1}", "c.json: .rate_s: unknown key (did you mean \"rate\"?)"},
    {"{\"rate\": 2000}", "c.json: .rate: must be in [0.01, 1000], got \"2000\""},
    {"{\"rate\": [1]}", "c.json: .rate: must be a single value, got an array or object"},
    {"{\"trace\": 5}", "c.json: .trace: must be a string, got 5"},
    {"{\"policy\": [\"a\", {}]}",
     "c.json: .policy: must be a single value, got an array or object"},
    {"{\"seed\": 1.5}",
     "c.json: .seed: must be a whole number such as 12, at least 0, got \"1.5\""},
    {"[]", "c.json: must be a JSON object of settings"},
};

ParameterizedTestParameters(opt, bad_json_is_explained)
{
    static size_t row[sizeof bad_json / sizeof *bad_json];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, opt, bad_json_is_explained)
{
    opt_defaults(table, &s);
    cr_assert_eq(parse_json(bad_json[*i].text), -1);
    cr_assert_str_eq(err.text, bad_json[*i].message);
    opt_release(table, &s);
}

Test(opt, list_sets_several_keys)
{
    cr_assert_eq(opt_parse_list(table, &s, "policy x", "rate=2,token_budget=4K,trace=a=b", &err), 0,
                 "%s", err.text);
    cr_assert(s.rate == 2 && s.budget_tokens == 4096);
    cr_assert_str_eq(s.trace, "a=b");
    cr_assert_eq(opt_parse_list(table, &s, "policy x", "", &err), 0);
    cr_assert_eq(opt_parse_list(table, &s, "policy x", "quiet=1,", &err), 0);
    cr_assert(s.quiet);
}

static const struct {
    const char *text, *message;
} bad_list[] = {
    {"raet=1", "policy x: unknown key \"raet\" (did you mean \"rate\"?)"},
    {"quiet=1,rate=0", "policy x: rate: must be in [0.01, 1000], got \"0\""},
    {"rate", "policy x: expected key=value, got \"rate\""},
    {"quiet=1,,rate=1", "policy x: expected key=value, got \"\""},
    {"=1", "policy x: unknown key \"\""},
};

ParameterizedTestParameters(opt, bad_list_is_explained)
{
    static size_t row[sizeof bad_list / sizeof *bad_list];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, opt, bad_list_is_explained)
{
    opt_defaults(table, &s);
    cr_assert_eq(opt_parse_list(table, &s, "policy x", bad_list[*i].text, &err), -1);
    cr_assert_str_eq(err.text, bad_list[*i].message);
}

Test(opt, set_changes_one_option)
{
    cr_assert_eq(opt_set(table, &s, "token_budget", "2K", &err), 0);
    cr_assert_eq(s.budget_tokens, 2048);
    cr_assert_eq(opt_set(table, &s, "sed", "2", &err), -1);
    cr_assert_str_eq(err.text, "unknown option \"--sed\" (did you mean \"--seed\"?)");
}

Test(opt, dump_reads_back)
{
    cr_assert_eq(PARSE("--rate=0.1", "--dwell=2ms", "-q", "-mreserve", "-pa", "-tx.csv"), 0);
    json_t *dump = opt_dump(table, &s);
    char *text = json_dumps(dump, JSON_COMPACT | JSON_REAL_PRECISION(9));
    cr_assert_str_eq(text, "{\"dwell_s\":0.002,\"mode\":\"reserve\",\"policy\":[\"a\"],"
                           "\"quiet\":true,\"rate\":0.1,\"seed\":1,\"token_budget\":8192,"
                           "\"trace\":\"x.csv\"}");
    free(text);
    opt_release(table, &s);
    opt_defaults(table, &s);
    cr_assert_eq(opt_parse_json(table, &s, "dump", dump, &err), 0, "%s", err.text);
    cr_assert(s.rate == 0.1 && s.dwell_ps == 2 * PS_PER_MS && s.quiet && s.mode == 0);
    cr_assert_str_eq(s.trace, "x.csv");
    cr_assert_str_eq(s.policies.item[0], "a");
    json_decref(dump);
}

Test(opt, help_has_every_option_within_80_columns)
{
    char *text, *line, *rest;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    opt_help(table, f);
    fclose(f);
    for (const struct opt *o = table; o->name != NULL; o++)
        cr_assert_not_null(strstr(text, o->name));
    cr_assert_not_null(strstr(text, "  -m, --mode MODE             how blocks are taken "
                                    "[reserve|ondemand; default\n"
                                    "                              ondemand]\n"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "      --dwell TIME            least time between switches "
                                    "[in [0.001, 10] s;\n"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "  -h, --help "));
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        cr_assert_lt(strlen(line), 80, "%s", line);
    free(text);
}
