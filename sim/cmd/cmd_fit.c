/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank fit: a profile from what wavetank-replay measured, or from a table of speeds.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/command_text.h"
#include "sim/cmd/fit_output.h"
#include "sim/cmd/fit_speeds.h"
#include "sim/cmd/version.h"
#include "sim/report/fit_text.h"
#include "sim/study/fit.h"
#include "traces/reader.h"

struct settings {
    const char *model, *cluster, *base, *collectives, *decode_layout, *name, *out, *report;
    char *command; /* no option: how the page was asked for */
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
    {"decode-layout", 0, OPT_STR, FIELD(decode_layout), "NAME", NULL, 0, 0, NULL,
     "of a table's throughputs of prefill and decode pools: the decode pool's layout; without it "
     "each row decodes in its own"},
    {"name", 0, OPT_STR, FIELD(name), "NAME", NULL, 0, 0, NULL,
     "the new profile's name; without it the file's, less .json"},
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write the fit as one HTML page: predictions beside measurements"},
    {0},
};

/* What there is to fit to: one of the two. */
struct input {
    struct fit_data plans;
    struct speeds speeds;
    bool is_table;
};

/* The file's first line decides: a plan begins with an object, a table with its columns. */
static int tell_kind(const char *path, bool *is_table, struct err *err)
{
    struct lines l;
    if (lines_open(&l, path, err) < 0)
        return -1;
    int got = reader_next(&l, err);
    bool is_plan = got == 0 || (got > 0 && l.line[strspn(l.line, " \t")] == '{');
    bool is_speeds = got > 0 && !is_plan && speeds_header(l.line);
    long line = l.number;
    lines_close(&l);
    if (got < 0)
        return -1;
    *is_table = is_speeds;
    return is_plan || is_speeds
               ? 0
               : err_at(
                     err, path, line,
                     "not a measured plan, which begins with {\"plan\":1,...}, nor a table with a "
                     "column \"layout\"; a table of collectives goes to --collectives");
}

static int load_plans(struct fit_data *d, const struct settings *s, int n, char **path,
                      struct err *err)
{
    for (int i = 0; i < n; i++)
        if (fit_data_load(d, path[i], err) < 0)
            return -1;
    if (s->collectives != NULL && fit_data_load_collectives(d, s->collectives, err) < 0)
        return -1;
    fit_data_compare(d);
    return 0;
}

static int check_table(const struct settings *s, int n, const char *path, struct err *err)
{
    if (n > 1)
        return err_at(err, path, 0, "a table of speeds is fitted by itself; give no other file");
    if (s->collectives != NULL)
        return err_set(err, "--collectives: goes with measured plans; for a table, put them into "
                            "the profile that --base names");
    return 0;
}

static int load_input(struct input *in, const struct settings *s, int n, char **path,
                      struct err *err)
{
    for (int i = 0; i < n; i++) {
        if (tell_kind(path[i], &in->is_table, err) < 0)
            return -1;
        if (in->is_table)
            return check_table(s, n, path[i], err) < 0
                       ? -1
                       : speeds_load(&in->speeds, path[i], in->plans.model, in->plans.cluster,
                                     s->decode_layout, err);
    }
    if (s->decode_layout != NULL)
        return err_set(err, "--decode-layout: goes with a table of speeds; plans name the layout "
                            "of every step");
    return load_plans(&in->plans, s, n, path, err);
}

/* How the table of collectives came about. */
static char *collectives_head(const struct fit *f, const struct fit_data *d, const char *base)
{
    if (d->collectives_said == NULL)
        return xasprintf(
            "# Collective times for the profile %s, fitted to exchanges over %d ranks.\n"
            "# Latency and bandwidth of %s scaled, for every number of ranks alike; operations\n"
            "# that the data do not have are as there. Parameters: the profile's \"source\".\n",
            f->profile.name, d->cluster->ranks, base);
    return xasprintf(
        "# Collective times for the profile %s, measured by themselves over %d ranks:\n# %s\n"
        "# Over other numbers of ranks as %s, times measured / there at each size. Then each\n"
        "# operation's latency, its smallest time, scaled to what it is among a step's work.\n"
        "# Parameters: the profile's \"source\".\n",
        f->profile.name, d->cluster->ranks, d->collectives_said, base);
}

static int write_collectives(struct fit *f, const struct fit_data *d, const struct profile *base,
                             const char *output, struct err *err)
{
    if (!f->fits_collectives && !fit_output_moves_collectives(base))
        return 0;
    char *head = collectives_head(f, d, base->collectives_name);
    int rc = fit_output_collectives(&f->profile, output, head, err);
    free(head);
    return rc;
}

