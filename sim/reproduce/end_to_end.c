/* SPDX-License-Identifier: Apache-2.0
 *
 * What following the fastest layout gains over each fixed one: whole runs of the engine, a group of
 * eight ranks that serves requests from prompt to last token, with switches as Eq. 7 has them and
 * with free ones.
 */
#include <math.h>

#include "sim/base/units.h"
#include "sim/reproduce/platform.h"
#include "sim/reproduce/rows.h"
#include "sim/reproduce/traffic.h"

/* The fixed layouts come first. */
enum { SWITCHING = PLATFORM_LAYOUTS, SWITCHING_FREELY, WITHOUT_TP, WITHOUT_DOP, RUNS };

/* A margin of 1 is never reached: those two do not enter that layout, though all start in tp. */
static const char *const policies[RUNS] = {
    "tp",
    "cp",
    "dp",
    "dop",
    [SWITCHING] = "splash",
    [SWITCHING_FREELY] = "splash:mechanism=free",
    [WITHOUT_TP] = "splash:margin.cp-tp=1,margin.dp-tp=1,margin.dop-tp=1",
    [WITHOUT_DOP] = "splash:margin.tp-dop=1,margin.cp-dop=1,margin.dp-dop=1",
};

struct outcome {
    double makespan_s, mean_e2e_s;
    int64_t tokens, switches;
};

static int simulate(const struct platform *on, const struct traffic *t, const char *policy_name,
                    struct outcome *out, struct err *err)
{
    const struct engine_config config = {.token_budget = 8192,
                                         .max_running = 256,
                                         .page_tokens = 64,
                                         .replicas = 1,
                                         .prefix_cache = t->hash != NULL};
    struct engine_input in = {.cost = on->cost,
                              .request = t->request,
                              .n_requests = t->n,
                              .after = t->after,
                              .hash = t->hash,
                              .block_tokens = t->block_tokens,
                              .config = &config};
    struct policy policy;
    struct run_result result;
    if (policy_new(&policy, policy_name, on->layout, PLATFORM_LAYOUTS, err) < 0)
        return -1;
    in.policy = &policy;
    int rc = engine_run(&in, &result, err);
    policy_release(&policy);
    if (rc < 0)
        return -1;
    if (result.completed < t->n)
        rc = err_run(err, "reproduce: %s on %s under %s: %lld of %lld requests completed", t->name,
                     on->cluster_name, policy_name, (long long)result.completed, (long long)t->n);
    *out = (struct outcome){ps_to_s(result.makespan_ps), hist_mean(&result.e2e_ps) * 1e-12,
                            result.input_tokens + result.output_tokens, result.switches};
    run_result_release(&result);
    return rc;
}

/* Over the fixed layouts. */
static void show_gains(struct reproduction *r, const struct platform *on, const char *load,
                       const struct outcome *fixed, const struct outcome *splash,
                       const char *suffix)
{
    for (int l = 0; l < PLATFORM_LAYOUTS; l++)
        rows_figure(r, fixed[l].makespan_s / splash->makespan_s, NAN, true,
                    "%s.%s.throughput_over_%s%s", load, on->name, on->layout[l].name, suffix);
    for (int l = 0; l < PLATFORM_LAYOUTS; l++)
        rows_figure(r, fixed[l].mean_e2e_s / splash->mean_e2e_s, NAN, true, "%s.%s.e2e_over_%s%s",
                    load, on->name, on->layout[l].name, suffix);
}

static void show(struct reproduction *r, const struct platform *on, const char *load,
                 const struct outcome *o)
{
    const struct outcome *splash = &o[SWITCHING];
    rows_figure(r, (double)splash->tokens / splash->makespan_s / 1000, NAN, true, "%s.%s.ktok_s",
                load, on->name);
    rows_figure(r, (double)splash->switches, NAN, true, "%s.%s.switches", load, on->name);
    show_gains(r, on, load, o, splash, "");
    show_gains(r, on, load, o, &o[SWITCHING_FREELY], ".free");
    rows_figure(r, splash->makespan_s / o[WITHOUT_TP].makespan_s, NAN, true,
                "%s.%s.throughput_without_tp", load, on->name);
    rows_figure(r, splash->makespan_s / o[WITHOUT_DOP].makespan_s, NAN, true,
                "%s.%s.throughput_without_dop", load, on->name);
}

static int compare(struct reproduction *r, const struct platform *on, int kind, struct err *err)
{
    struct outcome outcome[RUNS];
    struct traffic t;
    int rc = 0;
    traffic_make(&t, kind);
    for (int run = 0; run < RUNS && rc == 0; run++)
        rc = simulate(on, &t, policies[run], &outcome[run], err);
    if (rc == 0)
        show(r, on, t.name, outcome);
    traffic_release(&t);
    return rc;
}

int reproduce_end_to_end(struct reproduction *r, struct err *err)
{
    int rc = 0;
    for (int i = 0; i < PLATFORMS && rc == 0; i++) {
        struct platform on;
        if (platform_load(&on, i, err) < 0)
            return -1;
        for (int kind = 0; kind < TRAFFIC_KINDS && rc == 0; kind++)
            rc = compare(r, &on, kind, err);
        platform_release(&on);
    }
    return rc;
}
