/* SPDX-License-Identifier: Apache-2.0
 *
 * What `wavetank whatif` answers: how the cases serve, what they cost, then for each question every
 * trial of its search and what came out. docs/whatif.md defines columns and keys.
 */
#ifndef SIM_REPORT_WHATIF_REPORT_H
#define SIM_REPORT_WHATIF_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "sim/study/bisection.h"
#include "sim/study/outcome.h"

enum whatif_question { FIND_MAX_RATE, FIND_MIN_GPUS, FIND_COUNT };
extern const char *const whatif_question_names[FIND_COUNT];

/* What a request may take; NAN: any time. */
struct whatif_limits {
    double ttft_s, tpot_s, e2e_s;
};

struct whatif_row {
    const char *name;
    const json_t *set; /* of a variation; NULL: the base */
    const char *trace, *model, *cluster, *policy, *slo;
    bool has_slo;
    struct whatif_limits limits;
    struct outcome_terms terms;
    struct outcome outcome;
    int64_t ranks;         /* GPUs of one group */
    double recorded_req_s; /* at rate 1; 0: all at once */
    json_t *scenario, *run;
    struct bisection_result found[FIND_COUNT];
};

struct whatif_report {
    const struct whatif_row *row;
    int n;
    bool asked[FIND_COUNT];
    double rate_step; /* trials of max-rate are at multiples of it */
    int64_t max_rate_steps, max_groups;
};

/* What a variation sets anew, "key value, key value", as the file has them; to be freed. */
char *whatif_set_text(const json_t *set);
/* What a search found, and two trials that speak against it (NULL: none do); to be freed. */
char *whatif_answer_text(const struct whatif_report *w, const struct whatif_row *row,
                         enum whatif_question q);
char *whatif_breach_text(const struct whatif_report *w, const struct whatif_row *row,
                         enum whatif_question q);

void whatif_print(const struct whatif_report *w, FILE *out);
/* The array of cases; a new reference. */
json_t *whatif_json(const struct whatif_report *w);

/* `at` steps as the rate that the decimal says, which sums of 0.1 would miss. */
double whatif_rate(double step, int64_t at);

#endif
