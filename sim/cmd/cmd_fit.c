/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank fit: a profile from what wavetank-replay measured.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/report/fit_text.h"
#include "sim/study/fit.h"

struct settings {
    const char *model, *cluster, *base, *collectives, *name, *out;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    {"model", 0, OPT_STR, FIELD(model), "NAME", NULL, 0, 0, NULL,
     "the model that ran, by name or path (wavetank list models)"},
    {"cluster", 0, OPT_STR, FIELD(cluster), "NAME", NULL, 0, 0, NULL,
     "the cluster that it ran on, by name or path (wavetank list clusters)"},
    {"out", 'o', OPT_STR, FIELD(out), "FILE", NULL, 0, 0, NULL,
     "the profile to write; fitted collectives go to NAME.csv beside it"},
    {"base", 0, OPT_STR, FIELD(base), "NAME", NULL, 0, 0, NULL,
     "profile whose values stay where the data say nothing; without it the cluster's own"},
    {"collectives", 0, OPT_STR, FIELD(collectives), "FILE", NULL, 0, 0, NULL,
     "collectives measured by themselves (wavetank-replay collectives): of those, steps say only "
     "the latency"},
    {"name", 0, OPT_STR, FIELD(name), "NAME", NULL, 0, 0, NULL,
     "the new profile's name; without it the file's, less .json"},
    {0},
};

/* The file's first line decides: a plan begins with an object, a table with its columns. */
static int check_is_plan(const char *path, struct err *err)
{
    struct lines l;
    if (lines_open(&l, path, err) < 0)
        return -1;
    int got = lines_next(&l, err);
    bool is_plan = got == 0 || (got > 0 && l.line[strspn(l.line, " \t")] == '{');
    lines_close(&l);
    if (got < 0)
        return -1;
    return is_plan ? 0
                   : err_at(err, path, 1,
                            "not a measured plan, which begins with {\"plan\":1,...}; a table of "
                            "collectives goes to --collectives");
}

static int load_data(struct fit_data *d, int n, char **path, const char *collectives,
                     struct err *err)
{
    for (int i = 0; i < n; i++)
        if (check_is_plan(path[i], err) < 0 || fit_data_load(d, path[i], err) < 0)
            return -1;
    if (collectives != NULL && fit_data_load_collectives(d, collectives, err) < 0)
        return -1;
    fit_data_compare(d);
    return 0;
}

/* As given, or the file's name less its ending. */
static int choose_name(const struct settings *s, char name[CATALOG_NAME_SIZE], struct err *err)
{
    const char *slash = strrchr(s->out, '/');
    const char *text = s->name != NULL ? s->name : slash != NULL ? slash + 1 : s->out;
    size_t len = strlen(text);
    if (s->name == NULL && len > 5 && strcmp(text + len - 5, ".json") == 0)
        len -= 5;
    if (len == 0 || len >= CATALOG_NAME_SIZE || memchr(text, '/', len) != NULL)
        return err_set(err, "--name: must have 1 to %d characters and no '/', got \"%.64s\"",
                       CATALOG_NAME_SIZE - 1, text);
    snprintf(name, CATALOG_NAME_SIZE, "%.*s", (int)len, text);
    return 0;
}

/* How the table came about. */
static void print_table_head(const struct fit *f, const struct fit_data *d, const char *base,
                             FILE *out)
{
    fprintf(out, "# Collective times for the profile %s", f->profile.name);
    if (d->collectives_said == NULL)
        fprintf(
            out,
            ", fitted to exchanges over %d ranks.\n"
            "# Latency and bandwidth of %s scaled, for every number of ranks alike; operations\n"
            "# that the data do not have are as there.",
            d->cluster->ranks, base);
    else
        fprintf(
            out,
            ", measured by themselves over %d ranks:\n# %s\n"
            "# Over other numbers of ranks as %s, times measured / there at each size. Then each\n"
            "# operation's latency, its smallest time, scaled to what it is among a step's "
            "work.\n#",
            d->cluster->ranks, d->collectives_said, base);
    fprintf(out, " Parameters: the profile's \"source\".\n");
}

