/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank db list|export|compare FILE: the runs that studies keep.
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/report/csv_cell.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"
#include "sim/tune/ledger.h"

struct settings {
    const char *csv, *jsonl;
};

static const struct opt options[] = {
    {"csv", 0, OPT_STR, offsetof(struct settings, csv), "OUT", NULL, 0, 0, NULL,
     "write a table with one row per run (\"-\": standard output, as without either)"},
    {"jsonl", 0, OPT_STR, offsetof(struct settings, jsonl), "OUT", NULL, 0, 0, NULL,
     "write one JSON object per run and line"},
    {0},
};

static void print_entries(const struct ledger *l, FILE *out)
{
    static const char *const head[] = {"trace", "model", "cluster", "profile",
                                       "by",    "seeds", "runs",    "spent"};
    struct table t;
    char runs[32], spent[32];
    table_init(&t, "lllllrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (int i = 0; i < l->n; i++) {
        const struct ledger_entry *e = &l->entry[i];
        table_add(&t, "%s", e->trace);
        table_add(&t, "%s", e->model);
        table_add(&t, "%s", e->cluster);
        table_add(&t, "%s", e->profile);
        table_add(&t, "%s", e->version);
        table_add(&t, e->last_seed > e->first_seed ? "%lld..%lld" : "%lld",
                  (long long)e->first_seed, (long long)e->last_seed);
        table_add(&t, "%s", units_count(e->runs, runs, sizeof runs));
        table_add(&t, "%s", units_time((int64_t)e->wall_ns * PS_PER_NS, spent, sizeof spent));
    }
    table_print(&t, out);
    table_release(&t);
}

static int list(struct run_store *s, FILE *out, struct err *err)
{
    struct ledger l;
    if (ledger_read(&l, s, err) < 0)
        return -1;
    if (l.n > 0)
        print_entries(&l, out);
    else
        fputs("no runs\n", out);
    ledger_release(&l);
    return 0;
}

static int write_csv(void *out, const struct run_row *row, struct err *err)
{
    const char *const label[] = {row->version, row->model, row->cluster,
                                 row->profile, row->trace, row->policy};
    char text[METRIC_TEXT_SIZE];
    (void)err;
    fputs(row->key, out);
    for (size_t i = 0; i < sizeof label / sizeof *label; i++) {
        fputc(',', out);
        csv_cell(label[i], out);
    }
    fprintf(out, ",%lld,", (long long)row->seed);
    csv_cell(row->settings, out);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(out, ",%s", metric_text(i, row->metrics.value[i], text));
    fputc('\n', out);
    return 0;
}

static int write_json(void *out, const struct run_row *row, struct err *err)
{
    json_t *o = json_object(), *settings = json_loads(row->settings, 0, NULL);
    (void)err;
    json_object_set_new(o, "key", json_string(row->key));
    json_object_set_new(o, "wavetank", json_string(row->version));
    json_object_set_new(o, "model", json_string(row->model));
    json_object_set_new(o, "cluster", json_string(row->cluster));
    json_object_set_new(o, "profile", json_string(row->profile));
    json_object_set_new(o, "trace", json_string(row->trace));
    json_object_set_new(o, "policy", json_string(row->policy));
    json_object_set_new(o, "seed", json_integer(row->seed));
    json_object_set_new(o, "settings", settings != NULL ? settings : json_null());
    for (int i = 0; i < METRIC_COUNT; i++) {
        double x = row->metrics.value[i];
        json_object_set_new(o, metric_table[i].name,
                            metric_table[i].whole ? json_integer((json_int_t)x) : json_num(x));
    }
    json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(o);
    return 0;
}

static int export_rows(struct run_store *s, const struct settings *set, FILE *out, struct err *err)
{
    if (set->jsonl != NULL)
        return run_store_each(s, write_json, out, err);
    fputs("key,wavetank,model,cluster,profile,trace,policy,seed,settings", out);
    for (int i = 0; i < METRIC_COUNT; i++)
        fprintf(out, ",%s", metric_table[i].name);
    fputc('\n', out);
    return run_store_each(s, write_csv, out, err);
}

