/* SPDX-License-Identifier: Apache-2.0
 *
 * What each choice bought: sets of families over one base, and how that changes with the machine
 * and the context.
 */
#ifndef SIM_PARETO_GAIN_H
#define SIM_PARETO_GAIN_H

#include "sim/pareto/search.h"

/* A set over a base. The base's own mappings stay in the set: a choice more never costs. */
struct gain {
    struct ratio_point interactivity, concurrency; /* the largest; 0 without a common range */
    double interactivity_median, concurrency_median;
    double fastest_ratio; /* of the highest tokens/s/user each reaches; 0 without points */
    double densest_ratio; /* of the highest tokens/s/GPU */
};

struct gain gain_of(const struct frontier *f, const struct frontier *base);

enum gain_step { GAIN_KVP, GAIN_FFN, GAIN_BOTH, GAIN_HOPB, GAIN_STEPS };

extern const char *const gain_step_names[GAIN_STEPS];

/* Helix taken apart, over tp and pp, whose attention and FFN have one width: KVP alone (kvp), the
 * FFN on all GPUs alone (ep or dpa), both in lockstep (helix, hopb = 1), and with HOP-B. */
void gain_decompose(const struct search_result *r, struct gain step[GAIN_STEPS]);

/* Helix over a baseline for one machine and context. */
struct sensitivity {
    const char *of; /* "link_gb_per_s", "gpus" or "context_tokens" */
    double value;
    struct gain gain;
};

enum { SENSITIVITY_STEPS = 4, SENSITIVITIES = 3 * SENSITIVITY_STEPS };

/* What is varied, halved or quartered SENSITIVITY_STEPS - 1 times, from what `machine`, max_gpus
 * and the context say; powers of two of GPUs at most that many. */
struct sensitivity_base {
    struct decode_machine machine;
    const struct searchers *by;
    int max_gpus;
    int64_t context_tokens;
    unsigned baseline; /* families */
    bool hopb;
};

/* Every process must call it; rank 0 has the result. */
void sensitivity_sweep(const struct sensitivity_base *b, struct sensitivity out[SENSITIVITIES]);

#endif
