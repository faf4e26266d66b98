/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "sim/base/json.h"
#include "sim/report/whatif_report.h"

static void set(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, isnan(x) ? json_null() : json_num(x));
}

/* A rate, or a number of groups. */
static json_t *value_json(const struct whatif_report *w, enum whatif_question q, int64_t at)
{
    return q == FIND_MAX_RATE ? json_num(whatif_rate(w->rate_step, at)) : json_integer(at);
}

static json_t *trial_json(const struct whatif_report *w, enum whatif_question q,
                          const struct bisection_trial *t)
{
    json_t *o = json_object(), *edge = json_array();
    json_object_set_new(o, q == FIND_MAX_RATE ? "rate" : "groups", value_json(w, q, t->at));
    if (t->choice > 0)
        json_object_set_new(o, "prefill_groups", json_integer(t->choice));
    set(o, "slo_met_frac", t->score);
    json_object_set_new(o, "meets_slo", json_boolean(t->holds));
    json_array_append_new(edge, value_json(w, q, t->low));
    json_array_append_new(edge, value_json(w, q, t->high));
    json_object_set_new(o, "edge", edge);
    return o;
}

static json_t *finding_json(const struct whatif_report *w, const struct whatif_row *row,
                            enum whatif_question q)
{
    const struct bisection_result *found = &row->found[q];
    const struct bisection_trial *answer = &found->trial[found->answer];
    json_t *o = json_object(), *trials = json_array();
    bool none = found->end == BISECTION_NEVER;
    int64_t at = answer->at * (q == FIND_MIN_GPUS ? row->ranks : 1);
    json_object_set_new(o, q == FIND_MAX_RATE ? "rate" : "gpus",
                        none ? json_null() : value_json(w, q, at));
    if (!none && answer->choice > 0)
        json_object_set_new(o, "prefill_groups", json_integer(answer->choice));
    json_object_set_new(o, "end", json_string(bisection_end_names[found->end]));
    json_object_set_new(o, "monotone", json_boolean(bisection_is_monotone(found)));
    for (size_t i = 0; i < found->n; i++)
        json_array_append_new(trials, trial_json(w, q, &found->trial[i]));
    json_object_set_new(o, "trials", trials);
    return o;
}

static json_t *case_json(const struct whatif_report *w, const struct whatif_row *row)
{
    const struct outcome *outcome = &row->outcome;
    bool priced = row->terms.price_per_gpu_hour > 0;
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(row->name));
    json_object_set(o, "scenario", row->scenario);
    json_object_set_new(o, "gpus", json_integer(row->terms.gpus));
    json_object_set_new(o, "meets_slo",
                        row->has_slo ? json_boolean(outcome->meets_slo) : json_null());
    set(o, "slo_met_frac", row->has_slo ? outcome->slo_met_frac : NAN);
    set(o, "gpu_hours", outcome->gpu_hours);
    set(o, "price_per_m_output_tokens", priced ? outcome->price_per_m_output_tokens : NAN);
    set(o, "price_per_m_total_tokens", priced ? outcome->price_per_m_total_tokens : NAN);
    json_object_set(o, "run", row->run);
    if (w->asked[FIND_MAX_RATE])
        json_object_set_new(o, "max_rate", finding_json(w, row, FIND_MAX_RATE));
    if (w->asked[FIND_MIN_GPUS])
        json_object_set_new(o, "min_gpus", finding_json(w, row, FIND_MIN_GPUS));
    return o;
}

json_t *whatif_json(const struct whatif_report *w)
{
    json_t *cases = json_array();
    for (int i = 0; i < w->n; i++)
        json_array_append_new(cases, case_json(w, &w->row[i]));
    return cases;
}