static void print_changes(const struct ledger_change *c, FILE *out)
{
    struct table t;
    char mean[PERCENT_SIZE], most[PERCENT_SIZE];
    table_init(&t, "lrrr");
    table_add(&t, "metric");
    table_add(&t, "changed");
    table_add(&t, "mean");
    table_add(&t, "most");
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (c->metric[i].changed == 0)
            continue;
        table_add(&t, "%s", metric_table[i].name);
        table_add(&t, "%lld", (long long)c->metric[i].changed);
        table_add(&t, "%s", percent_signed(c->metric[i].mean_frac, mean));
        table_add(&t, "%s", percent_signed(c->metric[i].most_frac, most));
    }
    fputs("\nSecond file over first, of the runs that both have:\n\n", out);
    table_print(&t, out);
    table_release(&t);
}

static int compare(struct run_store *a, struct run_store *b, FILE *out, struct err *err)
{
    struct ledger_change c;
    if (ledger_compare(&c, a, b, err) < 0)
        return -1;
    fprintf(out,
            "%lld runs in both files, %lld of them equal; %lld in the first only, %lld in the "
            "second\n",
            (long long)c.both, (long long)c.equal, (long long)c.only_a, (long long)c.only_b);
    if (c.equal < c.both)
        print_changes(&c, out);
    return 0;
}

static int run_list(void *settings, int n_args, char **args, struct err *err)
{
    struct outfile o;
    (void)settings;
    if (n_args != 1)
        return err_set(err, "db list: expected one FILE (see --help)");
    struct run_store *s = run_store_open_to_read(args[0], err);
    if (s == NULL)
        return -1;
    int rc = outfile_open(&o, "-", err);
    if (rc == 0)
        rc = list(s, o.f, err) < 0 ? -1 : outfile_commit(&o, err);
    run_store_close(s);
    return rc;
}

static int run_export(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *set = settings;
    struct outfile o;
    const char *path = set->jsonl != NULL ? set->jsonl : set->csv != NULL ? set->csv : "-";
    if (n_args != 1)
        return err_set(err, "db export: expected one FILE (see --help)");
    if (set->csv != NULL && set->jsonl != NULL)
        return err_set(err, "--csv, --jsonl: give one of them");
    struct run_store *s = run_store_open_to_read(args[0], err);
    if (s == NULL)
        return -1;
    int rc = outfile_open(&o, path, err);
    if (rc == 0) {
        rc = export_rows(s, set, o.f, err);
        rc = rc == 0 ? outfile_commit(&o, err) : rc;
        outfile_abort(&o);
    }
    run_store_close(s);
    return rc;
}

static int run_compare(void *settings, int n_args, char **args, struct err *err)
{
    struct outfile o;
    (void)settings;
    if (n_args != 2)
        return err_set(err, "db compare: expected two FILEs (see --help)");
    struct run_store *a = run_store_open_to_read(args[0], err);
    struct run_store *b = a != NULL ? run_store_open_to_read(args[1], err) : NULL;
    int rc = b != NULL ? outfile_open(&o, "-", err) : -1;
    if (rc == 0)
        rc = compare(a, b, o.f, err) < 0 ? -1 : outfile_commit(&o, err);
    run_store_close(a);
    run_store_close(b);
    return rc;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    static const struct {
        const char *name;
        cmd_run_fn *run;
        bool exports;
    } actions[] = {
        {"list", run_list, false},
        {"export", run_export, true},
        {"compare", run_compare, false},
    };
    const struct settings *set = settings;
    const char *name = n_args > 0 ? args[0] : "";
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, name) != 0)
            continue;
        if (!actions[i].exports && (set->csv != NULL || set->jsonl != NULL))
            return err_set(err, "db %s: --csv and --jsonl are of db export", name);
        return actions[i].run(settings, n_args - 1, args + 1, err);
    }
    return err_set(err, "db: expected list, export or compare, got \"%s\" (see --help)", name);
}

const struct manual db_manual = {
    .name = "db",
    .what = "list, export or compare the runs of studies",
    .synopsis = "db list FILE\n"
                "db export FILE [--csv OUT|--jsonl OUT]\n"
                "db compare FILE FILE",
    .text = "list     show which runs a file of \"wavetank tune --db FILE\" keeps\n"
            "export   write all of them as text, in an order that does not depend on how\n"
            "         they were made\n"
            "compare  show what two files have different",
    .options = options,
    .words = "list export compare",
    .examples = "wavetank db list study.db\n"
                "wavetank db export study.db --csv runs.csv",
    .see_also = "docs/tuning.md",
};

int cmd_db(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&db_manual, &settings, run, argc, argv);
}
