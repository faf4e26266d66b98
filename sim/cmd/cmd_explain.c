/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank explain: one batch under every layout, and the switches between them.
 */
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/setup.h"
#include "sim/report/explanation.h"
#include "sim/report/result_json.h"

/* The last three keep a step's time within what the clock can count. */
enum {
    PREFILL_CHUNK_TOKENS = 8192,
    REQUESTS_MAX = 1 << 16,
    CONTEXT_MAX_TOKENS = 1 << 24,
    ROWS_MAX = 1 << 20,
};

enum phase { PHASE_DECODE, PHASE_PREFILL };

struct settings {
    struct setup_options setup;
    int64_t batch, context, q, page_tokens;
    int phase;
    const char *json;
};

#define FIELD(name) offsetof(struct settings, name)

static const struct opt options[] = {
    SETUP_MACHINE_OPTS(FIELD(setup)),
    SETUP_LAYOUTS_OPT(FIELD(setup)),
    {"batch", 0, OPT_I64, FIELD(batch), "B", "1", 1, REQUESTS_MAX, NULL,
     "requests in the batch, all alike"},
    {"context", 0, OPT_TOKENS, FIELD(context), "S", NULL, 1, CONTEXT_MAX_TOKENS, NULL,
     "tokens of context of each, as in 64K"},
    {"phase", 0, OPT_ENUM, FIELD(phase), "PHASE", "decode", 0, 0, "decode|prefill",
     "what the step does"},
    {"q", 0, OPT_TOKENS, FIELD(q), "N", NULL, 1, ROWS_MAX, NULL,
     "query rows of each request in the step; without it 1 in decode and up to 8192 in prefill"},
    {"page-tokens", 0, OPT_I64, FIELD(page_tokens), "N", "64", 1, 1 << 20, NULL,
     "tokens per KV page"},
    {"json", 0, OPT_STR, FIELD(json), "FILE", NULL, 0, 0, NULL,
     "write the result as JSON (\"-\": standard output, without the tables)"},
    {0},
};

static int check(struct settings *s, struct err *err)
{
    if (s->context == 0)
        return err_set(err, "--context: missing; give it as in --context 64K");
    if (s->q == 0 && s->phase == PHASE_DECODE)
        s->q = 1;
    else if (s->q == 0)
        s->q = s->context < PREFILL_CHUNK_TOKENS ? s->context : PREFILL_CHUNK_TOKENS;
    if (s->q > s->context)
        return err_set(err, "--q: %lld query rows are more than the context of %lld tokens",
                       (long long)s->q, (long long)s->context);
    if (s->batch * s->q > ROWS_MAX)
        return err_set(err, "--batch, --q: %lld x %lld query rows are more than a step's %d",
                       (long long)s->batch, (long long)s->q, ROWS_MAX);
    return 0;
}

static int write_json(const struct explanation *e, const char *path, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, path, err) < 0)
        return -1;
    json_t *document = explanation_json(e);
    result_json_write(document, o.f);
    json_decref(document);
    return outfile_commit(&o, err);
}

static int print(const struct explanation *e, const struct setup *setup, struct err *err)
{
    struct outfile o;
    char limit[32];
    int64_t max_tokens = setup->model.max_context_tokens;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    setup_print(setup, o.f);
    explanation_print(e, o.f);
    if (e->batch.ctx_tokens > max_tokens)
        fprintf(o.f, "\nNote: %s allows contexts of %s tokens at most.\n", setup->model.name,
                units_count(max_tokens, limit, sizeof limit));
    return outfile_commit(&o, err);
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct settings *s = settings;
    (void)args;
    struct setup setup;
    struct explanation e;
    int rc = 0;
    if (n_args != 0)
        return err_set(err, "explain: takes options only (see --help)");
    if (check(s, err) < 0 || setup_load(&setup, &s->setup, s->page_tokens, err) < 0)
        return -1;
    struct explained_batch batch = {
        .requests = s->batch,
        .ctx_tokens = s->context,
        .q = s->q,
        .decode = s->phase == PHASE_DECODE,
        .page_tokens = s->page_tokens,
    };
    explanation_make(&e, setup.cost, &batch);
    if (s->json != NULL)
        rc = write_json(&e, s->json, err);
    if (rc == 0 && (s->json == NULL || strcmp(s->json, "-") != 0))
        rc = print(&e, &setup, err);
    setup_release(&setup);
    return rc;
}

const struct manual explain_manual = {
    .name = "explain",
    .what = "show one batch: memory, step time and switches by layout",
    .synopsis = "explain --model NAME --cluster NAME --context S [option]...",
    .text = "Shows one batch under every layout: memory of a rank, whether it fits, the\n"
            "predicted time of a step by stage, and what switching would move and cost.",
    .options = options,
    .examples =
        "wavetank explain --model deepseek-v3.2 --cluster b200x8 \\\n    --batch 16 --context 64K",
    .see_also = "docs/model.md",
};

int cmd_explain(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&explain_manual, &settings, run, argc, argv);
}
