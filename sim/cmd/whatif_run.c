/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/whatif_run.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/report/result_json.h"

static int load_and_run(struct scenario *s, const struct whatif_options *o, struct err *err)
{
    if (scenario_load_machine(s, &o->run, err) < 0 || scenario_load_trace(s, o->trace, err) < 0)
        return -1;
    return scenario_run(s, NULL, err);
}

static const struct run_result *result_of(const struct scenario *s)
{
    return &s->lineup.run[0].result;
}

static struct outcome_terms terms_of(const struct whatif_options *o, const struct scenario *s)
{
    const struct engine_config *engine = &o->run.engine;
    return (struct outcome_terms){
        .slo_attained_frac = o->slo_attained_frac,
        .price_per_gpu_hour = o->price_per_gpu_hour,
        .gpus = s->setup.cluster.ranks * (engine->replicas + engine->prefill_replicas),
    };
}

static double recorded_req_s(const struct whatif_options *o, const struct trace *t)
{
    double span_s = ps_to_s(t->last_ps) * o->run.select.rate;
    return span_s > 0 ? (double)t->n / span_s : 0;
}

static double limit_s(int64_t ps)
{
    return ps > 0 ? ps_to_s(ps) : NAN;
}

int whatif_answer(const struct whatif_case *c, struct whatif_row *row, struct err *err)
{
    const struct whatif_options *o = &c->options;
    struct scenario s = {0};
    int rc = load_and_run(&s, o, err);
    if (rc == 0) {
        const char *policy = s.lineup.run[0].policy;
        *row = (struct whatif_row){
            .name = c->name,
            .set = c->set,
            .trace = o->trace,
            .model = o->run.setup.model,
            .cluster = o->run.setup.cluster,
            .policy = o->run.policies.item[0],
            .slo = o->run.slo,
            .has_slo = scenario_has_slo(&o->run),
            .limits = {limit_s(o->run.engine.slo_ttft_ps), limit_s(o->run.engine.slo_tpot_ps),
                       limit_s(o->run.engine.slo_e2e_ps)},
            .terms = terms_of(o, &s),
            .ranks = s.setup.cluster.ranks,
            .recorded_req_s = recorded_req_s(o, &s.trace),
            .scenario = whatif_options_dump(o),
            .run = result_json(policy, result_of(&s), s.setup.layout, s.setup.n_layouts),
        };
        row->outcome = outcome_of(result_of(&s), &row->terms);
    }
    scenario_release(&s);
    return rc;
}

void whatif_row_release(struct whatif_row *row)
{
    json_decref(row->scenario);
    json_decref(row->run);
    for (int q = 0; q < FIND_COUNT; q++)
        bisection_result_release(&row->found[q]);
}

struct searching {
    struct whatif_options options; /* a copy, whose lists are the case's */
    double rate_step;
};

/* The options as they are now. */
static int try_once(const struct searching *search, struct bisection_trial *t, struct err *err)
{
    struct scenario s = {.quiet = true};
    int rc = load_and_run(&s, &search->options, err);
    if (rc == 0) {
        struct outcome_terms terms = terms_of(&search->options, &s);
        struct outcome outcome = outcome_of(result_of(&s), &terms);
        t->holds = outcome.meets_slo;
        t->score = outcome.slo_met_frac;
    }
    scenario_release(&s);
    return rc;
}

static int try_rate(void *context, struct bisection_trial *t, struct err *err)
{
    struct searching *search = context;
    search->options.run.select.rate = whatif_rate(search->rate_step, t->at);
    return try_once(search, t, err);
}

/* One pool of so many groups. */
static int try_groups(void *context, struct bisection_trial *t, struct err *err)
{
    struct searching *search = context;
    search->options.run.engine.replicas = t->at;
    return try_once(search, t, err);
}

/* Every split of so many groups into prefill and decode; the one with most requests within the SLO
 * counts. */
static int try_splits(void *context, struct bisection_trial *t, struct err *err)
{
    struct searching *search = context;
    struct engine_config *engine = &search->options.run.engine;
    for (int64_t prefill = 1; prefill < t->at; prefill++) {
        struct bisection_trial split = {.choice = prefill};
        engine->prefill_replicas = prefill;
        engine->replicas = t->at - prefill;
        if (try_once(search, &split, err) < 0)
            return -1;
        if (t->choice == 0 || split.score > t->score) {
            t->choice = prefill;
            t->holds = split.holds;
            t->score = split.score;
        }
    }
    return 0;
}

int whatif_find(const struct whatif_case *c, enum whatif_question question,
                const struct whatif_report *report, int extra, struct bisection_result *found,
                struct err *err)
{
    struct searching searching = {.options = c->options, .rate_step = report->rate_step};
    bool splits = c->options.run.engine.prefill_replicas > 0;
    struct bisection max_rate = {.low = 1,
                                 .high = report->max_rate_steps,
                                 .extra = extra,
                                 .try = try_rate,
                                 .context = &searching};
    struct bisection min_gpus = {.low = splits ? 2 : 1,
                                 .high = report->max_groups,
                                 .rising = true,
                                 .extra = extra,
                                 .try = splits ? try_splits : try_groups,
                                 .context = &searching};
    return bisection_run(question == FIND_MAX_RATE ? &max_rate : &min_gpus, found, err);
}
