/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/outcome.h"

#include <math.h>

#include "sim/base/units.h"

static double ratio(double a, double b, double none)
{
    return b > 0 ? a / b : none;
}

static double tail_s(const struct hist *h)
{
    return h->n > 0 ? ps_to_s(hist_quantile(h, 0.99)) : NAN;
}

struct outcome outcome_of(const struct run_result *r, const struct outcome_terms *terms)
{
    double output = (double)r->output_tokens, total = output + (double)r->input_tokens;
    double span_s = ps_to_s(r->makespan_ps);
    double gpu_hours = (double)terms->gpus * span_s / 3600;
    double price = gpu_hours * terms->price_per_gpu_hour;
    double met_frac = ratio((double)r->slo_met, (double)r->requests, 0);
    return (struct outcome){
        .slo_met_frac = met_frac,
        .meets_slo = met_frac >= terms->slo_attained_frac,
        .total_tok_s = ratio(total, span_s, 0),
        .output_tok_s = ratio(output, span_s, 0),
        .ttft_p99_s = tail_s(&r->ttft_ps),
        .tpot_p99_s = tail_s(&r->tpot_ps),
        .e2e_p99_s = tail_s(&r->e2e_ps),
        .gpu_hours = gpu_hours,
        .price_per_m_output_tokens = ratio(price, output * 1e-6, NAN),
        .price_per_m_total_tokens = ratio(price, total * 1e-6, NAN),
    };
}
