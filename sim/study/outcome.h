/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run is to who operates it: whether it keeps what was promised, and what it costs. All GPUs
 * are paid from the first arrival to the last finish, busy or not.
 */
#ifndef SIM_STUDY_OUTCOME_H
#define SIM_STUDY_OUTCOME_H

#include "sim/engine/engine.h"

struct outcome_terms {
    double slo_attained_frac; /* of all requests that must be within the limits */
    double price_per_gpu_hour;
    int64_t gpus;
};

struct outcome {
    double slo_met_frac; /* of all requests, rejected and cancelled ones too */
    bool meets_slo;
    double total_tok_s, output_tok_s;
    double ttft_p99_s, tpot_p99_s, e2e_p99_s; /* of completed requests; NAN without any */
    double gpu_hours;
    double price_per_m_output_tokens, price_per_m_total_tokens; /* NAN where no token was served */
};

struct outcome outcome_of(const struct run_result *r, const struct outcome_terms *terms);

#endif
