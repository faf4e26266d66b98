/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank trace info|check|convert TRACE: what a trace holds, whether it reads, and the same in
 * another form.
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/cmd/cmd.h"
#include "traces/convert.h"
#include "traces/trace.h"

struct settings {
    const char *json, *out;
    struct trace_reading reading;
    struct trace_select select;
};

static const struct opt options[] = {
    {"json", 0, OPT_STR, offsetof(struct settings, json), "FILE", NULL, 0, 0, NULL,
     "info: write JSON to FILE (\"-\": standard output, without the table)"},
    {"out", 'o', OPT_STR, offsetof(struct settings, out), "FILE", NULL, 0, 0, NULL,
     "convert: write FILE, which ends in .wtt, .jsonl or .csv"},
    {"seed", 0, OPT_I64, offsetof(struct settings, reading.seed), "N", "0", 0, 9e18, NULL,
     "seed of all that is drawn: --sample, --spread, --arrivals"},
    TRACE_READING_OPTS(offsetof(struct settings, reading)),
    TRACE_SELECT_OPTS(offsetof(struct settings, select)),
    {0},
};

static int write_json(const struct trace *t, const char *path, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, path, err) < 0)
        return -1;
    json_t *info = trace_info_json(t);
    json_dumpf(info, o.f, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', o.f);
    json_decref(info);
    return outfile_commit(&o, err);
}

static int run_info(const struct trace *t, const struct settings *s, struct err *err)
{
    struct outfile o;
    if (s->json != NULL && write_json(t, s->json, err) < 0)
        return -1;
    if (s->json != NULL && strcmp(s->json, "-") == 0)
        return 0;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    trace_print_info(t, o.f);
    return outfile_commit(&o, err);
}

static int run_check(const struct trace *t, const struct settings *s, struct err *err)
{
    struct outfile o;
    (void)s;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    trace_print_check(t, o.f);
    fputs("ok\n", o.f);
    return outfile_commit(&o, err);
}

static int run_convert(const struct trace *t, const struct settings *s, struct err *err)
{
    return trace_convert(t, trace_form_of(s->out, err), s->out, stderr, err);
}

static const struct action {
    const char *name;
    bool warns; /* on stderr; check reports the same as findings */
    int (*run)(const struct trace *t, const struct settings *s, struct err *err);
} actions[] = {
    {"info", true, run_info},
    {"check", false, run_check},
    {"convert", true, run_convert},
};

static const struct action *find_action(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    err_set(err, "trace: \"%s\" is no action; try info, check or convert", name);
    return NULL;
}

/* Options that belong to one action, before anything is read. */
static int check_options(const struct action *a, const struct settings *s, struct err *err)
{
    if (s->json != NULL && a->run != run_info)
        return err_set(err, "--json: belongs to \"trace info\", not to \"trace %s\"", a->name);
    if (s->out != NULL && a->run != run_convert)
        return err_set(err, "--out: belongs to \"trace convert\", not to \"trace %s\"", a->name);
    if (s->out == NULL && a->run == run_convert)
        return err_set(err, "trace convert: say where to: -o FILE, ending in .wtt, .jsonl or .csv");
    return s->out == NULL || trace_form_of(s->out, err) != NULL ? 0 : -1;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *s = settings;
    struct trace t = {0};
    int rc = -1;
    if (n_args != 2)
        return err_set(err, "trace: expected info, check or convert and one TRACE (see --help)");
    const struct action *action = find_action(args[0], err);
    if (action == NULL || check_options(action, s, err) < 0 ||
        trace_load(&t, args[1], &s->reading, err) < 0)
        return -1;
    if (action->warns)
        trace_warn(&t, stderr);
    if (trace_select(&t, &s->select, (uint64_t)s->reading.seed, err) == 0)
        rc = action->run(&t, s, err);
    trace_release(&t);
    return rc;
}

const struct manual trace_manual = {
    .name = "trace",
    .what = "show what a trace holds, or check it, or write it anew",
    .synopsis = "trace info|check TRACE [options]\n"
                "trace convert TRACE -o FILE [options]",
    .text = "info     show what a trace holds: span, rate, token lengths, prefix sharing\n"
            "check    read it strictly and list what may surprise in a replay\n"
            "convert  write it anew, after selections: .wtt (binary, loads many times\n"
            "         faster), .jsonl (Mooncake's rows) or .csv (plain)\n"
            "\n"
            "TRACE is a file, a .gz or \"-\"; its format is told from its first line.",
    .options = options,
    .words = "info check convert",
    .examples = "wavetank trace info traces/samples/azure_2023_code.csv\n"
                "wavetank trace convert traces/samples/azure_2023_code.csv -o code.wtt",
    .see_also = "docs/formats.md",
};

int cmd_trace(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&trace_manual, &settings, run, argc, argv);
}
