/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cmd/load.h"

static int check_pools(const struct scenario_options *o, struct err *err)
{
    if (o->prefill_policy == NULL)
        return 0;
    if (o->engine.prefill_replicas == 0)
        return err_set(err, "--prefill-policy: needs --prefill-replicas");
    if (strcmp(o->prefill_policy, "best-fixed") == 0)
        return err_set(err, "--prefill-policy: best-fixed is a choice among runs; name a policy");
    return 0;
}

int scenario_check(struct scenario_options *o, struct err *err)
{
    if (o->slo != NULL && load_slo(&o->engine, o->slo, err) < 0)
        return -1;
    return engine_config_check(&o->engine, err) < 0 ? -1 : check_pools(o, err);
}

bool scenario_has_slo(const struct scenario_options *o)
{
    const struct engine_config *engine = &o->engine;
    return engine->slo_ttft_ps > 0 || engine->slo_tpot_ps > 0 || engine->slo_e2e_ps > 0;
}

static bool has_room(const struct scenario *s, int layout)
{
    return cost_capacity(s->setup.cost, layout)->pages > 0;
}

/* Room for KV is given to layouts that have any: say which do not. */
static int check_kv(const struct scenario *s, struct err *err)
{
    int n_fit = 0;
    if (engine_config_pages(&s->options->engine) == 0)
        return 0;
    for (int l = 0; l < s->setup.n_layouts; l++)
        n_fit += has_room(s, l);
    if (n_fit == 0)
        return err_set(err, "--kv-tokens, --kv-blocks: weights leave no memory for KV in any layout"
                            " (\"wavetank explain\" shows what they take)");
    for (int l = 0; l < s->setup.n_layouts; l++)
        if (!has_room(s, l) && !s->quiet)
            fprintf(stderr,
                    "wavetank: --kv-tokens, --kv-blocks: layout %s keeps no room: its weights "
                    "leave no memory for KV\n",
                    s->setup.layout[l].name);
    return 0;
}

int scenario_load_machine(struct scenario *s, const struct scenario_options *o, struct err *err)
{
    s->options = o;
    if (setup_load(&s->setup, &o->setup, o->engine.page_tokens, err) < 0 || check_kv(s, err) < 0)
        return -1;
    return lineup_init(&s->lineup, &s->setup, &o->policies, o->prefill_policy, err);
}

int scenario_load_trace(struct scenario *s, const char *path, struct err *err)
{
    uint64_t seed = (uint64_t)s->options->reading.seed;
    if (trace_load(&s->trace, path, &s->options->reading, err) < 0)
        return -1;
    if (!s->quiet)
        trace_warn(&s->trace, stderr);
    if (trace_select(&s->trace, &s->options->select, seed, err) < 0)
        return -1;
    s->request = load_requests(&s->trace);
    return load_check(&s->trace, &s->options->engine, &s->setup.model, err);
}

int scenario_run(struct scenario *s, const struct engine_observer *observer, struct err *err)
{
    struct engine_input input = load_input(&s->trace, s->request);
    input.config = &s->options->engine;
    input.observer = observer;
    return lineup_run(&s->lineup, &input, err);
}

void scenario_release(struct scenario *s)
{
    lineup_release(&s->lineup);
    free(s->request);
    trace_release(&s->trace);
    setup_release(&s->setup);
}
