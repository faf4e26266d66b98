/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/result_json.h"

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/report/pools.h"

static void set(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, json_num(value));
}

static void set_int(json_t *o, const char *key, int64_t value)
{
    json_object_set_new(o, key, json_integer(value));
}

static json_t *quantiles(const struct hist *h)
{
    json_t *o = json_object();
    set(o, "mean", hist_mean(h) / (double)PS_PER_S);
    set(o, "p50", ps_to_s(hist_quantile(h, 0.5)));
    set(o, "p90", ps_to_s(hist_quantile(h, 0.9)));
    set(o, "p99", ps_to_s(hist_quantile(h, 0.99)));
    return o;
}

static json_t *layout_shares(const struct run_result *r, const struct layout *layouts, int n)
{
    json_t *o = json_object();
    for (int l = 0; l < n; l++)
        set(o, layouts[l].name, r->busy_ps > 0 ? (double)r->layout_ps[l] / (double)r->busy_ps : 0);
    return o;
}

static double per_second(int64_t count, int64_t ps)
{
    return ps > 0 ? (double)count / ps_to_s(ps) : 0;
}

json_t *result_json(const char *policy, const struct run_result *r, const struct layout *layouts,
                    int n_layouts)
{
    json_t *o = json_object();
    json_object_set_new(o, "policy", json_string(policy));
    set_int(o, "requests", r->requests);
    set_int(o, "completed", r->completed);
    set_int(o, "rejected", r->rejected);
    set_int(o, "cancelled", r->cancelled);
    set_int(o, "preemptions", r->preemptions);
    set(o, "makespan_s", ps_to_s(r->makespan_ps));
    set(o, "total_tok_s", per_second(r->input_tokens + r->output_tokens, r->makespan_ps));
    set(o, "output_tok_s", per_second(r->output_tokens, r->makespan_ps));
    set(o, "goodput_req_s", per_second(r->slo_met, r->makespan_ps));
    set(o, "goodput_tok_s", per_second(r->slo_output_tokens, r->makespan_ps));
    json_object_set_new(o, "queued_s", quantiles(&r->queued_ps));
    json_object_set_new(o, "ttft_s", quantiles(&r->ttft_ps));
    json_object_set_new(o, "tpot_s", quantiles(&r->tpot_ps));
    json_object_set_new(o, "e2e_s", quantiles(&r->e2e_ps));
    set_int(o, "steps", r->steps);
    set_int(o, "events", r->events);
    set_int(o, "switches", r->switches);
    set_int(o, "switches_refused", r->switches_refused);
    set(o, "switch_exposed_s", ps_to_s(r->switch_exposed_ps));
    json_object_set_new(o, "layout_time_frac", layout_shares(r, layouts, n_layouts));
    set(o, "kv_peak_frac", r->kv_peak_frac);
    set(o, "prefix_hit_frac",
        r->input_tokens > 0 ? (double)r->cached_tokens / (double)r->input_tokens : 0);
    set_int(o, "prefix_cached_tokens", r->cached_tokens);
    set_int(o, "prefix_block_tokens", r->cache_block_tokens);
    set_int(o, "prefix_evicted_blocks", r->cache_evictions);
    if (pools_are_two(r))
        pools_add_json(o, r, layouts, n_layouts);
    if (r->forks + r->searches_cut > 0) {
        set_int(o, "forks", r->forks);
        set_int(o, "searches_cut", r->searches_cut);
    }
    set(o, "sim_wall_s", (double)r->wall_ns * 1e-9);
    return o;
}

void result_json_write(const json_t *document, FILE *out)
{
    json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
}
