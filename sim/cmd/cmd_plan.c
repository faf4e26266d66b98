/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank plan show|check PLAN: read a plan strictly, and show its steps.
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/opt.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/plan/plan.h"
#include "sim/report/table.h"

static const struct opt options[] = {{0}};

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

static void print_header(const struct plan_header *h, FILE *out)
{
    fprintf(out,
            "model    %s\n"
            "cluster  %s\n"
            "ranks    %d\n"
            "layers   %d\n"
            "seed     %llu\n\n",
            h->model, h->cluster, h->ranks, h->layers, (unsigned long long)h->seed);
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

static const struct action {
    const char *name;
    void (*run)(const struct plan *p, FILE *out);
} actions[] = {{"show", show}, {"check", check}};

static const struct action *find_action(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    err_set(err, "plan: \"%s\" is no action; try show or check", name);
    return NULL;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    (void)settings;
    struct plan p;
    struct outfile o;
    if (n_args != 2)
        return err_set(err, "plan: expected show or check and one PLAN (see --help)");
    const struct action *action = find_action(args[0], err);
    if (action == NULL || plan_load(&p, args[1], err) < 0)
        return -1;
    int rc = outfile_open(&o, "-", err);
    if (rc == 0) {
        action->run(&p, o.f);
        rc = outfile_commit(&o, err);
    }
    plan_release(&p);
    return rc;
}

static void print_help(void)
{
    puts("usage: wavetank plan show|check PLAN\n"
         "\n"
         "show   print the header and one line per step\n"
         "check  read it strictly and count steps and switches\n"
         "\n"
         "\"wavetank sim --plan FILE\" writes plans.\n");
    opt_help(options, stdout);
}

int cmd_plan(int argc, char **argv)
{
    return cmd_main(options, NULL, print_help, run, argc, argv);
}
