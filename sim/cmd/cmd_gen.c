/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank gen agentic|rollout|longdoc: a trace drawn from published statistics.
 */
#include "hw/catalog.h"
#include "sim/cmd/cmd.h"
#include "traces/convert.h"
#include "workloads/workload.h"

struct settings {
    const char *preset, *out;
    int64_t count, block_tokens, seed;
    double rate_per_s;
};

static const struct opt options[] = {
    {"preset", 0, OPT_STR, offsetof(struct settings, preset), "NAME", NULL, 0, 0, NULL,
     "where the numbers come from (\"wavetank list presets\"), or a FILE.json of your own"},
    {"count", 'n', OPT_I64, offsetof(struct settings, count), "N", "0", 0, 1e6, NULL,
     "so many sessions, steps or documents (0: as the preset says)"},
    {"rate", 0, OPT_F64, offsetof(struct settings, rate_per_s), "X", "0", 0, 1e6, NULL,
     "sessions or documents that come in a second (0: as the preset says)"},
    {"block-tokens", 0, OPT_I64, offsetof(struct settings, block_tokens), "N", "64", 0, 1 << 20,
     NULL, "prompt tokens for each block hash (0: no hashes)"},
    {"seed", 0, OPT_I64, offsetof(struct settings, seed), "N", "0", 0, 9e18, NULL,
     "seed of all that is drawn"},
    {"out", 'o', OPT_STR, offsetof(struct settings, out), "FILE", NULL, 0, 0, NULL,
     "write FILE, which ends in .wtt, .jsonl or .csv"},
    {0},
};

static int make(struct trace *t, const struct workload *w, const struct settings *s,
                struct err *err)
{
    struct catalog_doc doc;
    char name[CATALOG_NAME_SIZE];
    struct workload_ask ask = {.count = s->count,
                               .rate_per_s = s->rate_per_s,
                               .block_tokens = s->block_tokens,
                               .seed = (uint64_t)s->seed};
    if (catalog_open(&doc, "presets", s->preset ? s->preset : w->preset, name, err) < 0)
        return -1;
    int rc = workload_make(t, w, name, &doc.root, &ask, err);
    catalog_close(&doc);
    return rc;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *s = settings;
    struct trace t = {0};
    if (n_args != 1)
        return err_set(err, "gen: expected agentic, rollout or longdoc (see --help)");
    const struct workload *w = workload_find(args[0], err);
    if (w == NULL)
        return -1;
    if (s->out == NULL)
        return err_set(err, "gen: say where to: -o FILE, ending in .wtt, .jsonl or .csv");
    const struct trace_form *form = trace_form_of(s->out, err);
    if (form == NULL || make(&t, w, s, err) < 0)
        return -1;
    int rc = trace_convert(&t, form, s->out, stderr, err);
    trace_release(&t);
    return rc;
}

const struct manual gen_manual = {
    .name = "gen",
    .what = "draw a trace from published statistics",
    .synopsis = "gen agentic|rollout|longdoc -o FILE [options]",
    .text = "agentic  sessions of coding agents: growing contexts, tools, sub-agents\n"
            "rollout  steps of reinforcement learning: groups of samples, long tails\n"
            "longdoc  questions about documents of up to a million tokens\n"
            "\n"
            "Draws a trace from a preset's numbers; the same seed gives the same bytes.",
    .options = options,
    .words = "agentic rollout longdoc",
    .examples = "wavetank gen agentic -o agents.wtt\n"
                "wavetank gen rollout --preset long-tail --seed 7 -o rollout.wtt",
    .see_also = "docs/workloads.md",
};

int cmd_gen(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&gen_manual, &settings, run, argc, argv);
}
