/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank list models|clusters|profiles|presets|policies|formats: the names that options take, and
 * the trace formats.
 */
#include <string.h>

#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/profile.h"
#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/policy/policy.h"
#include "sim/report/table.h"
#include "traces/reader.h"

static const struct opt options[] = {{0}};

static int add_model(struct table *t, const char *name, struct err *err)
{
    struct model m;
    char kv[32], context[32];
    if (model_load(&m, name, err) < 0)
        return -1;
    bool limited = m.max_context_tokens < INT64_MAX;
    table_add(t, "%s", name);
    table_add(t, "%d", m.layers);
    table_add(t, "%d", m.hidden);
    table_add(t, "%s%s%s", m.attention == ATTN_MLA ? "mla" : "gqa",
              m.indexer.heads > 0 ? ", sparse" : "", m.linear.layers > 0 ? ", linear" : "");
    table_add(t, "%s", units_count((int64_t)model_kv_bytes_per_token(&m), kv, sizeof kv));
    table_add(t, "%s", limited ? units_count(m.max_context_tokens, context, sizeof context) : "-");
    return 0;
}

static int add_cluster(struct table *t, const char *name, struct err *err)
{
    struct cluster c;
    char memory[32];
    if (cluster_load(&c, name, err) < 0)
        return -1;
    table_add(t, "%s", name);
    table_add(t, "%d", c.ranks);
    table_add(t, "%s", c.device.name);
    table_add(t, "%s", units_bytes(c.device.memory_bytes, memory, sizeof memory));
    table_add(t, "%.0f", c.device.hbm_gb_per_s);
    table_add(t, "%.0f", c.device.link_gb_per_s);
    table_add(t, "%s", c.profile);
    return 0;
}

static int add_profile(struct table *t, const char *name, struct err *err)
{
    struct profile p;
    if (profile_load(&p, name, err) < 0)
        return -1;
    table_add(t, "%s", name);
    table_add(t, "%s%s", p.kind,
              strcmp(p.kind, "analytic") == 0 ? ": efficiencies assumed, not measured" : "");
    profile_release(&p);
    return 0;
}

static int add_preset(struct table *t, const char *name, struct err *err)
{
    struct catalog_doc doc;
    char full_name[CATALOG_NAME_SIZE];
    const char *workload;
    json_t *source;
    if (catalog_open(&doc, "presets", name, full_name, err) < 0)
        return -1;
    int rc = jobj_str(&doc.root, "workload", true, &workload, err);
    if (rc == 0 && jobj_array(&doc.root, "source", true, &source, err) == 0) {
        table_add(t, "%s", name);
        table_add(t, "%s", workload);
        table_add(t, "%s", json_string_value(json_array_get(source, 0)));
    }
    catalog_close(&doc);
    return rc;
}

static const struct data_kind {
    const char *name, *align;
    const char *head[8]; /* one per column */
    int (*add)(struct table *t, const char *name, struct err *err);
} data_kinds[] = {
    {"models",
     "lrrlrr",
     {"model", "layers", "hidden", "attention", "KV B/token", "context"},
     add_model},
    {"clusters",
     "lrlrrrl",
     {"cluster", "ranks", "device", "memory", "HBM GB/s", "link GB/s", "profile"},
     add_cluster},
    {"profiles", "ll", {"profile", "kind"}, add_profile},
    {"presets", "llw", {"preset", "workload", "source"}, add_preset},
};

static int list_data(const struct data_kind *kind, FILE *out, struct err *err)
{
    int n, rc = 0;
    char **names = catalog_names(kind->name, &n);
    struct table t;
    table_init(&t, kind->align);
    for (int i = 0; i < t.columns; i++)
        table_add(&t, "%s", kind->head[i]);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = kind->add(&t, names[i], err);
    if (n == 0)
        rc = err_set(err,
                     "list: no data files of %s found; set WAVETANK_DATA to the folder that "
                     "holds hw/models",
                     kind->name);
    if (rc == 0)
        table_print(&t, out);
    table_release(&t);
    catalog_free(names, n);
    return rc;
}

