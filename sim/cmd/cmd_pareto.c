/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank pareto: the throughput-interactivity frontier over every way of mapping a model's decode
 * to a cluster, with Helix and without.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/command_text.h"
#include "sim/cmd/profile_about.h"
#include "sim/cmd/version.h"
#include "sim/report/pareto_html.h"
#include "sim/report/pareto_json.h"
#include "sim/report/pareto_text.h"
#include "sim/report/result_json.h"

enum { CONTEXT_MAX_TOKENS = 1 << 28, CONTEXTS_MAX = 16, BATCH_MAX = 1 << 24 };

struct settings {
    const char *model, *cluster, *profile;
    int64_t context, threads, rows;
    const char *contexts, *batch, *gpus, *families, *baseline, *explain, *csv, *json, *report;
    int precision;
    double link_gb_per_s, collective_us;
    bool ideal, no_hopb, sensitivity;
    char *command; /* no option: how the page was asked for */
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    {"model", 0, OPT_STR, FIELD(model), "NAME", NULL, 0, 0, NULL,
     "model, by name or path (wavetank list models)"},
    {"cluster", 0, OPT_STR, FIELD(cluster), "NAME", NULL, 0, 0, NULL,
     "cluster, by name or path (wavetank list clusters)"},
    {"profile", 0, OPT_STR, FIELD(profile), "NAME", NULL, 0, 0, NULL,
     "profile instead of the cluster's own (wavetank list profiles)"},
    {"context", 0, OPT_TOKENS, FIELD(context), "S", NULL, 1, CONTEXT_MAX_TOKENS, NULL,
     "tokens of context of every request, as in 1M"},
    {"contexts", 0, OPT_STR, FIELD(contexts), "LIST", NULL, 0, 0, NULL,
     "more contexts to search, as in 64K,256K"},
    {"precision", 0, OPT_ENUM, FIELD(precision), "FORMAT", "model", 0, 0, "model|bf16|fp8|fp4",
     "all weights, KV and arithmetic in one format; model: as its file says"},
    {"gpus", 0, OPT_STR, FIELD(gpus), "LIST", NULL, 0, 0, NULL,
     "numbers of GPUs, as in 1-72 or 8,16,32-64; without it 1 to the cluster's"},
    {"batch", 0, OPT_STR, FIELD(batch), "RANGE", NULL, 0, 0, NULL,
     "concurrent requests, as in 1-64 or 8; without it 1 to what memory holds"},
    {"families", 0, OPT_STR, FIELD(families), "LIST", "tp,pp,ep,dpa,kvp,helix", 0, 0, NULL,
     "families of mappings to search"},
    {"baseline", 0, OPT_STR, FIELD(baseline), "LIST", "tp,pp,ep", 0, 0, NULL,
     "families that Helix is compared with"},
    {"no-hopb", 0, OPT_FLAG, FIELD(no_hopb), NULL, NULL, 0, 0, NULL,
     "Helix in lockstep only: no sub-batches"},
    {"ideal", 0, OPT_FLAG, FIELD(ideal), NULL, NULL, 0, 0, NULL,
     "no profile: peaks are reached, launches are free, links are bandwidth"},
    {"collective-us", 0, OPT_F64, FIELD(collective_us), "US", "0", 0, 1e6, NULL,
     "with --ideal: what a collective takes whatever its size"},
    {"link-gb-per-s", 0, OPT_F64, FIELD(link_gb_per_s), "X", NULL, 1e-3, 1e6, NULL,
     "of one GPU in one direction, instead of the device's"},
    {"sensitivity", 0, OPT_FLAG, FIELD(sensitivity), NULL, NULL, 0, 0, NULL,
     "vary links, GPUs and context: where does Helix stop paying?"},
    {"explain", 0, OPT_STR, FIELD(explain), "MAPPING", NULL, 0, 0, NULL,
     "take one mapping apart at --batch requests instead of searching, as in "
     "helix:kvp=8,tpa=8,tpf=64,hopb=4"},
    {"rows", 0, OPT_I64, FIELD(rows), "N", "20", 2, 1 << 20, NULL,
     "points of the frontier to print"},
    {"threads", 0, OPT_I64, FIELD(threads), "N", "0", 0, 1024, NULL,
     "threads; 0: one a processor, or under mpirun one in each process. Results do not depend "
     "on it"},
    {"csv", 0, OPT_STR, FIELD(csv), "FILE", NULL, 0, 0, NULL,
     "write every configuration (of --context) as CSV; skips none"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the result as JSON (\"-\": standard output, without the tables)"},
    {"report", 0, OPT_STR, FIELD(report), "FILE", NULL, 0, 0, NULL,
     "write the result as one HTML page with its frontiers drawn"},
    {0},
};

/* What the options name. */
struct space {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct decode_machine machine;
    int gpus[RANKS_MAX], n_gpus;
    unsigned families, baseline;
    int64_t min_batch, max_batch;
    int64_t context[CONTEXTS_MAX];
    int n_contexts;
};

/* Calls `take` with each item of a comma-separated list. */
typedef int take_fn(void *arg, const char *item, struct err *err);

static int each_item(const char *list, take_fn *take, void *arg, struct err *err)
{
    char *copy = xstrdup(list), *rest = NULL;
    int rc = 0;
    for (char *item = strtok_r(copy, ",", &rest); item != NULL && rc == 0;
         item = strtok_r(NULL, ",", &rest))
        rc = take(arg, item, err);
    free(copy);
    return rc;
}

static int take_family(void *arg, const char *item, struct err *err)
{
    for (int f = 0; f < FAMILY_COUNT; f++) {
        if (strcmp(item, mapping_family_names[f]) == 0) {
            *(unsigned *)arg |= 1u << f;
            return 0;
        }
    }
    const char *near = err_nearest(item, mapping_family_names, FAMILY_COUNT);
    return err_set(err,
                   "--families, --baseline: unknown family \"%s\"%s%s%s; there are tp, pp, ep, "
                   "dpa, kvp and helix",
                   item, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static int take_context(void *arg, const char *item, struct err *err)
{
    struct space *s = arg;
    int64_t tokens;
    if (units_parse_tokens(item, "--contexts", &tokens, err) < 0)
        return -1;
    if (tokens < 1 || tokens > CONTEXT_MAX_TOKENS)
        return err_set(err, "--contexts: %s is not in [1, %d]", item, CONTEXT_MAX_TOKENS);
    if (s->n_contexts == CONTEXTS_MAX)
        return err_set(err, "--contexts: more than %d contexts", CONTEXTS_MAX);
    s->context[s->n_contexts++] = tokens;
    return 0;
}

static bool has_gpus(const struct space *s, int64_t n)
{
    for (int i = 0; i < s->n_gpus; i++)
        if (s->gpus[i] == n)
            return true;
    return false;
}

/* "8" or "1-72". */
static int parse_range(const char *text, const char *option, int64_t most, int64_t range[2],
                       struct err *err)
{
    char *first = xstrdup(text), *dash = strchr(first, '-');
    if (dash != NULL)
        *dash = '\0';
    int rc = units_parse_i64(first, option, 1, most, &range[0], err);
    if (rc == 0)
        rc = units_parse_i64(dash ? dash + 1 : first, option, 1, most, &range[1], err);
    free(first);
    if (rc == 0 && range[1] < range[0])
        return err_set(err, "%s: %s runs backwards; use %lld-%lld", option, text,
                       (long long)range[1], (long long)range[0]);
    return rc;
}

static int take_gpus(void *arg, const char *item, struct err *err)
{
    struct space *s = arg;
    int64_t range[2];
    if (parse_range(item, "--gpus", RANKS_MAX, range, err) < 0)
        return -1;
    for (int64_t n = range[0]; n <= range[1]; n++)
        if (!has_gpus(s, n))
            s->gpus[s->n_gpus++] = (int)n;
    return 0;
}

static int take_batch(struct space *s, const char *text, struct err *err)
{
    int64_t range[2] = {1, BATCH_MAX};
    if (text != NULL && parse_range(text, "--batch", BATCH_MAX, range, err) < 0)
        return -1;
    s->min_batch = range[0];
    s->max_batch = range[1];
    return 0;
}

static int load_machine(struct space *s, const struct settings *o, struct err *err)
{
    static const enum number_format formats[] = {FMT_COUNT, FMT_BF16, FMT_FP8, FMT_FP4};
    if (o->model == NULL)
        return err_set(err, "--model: missing; see \"wavetank list models\"");
    if (o->cluster == NULL)
        return err_set(err, "--cluster: missing; see \"wavetank list clusters\"");
    if (o->ideal && o->profile != NULL)
        return err_set(err, "--ideal, --profile: the ideal has no profile; give one of them");
    if (!o->ideal && o->collective_us > 0)
        return err_set(err, "--collective-us: needs --ideal; a profile has measured collectives");
    if (model_load(&s->model, o->model, err) < 0 || cluster_load(&s->cluster, o->cluster, err) < 0)
        return -1;
    if (s->model.linear.layers > 0)
        return err_set(err, "--model: %s has linear-attention layers, which pareto does not cost",
                       s->model.name);
    const char *profile = o->profile ? o->profile : s->cluster.profile;
    if (!o->ideal && profile_load(&s->profile, profile, err) < 0)
        return -1;
    if (o->precision > 0)
        decode_set_format(&s->model, formats[o->precision]);
    s->machine = (struct decode_machine){
        .model = &s->model,
        .cluster = &s->cluster,
        .profile = o->ideal ? NULL : &s->profile,
        .arithmetic = o->precision > 0 ? formats[o->precision] : s->model.activations,
        .link_gb_per_s = o->link_gb_per_s > 0 ? o->link_gb_per_s : s->cluster.device.link_gb_per_s,
        .collective_us = o->collective_us,
    };
    return 0;
}

static int load_space(struct space *s, const struct settings *o, struct err *err)
{
    if (o->context == 0)
        return err_set(err, "--context: missing; give it as in --context 1M");
    if (take_batch(s, o->batch, err) < 0)
        return -1;
    s->context[s->n_contexts++] = o->context;
    if (o->contexts != NULL && each_item(o->contexts, take_context, s, err) < 0)
        return -1;
    if (each_item(o->families, take_family, &s->families, err) < 0 ||
        each_item(o->baseline, take_family, &s->baseline, err) < 0)
        return -1;
    s->baseline &= s->families;
    if (s->families == 0)
        return err_set(err, "--families: empty; give some of tp, pp, ep, dpa, kvp and helix");
    if (s->baseline >> FAMILY_HELIX & 1)
        return err_set(err, "--baseline: helix is what is compared with the baseline");
    if (o->gpus != NULL && each_item(o->gpus, take_gpus, s, err) < 0)
        return -1;
    for (int n = 1; o->gpus == NULL && n <= s->cluster.ranks; n++)
        s->gpus[s->n_gpus++] = n;
    return s->n_gpus > 0 ? 0 : err_set(err, "--gpus: empty; give it as in --gpus 1-72");
}

static void print_machine(const struct space *s, const struct settings *o, FILE *out)
{
    static const char *const formats[] = {"", " in bf16", " in fp8", " in fp4"};
    char memory[32];
    bool assumed = strcmp(s->profile.kind, "analytic") == 0;
    fprintf(out, "model    %s%s\n", s->model.name, formats[o->precision]);
    fprintf(out, "cluster  %s of %s, %s each, links of %.6g GB/s\n", s->cluster.name,
            s->cluster.device.name,
            units_bytes(s->cluster.device.memory_bytes, memory, sizeof memory),
            s->machine.link_gb_per_s);
    if (o->ideal)
        fprintf(out, "profile  none: peaks are reached, a collective takes %.6g us and its bytes\n",
                o->collective_us);
    else
        fprintf(out, "profile  %s%s\n", s->profile.name,
                assumed ? ": efficiencies assumed, not measured" : "");
}

static int explain(const struct space *s, const struct settings *o, struct err *err)
{
    struct mapping mapping;
    struct decode_plan plan;
    struct outfile out;
    if (mapping_parse(&mapping, o->explain, &s->model, err) < 0)
        return -1;
    decode_plan_init(&plan, &s->machine, &mapping, o->context);
    if (s->min_batch > plan.max_batch)
        return err_set(err, "--batch: %lld requests do not fit, at most %lld do",
                       (long long)s->min_batch, (long long)plan.max_batch);
    if (outfile_open(&out, "-", err) < 0)
        return -1;
    print_machine(s, o, out.f);
    pareto_text_explain(&plan, s->min_batch, out.f);
    return outfile_commit(&out, err);
}

/* What one run found. */
struct findings {
    struct search search[CONTEXTS_MAX];
    struct pareto_study study[CONTEXTS_MAX];
    int n;
    struct sensitivity sweep[SENSITIVITIES];
    bool swept;
};

static void find(struct findings *f, const struct space *s, const struct settings *o,
                 const struct searchers *by)
{
    for (; f->n < s->n_contexts; f->n++) {
        struct search *search = &f->search[f->n];
        search_init(search, &s->machine, s->families, s->gpus, s->n_gpus);
        search->context_tokens = s->context[f->n];
        search->min_batch = s->min_batch;
        search->max_batch = s->max_batch;
        search->hopb = !o->no_hopb;
        search->all = o->csv != NULL;
        pareto_study_run(&f->study[f->n], search, s->families, s->baseline, by);
    }
    if (!o->sensitivity)
        return;
    struct sensitivity_base base = {
        .machine = s->machine,
        .by = by,
        .context_tokens = s->context[0],
        .baseline = s->baseline,
        .hopb = !o->no_hopb,
    };
    for (int i = 0; i < s->n_gpus; i++)
        base.max_gpus = s->gpus[i] > base.max_gpus ? s->gpus[i] : base.max_gpus;
    sensitivity_sweep(&base, f->sweep);
    f->swept = true;
}

static void release_findings(struct findings *f)
{
    for (int i = 0; i < f->n; i++) {
        pareto_study_release(&f->study[i]);
        search_release(&f->search[i]);
    }
}

static int print(const struct findings *f, const struct space *s, const struct settings *o,
                 struct err *err)
{
    struct outfile out;
    if (outfile_open(&out, "-", err) < 0)
        return -1;
    print_machine(s, o, out.f);
    pareto_text_print(&f->study[0], (int)o->rows, out.f);
    if (f->n > 1)
        pareto_text_contexts(f->study, f->n, out.f);
    if (f->swept)
        pareto_text_sensitivity(f->sweep, out.f);
    return outfile_commit(&out, err);
}

/* The files asked for, opened before the search: a path that is no good is told at once. */
struct outputs {
    struct outfile csv, json, page;
};

static bool takes_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static int open_outputs(struct outputs *out, const struct settings *o, struct err *err)
{
    if (o->explain != NULL)
        return 0;
    if (takes_stdout(o->json) && takes_stdout(o->report))
        return err_set(err, "--json, --report: only one of them may be \"-\"");
    if (o->report != NULL && outfile_open(&out->page, o->report, err) < 0)
        return -1;
    if (o->csv != NULL && outfile_open(&out->csv, o->csv, err) < 0)
        return -1;
    return o->json != NULL ? outfile_open(&out->json, o->json, err) : 0;
}

static int write_json(const struct findings *f, struct outfile *out, struct err *err)
{
    json_t *document = pareto_json(f->study, f->n, f->swept ? f->sweep : NULL);
    result_json_write(document, out->f);
    json_decref(document);
    return outfile_commit(out, err);
}

/* To be freed. */
static char *cluster_text(const struct space *s)
{
    char memory[32];
    units_bytes(s->cluster.device.memory_bytes, memory, sizeof memory);
    return xasprintf("%s of %s, %s each, links of %.6g GB/s", s->cluster.name,
                     s->cluster.device.name, memory, s->machine.link_gb_per_s);
}

static void print_page(const struct findings *f, const struct space *s, const struct settings *o,
                       FILE *out)
{
    char *cluster = cluster_text(s), context[32];
    struct profile_about profile = {0};
    json_t *result = pareto_json(f->study, f->n, f->swept ? f->sweep : NULL);
    json_t *options_json = opt_dump(options, o);
    units_count(o->context, context, sizeof context);
    if (!o->ideal)
        profile_about_open(&profile, o->profile ? o->profile : s->cluster.profile);
    const struct page_fact facts[] = {
        {"model", s->model.name},
        {"cluster", cluster},
        {"profile", o->ideal ? "none: peaks are reached, links are bandwidth" : profile.text},
        {"context, tokens", context},
        {0}};
    const struct pareto_page page = {
        .about = {facts, "wavetank " WAVETANK_VERSION, o->command, profile.source, options_json},
        .study = f->study,
        .n = f->n,
        .sweep = f->swept ? f->sweep : NULL,
        .result = result,
    };
    pareto_html(&page, out);
    profile_about_close(&profile);
    json_decref(options_json);
    json_decref(result);
    free(cluster);
}

static int tell(const struct findings *found, struct outputs *out, const struct space *s,
                const struct settings *o, struct err *err)
{
    int rc = 0;
    if (o->csv != NULL) {
        pareto_csv(&found->search[0], out->csv.f);
        rc = outfile_commit(&out->csv, err);
    }
    if (rc == 0 && o->json != NULL)
        rc = write_json(found, &out->json, err);
    if (rc == 0 && o->report != NULL) {
        print_page(found, s, o, out->page.f);
        rc = outfile_commit(&out->page, err);
    }
    return rc == 0 && !takes_stdout(o->json) && !takes_stdout(o->report) ? print(found, s, o, err)
                                                                         : rc;
}

static int search_and_tell(const struct space *s, const struct settings *o, struct outputs *out,
                           const struct ranks *ranks, struct err *err)
{
    struct searchers by = {.ranks = *ranks, .threads = (int)o->threads};
    struct findings found = {0};
    find(&found, s, o, &by);
    int rc = ranks->rank == 0 ? tell(&found, out, s, o, err) : 0;
    release_findings(&found);
    return rc;
}

static int prepare(struct space *s, struct outputs *out, const struct settings *o,
                   const struct ranks *ranks, struct err *err)
{
    if (load_machine(s, o, err) < 0 || load_space(s, o, err) < 0)
        return -1;
    return ranks->rank == 0 ? open_outputs(out, o, err) : 0;
}

/* Of several processes that fail alike, the first one speaks. */
static int work(const struct settings *o, const struct ranks *ranks, struct err *err)
{
    struct space s = {0};
    struct outputs out = {0};
    int rc = prepare(&s, &out, o, ranks, err), failed = ranks_first_failed(ranks, rc < 0);
    if (failed >= 0)
        rc = failed == ranks->rank ? -1 : 1;
    else if (o->explain != NULL)
        rc = ranks->rank == 0 ? explain(&s, o, err) : 0;
    else
        rc = search_and_tell(&s, o, &out, ranks, err);
    outfile_abort(&out.csv);
    outfile_abort(&out.json);
    outfile_abort(&out.page);
    profile_release(&s.profile);
    return rc;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct ranks ranks;
    (void)args;
    if (n_args != 0)
        return err_set(err, "pareto: takes options only (see --help)");
    if (ranks_begin(&ranks, err) < 0)
        return -1;
    int rc = work(settings, &ranks, err);
    ranks_end(&ranks);
    return rc;
}

const struct manual pareto_manual = {
    .name = "pareto",
    .what = "search mappings for throughput against interactivity, with Helix",
    .synopsis = "pareto --model NAME --cluster NAME --context S [option]...",
    .text = "Costs one decode step under every mapping and batch that fits, and keeps the\n"
            "frontier of tokens/s/user (1 / TTL) and tokens/s/GPU: with Helix, without, and\n"
            "what each of its choices buys. Under mpirun the processes share the search.",
    .options = options,
    .examples = "wavetank pareto --model deepseek-r1 --cluster gb200-nvl72 --context 1M\n"
                "wavetank pareto --model llama-3.1-405b --cluster gb200-nvl72 \\\n"
                "    --context 1M --batch 8 --explain helix:kvp=8,tpa=8,tpf=64,hopb=4",
    .see_also = "docs/pareto.md",
};

int cmd_pareto(int argc, char **argv)
{
    struct settings settings = {.command = command_text(argc, argv)};
    int rc = cmd_main(&pareto_manual, &settings, run, argc, argv);
    free(settings.command);
    return rc;
}
