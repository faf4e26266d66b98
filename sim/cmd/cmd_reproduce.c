/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank reproduce PAPER...: papers' tables and figures beside what we compute.
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/cmd/cmd.h"
#include "sim/report/reproduction_html.h"
#include "sim/report/reproduction_report.h"
#include "sim/report/result_json.h"

struct settings {
    const char *only, *json, *markdown, *report;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    {"only", 0, OPT_STR, FIELD(only), "SECTION", NULL, 0, 0, NULL,
     "one section of the above instead of all"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the rows as JSON (\"-\": standard output, without the tables)"},
    {"markdown", 0, OPT_STR, FIELD(markdown), "FILE", NULL, 0, 0, NULL,
     "write the tables as a page (docs/fidelity.md; \"-\": standard output)"},
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write tables and figures as one HTML file (\"-\": standard output)"},
    {0},
};

static void write_rows(const struct reproduction *r, FILE *out)
{
    json_t *document = reproduction_json(r);
    result_json_write(document, out);
    json_decref(document);
}

/* NULL: not asked for. */
static int write_to(const char *path, void (*write)(const struct reproduction *r, FILE *out),
                    const struct reproduction *r, struct err *err)
{
    struct outfile o;
    if (path == NULL)
        return 0;
    if (outfile_open(&o, path, err) < 0)
        return -1;
    write(r, o.f);
    return outfile_commit(&o, err);
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static int count_stdout(const struct settings *s)
{
    return is_stdout(s->json) + is_stdout(s->markdown) + is_stdout(s->report);
}

static int report(const struct reproduction *r, const struct settings *s, struct err *err)
{
    bool quiet = count_stdout(s) > 0;
    if (write_to(s->json, write_rows, r, err) < 0 ||
        write_to(s->markdown, reproduction_markdown, r, err) < 0 ||
        write_to(s->report, reproduction_html, r, err) < 0 ||
        write_to(quiet ? NULL : "-", reproduction_print, r, err) < 0)
        return -1;
    struct row_count count = reproduction_count(r);
    if (count.differ > 0)
        return err_run(err, "reproduce: %zu of %zu exact rows differ from the paper", count.differ,
                       count.exact);
    return 0;
}

static int take_publications(int n_args, char **args, unsigned *of, struct err *err)
{
    if (n_args == 0)
        return err_set(err, "reproduce: expected \"splash\" or \"helix\" (see --help)");
    for (int i = 0; i < n_args; i++) {
        int publication = publication_find(args[i], err);
        if (publication < 0)
            return -1;
        *of |= 1u << publication;
    }
    return 0;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *s = settings;
    struct reproduction r;
    unsigned of = 0;
    int only = REPRODUCTION_ALL;
    if (take_publications(n_args, args, &of, err) < 0)
        return -1;
    if (count_stdout(s) > 1)
        return err_set(err, "--json, --markdown, --report: only one of them may be \"-\"");
    if (s->only != NULL && (only = reproduction_find(s->only, of, err)) < 0)
        return -1;
    if (reproduction_run(&r, of, only, err) < 0)
        return -1;
    int rc = report(&r, s, err);
    reproduction_release(&r);
    return rc;
}

const struct manual reproduce_manual = {
    .name = "reproduce",
    .what = "set the SPLASH and Helix papers' numbers beside ours",
    .synopsis = "reproduce PAPER... [option]...",
    .text = "Sets the numbers of papers, splash (arXiv 2609.37626) and helix (arXiv\n"
            "2507.07120), beside ours. What follows from their formulas must be equal to the\n"
            "last digit, else the exit code is 1; what is predicted is shown with its error\n"
            "and a goal. Sections:",
    .more = reproduction_list,
    .options = options,
    .words = "splash helix",
    .examples = "wavetank reproduce splash\n"
                "wavetank reproduce splash --only throughput\n"
                "wavetank reproduce helix --report helix.html",
    .see_also = "docs/fidelity.md",
};

int cmd_reproduce(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&reproduce_manual, &settings, run, argc, argv);
}