/* The table that goes beside the profile, and the profile's word for it. */
static int write_collectives(struct fit *f, const struct fit_data *d, const char *output,
                             struct err *err)
{
    const char *slash = strrchr(output, '/');
    int folder = slash != NULL ? (int)(slash - output) + 1 : 0;
    char *base = xstrdup(f->profile.collectives_name);
    struct outfile o;
    snprintf(f->profile.collectives_name, sizeof f->profile.collectives_name, "%s.csv",
             f->profile.name);
    char *path = xasprintf("%.*s%s", folder, output, f->profile.collectives_name);
    int rc = outfile_open(&o, path, err);
    if (rc == 0) {
        print_table_head(f, d, base, o.f);
        collective_write(&f->profile.collectives, o.f);
        rc = outfile_commit(&o, err);
    }
    free(path);
    free(base);
    return rc;
}

static void write_profile(const struct fit *f, const struct fit_data *d, const struct profile *base,
                          FILE *out)
{
    int n;
    char **source = fit_sources(f, d, base, &n);
    profile_write(&f->profile, (const char *const *)source, n, out);
    for (int i = 0; i < n; i++)
        free(source[i]);
    free(source);
}

/* A base's table that is a path of its own would not be found from the new file. */
static bool needs_table(const struct fit *f, const struct profile *base)
{
    const char *name = base->collectives_name;
    size_t len = strlen(name);
    return f->fits_collectives || strchr(name, '/') != NULL ||
           (len > 4 && strcmp(name + len - 4, ".csv") == 0);
}

static int print(const struct fit *f, const struct fit_data *d, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    fit_text_print(f, d, o.f);
    return outfile_commit(&o, err);
}

/* Fit, and write it all; the profile, last, to a file that was opened before the work. */
static int fit(const struct settings *s, const struct fit_data *d, const struct profile *base,
               FILE *out, struct err *err)
{
    struct fit f;
    char name[CATALOG_NAME_SIZE];
    if (choose_name(s, name, err) < 0 || fit_run(&f, d, base, err) < 0)
        return -1;
    memcpy(f.profile.name, name, sizeof name);
    snprintf(f.profile.kind, sizeof f.profile.kind, "measured");
    int rc = needs_table(&f, base) ? write_collectives(&f, d, s->out, err) : 0;
    if (rc == 0) {
        write_profile(&f, d, base, out);
        rc = print(&f, d, err);
    }
    fit_release(&f);
    return rc;
}

static int fit_to_file(const struct settings *s, const struct fit_data *d,
                       const struct profile *base, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, s->out, err) < 0)
        return -1;
    int rc = fit(s, d, base, o.f, err);
    if (rc == 0)
        return outfile_commit(&o, err);
    outfile_abort(&o);
    return rc;
}

static int check(const struct settings *s, int n_args, struct err *err)
{
    if (n_args == 0)
        return err_set(err, "fit: give one or more measured plans (see --help)");
    if (s->model == NULL)
        return err_set(err, "--model: missing; see \"wavetank list models\"");
    if (s->cluster == NULL)
        return err_set(err, "--cluster: missing; see \"wavetank list clusters\"");
    if (s->out == NULL || strcmp(s->out, "-") == 0)
        return err_set(err, "-o: say which file to write the profile to");
    return 0;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *s = settings;
    struct model model;
    struct cluster cluster;
    struct profile base;
    struct fit_data data;
    if (check(s, n_args, err) < 0 || model_load(&model, s->model, err) < 0 ||
        cluster_load(&cluster, s->cluster, err) < 0 ||
        profile_load(&base, s->base != NULL ? s->base : cluster.profile, err) < 0)
        return -1;
    fit_data_init(&data, &model, &cluster);
    int rc = load_data(&data, n_args, args, s->collectives, err);
    if (rc == 0)
        rc = fit_to_file(s, &data, &base, err);
    fit_data_release(&data);
    profile_release(&base);
    return rc;
}

static void print_help(void)
{
    puts("usage: wavetank fit MEASURED... --model NAME --cluster NAME -o FILE [option]...\n"
         "\n"
         "Fits a profile to plans that wavetank-replay measured: efficiencies, fixed\n"
         "times, collectives and transfers, so that the simulator's own predictions of\n"
         "the steps are off by as little as can be. Shows every parameter with its\n"
         "uncertainty, and how far off the predictions still are.\n");
    opt_help(options, stdout);
}

int cmd_fit(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(options, &settings, print_help, run, argc, argv);
}
