/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank plan: read a plan strictly and show its steps, or make one (plan_make.h).
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/opt.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/plan_make.h"
#include "sim/plan/plan.h"
#include "sim/report/table.h"

static const struct opt no_options[] = {{0}};

static const struct manual *const actions_with_manual[] = {
    &plan_grid_manual, &plan_compare_manual, &plan_switches_manual, &plan_predict_manual, NULL};

const struct manual plan_manual = {
    .name = "plan",
    .what = "show or check a plan, or make one that puts the simulator on trial",
    .synopsis = "plan show|check PLAN\n"
                "plan grid|compare|switches|predict ... -o PLAN",
    .text = "show      print the header and one line per step\n"
            "check     read it strictly and count steps and switches\n"
            "\n"
            "\"wavetank sim --plan FILE\" writes the steps of a run. These make plans that put\n"
            "the simulator on trial, to be measured by wavetank-replay:\n"
            "\n"
            "grid      for calibration: a grid of shapes under every layout\n"
            "compare   steps of a plan under every layout in turn\n"
            "switches  every switch, target-ready, blocking and overlapped\n"
            "predict   a plan, measured or not, with today's predictions\n"
            "\n"
            "\"wavetank plan grid --help\" lists an action's options.",
    .options = no_options,
    .actions = actions_with_manual,
    .words = "show check grid compare switches predict",
    .examples = "wavetank plan show run.jsonl\n"
                "wavetank plan grid --model deepseek-r1-slice --cluster h200x2 -o grid.jsonl",
    .see_also = "docs/plans.md, docs/replay.md",
};

static void add_step(struct table *t, const struct plan_step *s)
{
    char count[32], number[32];
    int64_t rows = 0, prefill_rows = 0, ctx_tokens = 0;
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *row = &s->row[i];
        rows += row->q;
        prefill_rows += row->q > 1 ? row->q : 0;
        ctx_tokens += row->ctx_tokens;
    }
    table_add(t, "%lld", (long long)s->step);
    table_add(t, "%.3f", (double)s->at_ns / 1e6);
    table_add(t, "%s", s->layout);
    table_add(t, "%d", s->n_rows);
    table_add(t, "%s", units_count(rows, count, sizeof count));
    table_add(t, "%s", units_count(prefill_rows, count, sizeof count));
    table_add(t, "%s",
              units_count(s->n_rows > 0 ? ctx_tokens / s->n_rows : 0, count, sizeof count));
    table_add(t, "%s", table_number((double)s->pred.step_ns / 1e6, number, sizeof number));
    table_add(t, "%s", s->from);
}

static void print_origin(const struct plan_origin *o, FILE *out)
{
    const struct {
        const char *what, *text;
    } lines[] = {
        {"device", o->device},
        {"date", o->date},
        {"transport", o->transport},
        {"command", o->command},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].text[0] != '\0')
            fprintf(out, "%-9s%s\n", lines[i].what, lines[i].text);
    if (o->repeats > 0)
        fprintf(out, "repeats  %d\n", o->repeats);
}

static void print_header(const struct plan_header *h, FILE *out)
{
    fprintf(out,
            "model    %s\n"
            "cluster  %s\n"
            "ranks    %d\n"
            "layers   %d\n"
            "seed     %llu\n",
            h->model, h->cluster, h->ranks, h->layers, (unsigned long long)h->seed);
    print_origin(&h->origin, out);
    putc('\n', out);
}

static void show(const struct plan *p, FILE *out)
{
    static const char *const head[] = {
        "",     "at", "",       "",         "",     "prefill", "mean",    "step", "switch",
        "step", "ms", "layout", "requests", "rows", "rows",    "context", "ms",   "from",
    };
    struct table t;
    table_init(&t, "rrlrrrrrl");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (int i = 0; i < p->n; i++)
        add_step(&t, &p->step[i]);
    print_header(&p->header, out);
    table_print(&t, out);
    table_release(&t);
}

static void check(const struct plan *p, FILE *out)
{
    int switches = 0;
    for (int i = 0; i < p->n; i++)
        switches += p->step[i].from[0] != '\0';
    fprintf(out, "ok: %d steps, %d switches\n", p->n, switches);
}

static int view(void (*print)(const struct plan *, FILE *), int n_args, char **args,
                struct err *err)
{
    struct plan p;
    struct outfile o;
    if (n_args != 1)
        return err_set(err, "plan: expected one PLAN (see --help)");
    if (plan_load(&p, args[0], err) < 0)
        return -1;
    int rc = outfile_open(&o, "-", err);
    if (rc == 0) {
        print(&p, o.f);
        rc = outfile_commit(&o, err);
    }
    plan_release(&p);
    return rc;
}

static int run_show(void *settings, int n_args, char **args, struct err *err)
{
    (void)settings;
    return view(show, n_args, args, err);
}

static int run_check(void *settings, int n_args, char **args, struct err *err)
{
    (void)settings;
    return view(check, n_args, args, err);
}

static int plan_show(int argc, char **argv)
{
    return cmd_main(&plan_manual, NULL, run_show, argc, argv);
}

static int plan_check(int argc, char **argv)
{
    return cmd_main(&plan_manual, NULL, run_check, argc, argv);
}

static const struct action {
    const char *name;
    int (*run)(int argc, char **argv);
} actions[] = {
    {"show", plan_show},       {"check", plan_check},       {"grid", plan_grid},
    {"compare", plan_compare}, {"switches", plan_switches}, {"predict", plan_predict},
};

enum { N_ACTIONS = sizeof actions / sizeof *actions };

static int run_none(void *settings, int n_args, char **args, struct err *err)
{
    const char *names[N_ACTIONS];
    (void)settings;
    if (n_args == 0)
        return err_set(err, "plan: expected an action, such as check PLAN (see --help)");
    for (int i = 0; i < N_ACTIONS; i++)
        names[i] = actions[i].name;
    const char *near = err_nearest(args[0], names, N_ACTIONS);
    return err_set(err, "plan: \"%s\" is no action%s%s%s; see \"wavetank help plan\"", args[0],
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

int cmd_plan(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < N_ACTIONS; i++)
        if (strcmp(actions[i].name, argv[1]) == 0)
            return actions[i].run(argc - 1, argv + 1);
    return cmd_main(&plan_manual, NULL, run_none, argc, argv);
}