static int write_all(const struct fit *f, const struct fit_data *d, const struct profile *base,
                     const struct fit_destination *to, struct err *err)
{
    int n;
    size_t size;
    char **source = fit_sources(f, d, base, &n), *text;
    struct fit_pairs pairs;
    FILE *tables = open_memstream(&text, &size);
    fit_text_print(f, d, tables);
    fclose(tables);
    fit_pairs_of_plans(&pairs, f, d);
    int rc = fit_output_write(to, &f->profile, source, n, text, &pairs, err);
    fit_pairs_release(&pairs);
    free(text);
    return rc;
}

static int fit_plans(const struct fit_data *d, const struct profile *base,
                     const struct fit_destination *to, struct err *err)
{
    struct fit f;
    if (fit_run(&f, d, base, err) < 0)
        return -1;
    snprintf(f.profile.name, sizeof f.profile.name, "%s", to->name);
    snprintf(f.profile.kind, sizeof f.profile.kind, "measured");
    int rc = write_collectives(&f, d, base, to->path, err);
    if (rc == 0)
        rc = write_all(&f, d, base, to, err);
    fit_release(&f);
    return rc;
}

static int fit_input(const struct settings *s, const struct input *in, const struct profile *base,
                     struct fit_destination *to, struct err *err)
{
    json_t *options_json = opt_dump(options, s);
    const struct page_fact facts[] = {{"model", s->model},      {"cluster", s->cluster},
                                      {"profile", to->name},    {"base", base->name},
                                      {"written to", to->path}, {0}};
    to->about = (struct page_about){.fact = facts,
                                    .version = "wavetank " WAVETANK_VERSION,
                                    .command = s->command,
                                    .options = options_json};
    int rc = in->is_table ? fit_speeds(&in->speeds, base, to, err)
                          : fit_plans(&in->plans, base, to, err);
    json_decref(options_json);
    return rc;
}

/* Fit, and write it all; the profile, last, to a file that was opened before the work. */
static int fit_to_file(const struct settings *s, const struct input *in, const struct profile *base,
                       struct err *err)
{
    struct outfile profile = {0}, page = {0};
    char name[CATALOG_NAME_SIZE];
    if (fit_output_name(s->name, s->out, name, err) < 0 || outfile_open(&profile, s->out, err) < 0)
        return -1;
    int rc = s->report != NULL ? outfile_open(&page, s->report, err) : 0;
    if (rc == 0) {
        struct fit_destination to = {.name = name,
                                     .path = s->out,
                                     .profile = profile.f,
                                     .page = page.f,
                                     .page_is_stdout = s->report && strcmp(s->report, "-") == 0};
        rc = fit_input(s, in, base, &to, err);
    }
    if (rc == 0 && s->report != NULL)
        rc = outfile_commit(&page, err);
    rc = rc == 0 ? outfile_commit(&profile, err) : rc;
    outfile_abort(&page);
    outfile_abort(&profile);
    return rc;
}

static int check(const struct settings *s, int n_args, struct err *err)
{
    if (n_args == 0)
        return err_set(err, "fit: give measured plans, or a table of speeds (see --help)");
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
    struct input in = {.is_table = false};
    if (check(s, n_args, err) < 0 || model_load(&model, s->model, err) < 0 ||
        cluster_load(&cluster, s->cluster, err) < 0 ||
        profile_load(&base, s->base != NULL ? s->base : cluster.profile, err) < 0)
        return -1;
    fit_data_init(&in.plans, &model, &cluster);
    int rc = load_input(&in, s, n_args, args, err);
    if (rc == 0)
        rc = fit_to_file(s, &in, &base, err);
    fit_data_release(&in.plans);
    speeds_release(&in.speeds);
    profile_release(&base);
    return rc;
}

const struct manual fit_manual = {
    .name = "fit",
    .what = "fit a profile to measured plans",
    .synopsis = "fit MEASURED... --model NAME --cluster NAME -o FILE [option]...\n"
                "fit TABLE.csv --model NAME --cluster NAME -o FILE [option]...",
    .text = "Fits a profile to plans that wavetank-replay measured: efficiencies, fixed\n"
            "times, collectives and transfers, so that the simulator's own predictions of\n"
            "the steps are off by as little as can be. Shows every parameter with its\n"
            "uncertainty, and how far off the predictions still are.\n"
            "\n"
            "A table of speeds (columns layout, input_len, batch, output_len, and\n"
            "throughput_tok_s or step_ms) says less: of a base profile it scales the time of\n"
            "each stage and of collectives, and sets the fixed time of a step.",
    .options = options,
    .examples = "wavetank fit grid.measured.jsonl --model deepseek-r1-slice --cluster h200x2 \\\n"
                "    -o mine.json",
    .see_also = "docs/calibration.md",
};

int cmd_fit(int argc, char **argv)
{
    struct settings settings = {.command = command_text(argc, argv)};
    int rc = cmd_main(&fit_manual, &settings, run, argc, argv);
    free(settings.command);
    return rc;
}