/* Words behind a margin of six blanks. */
static void print_help_text(const char *help, FILE *out)
{
    struct table t;
    table_init(&t, "lw");
    table_add(&t, "    ");
    table_add(&t, "%s", help);
    table_print(&t, out);
    table_release(&t);
}

static void print_options(const char *title, const struct opt *table, FILE *out)
{
    fprintf(out, "\n%s\n", title);
    for (const struct opt *o = table; o->name != NULL; o++) {
        fputs("  ", out);
        for (const char *c = o->name; *c != '\0'; c++)
            fputc(*c == '-' ? '_' : *c, out);
        fprintf(out, "=%s (%s)\n", o->choices ? o->choices : o->arg ? o->arg : "0|1", o->def);
        print_help_text(o->help, out);
    }
}

static void list_policies(FILE *out)
{
    char title[96];
    struct table t;
    table_init(&t, "lw");
    for (int i = 0; policy_kinds[i] != NULL; i++) {
        table_add(&t, "%s", policy_kinds[i]->name);
        table_add(&t, "%s", policy_kinds[i]->what);
    }
    table_add(&t, "best-fixed");
    table_add(&t, "the best of all fixed layouts in hindsight");
    table_print(&t, out);
    table_release(&t);
    for (int i = 0; policy_kinds[i] != NULL; i++) {
        snprintf(title, sizeof title, "options of %s, as in %s:KEY=VALUE,... (default)",
                 policy_kinds[i]->name, policy_kinds[i]->name);
        if (policy_kinds[i]->opts != NULL)
            print_options(title, policy_kinds[i]->opts, out);
    }
    print_options("options of every policy that switches", policy_common_opts, out);
}

static void list_formats(FILE *out)
{
    struct table t;
    table_init(&t, "lw");
    for (int i = 0; trace_readers[i] != NULL; i++) {
        table_add(&t, "%s", trace_readers[i]->name);
        table_add(&t, "%s", trace_readers[i]->what);
    }
    table_add(&t, ".wtt");
    table_add(&t, "binary, of any of these, as \"trace convert\" writes it");
    table_print(&t, out);
    table_release(&t);
}

static int list(const char *what, FILE *out, struct err *err)
{
    static const char *const names[] = {"models",  "clusters", "profiles",
                                        "presets", "policies", "formats"};
    for (size_t i = 0; i < sizeof data_kinds / sizeof *data_kinds; i++)
        if (strcmp(data_kinds[i].name, what) == 0)
            return list_data(&data_kinds[i], out, err);
    if (strcmp(what, "policies") == 0 || strcmp(what, "formats") == 0) {
        (what[0] == 'p' ? list_policies : list_formats)(out);
        return 0;
    }
    const char *near = err_nearest(what, names, sizeof names / sizeof *names);
    return err_set(err,
                   "list: unknown list \"%s\"%s%s%s; lists: models, clusters, profiles, "
                   "presets, policies, formats",
                   what, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    (void)settings;
    struct outfile o;
    if (n_args != 1)
        return err_set(err,
                       "list: expected models, clusters, profiles, presets, policies or formats");
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    if (list(args[0], o.f, err) < 0) {
        outfile_abort(&o);
        return -1;
    }
    return outfile_commit(&o, err);
}

const struct manual list_manual = {
    .name = "list",
    .what = "list models, clusters, profiles or policies",
    .synopsis = "list models|clusters|profiles|presets|policies|formats",
    .text = "Lists the names that --model, --cluster, --profile, --preset and --policy take,\n"
            "and the formats of traces that are read.",
    .options = options,
    .words = "models clusters profiles presets policies formats",
    .examples = "wavetank list models",
    .see_also = "docs/formats.md, docs/model.md",
};

int cmd_list(int argc, char **argv)
{
    return cmd_main(&list_manual, NULL, run, argc, argv);
}
