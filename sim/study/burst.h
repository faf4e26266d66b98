/* SPDX-License-Identifier: Apache-2.0
 *
 * Bursts of equal prompts through two pools: a prefill pool in one layout, then a decode pool that
 * all layouts share. Time = prefill + the last request's stay in the decode pool, whose step time
 * grows with the requests beside it. Prefill is the cost model's, with constants fitted to measured
 * bursts; docs/fidelity.md has what they come to on the tables of the SPLASH paper.
 */
#ifndef SIM_STUDY_BURST_H
#define SIM_STUDY_BURST_H

#include <stdbool.h>

enum { BURST_LAYOUTS = 4 };

/* What a fit finds. Times are linear in all of them, given how many requests decode at once. */
enum burst_constant {
    BURST_DECODE, /* seconds of a request alone in the decode pool */
    BURST_BESIDE, /* and for each that decodes beside it all the time, itself among them */
    BURST_SPREAD, /* seconds of a burst whose KV is spread over the ranks of its prefill pool */
    BURST_ATTN,   /* attention of prefill over the cost model's */
    BURST_START,  /* by layout: all else of prefill over the cost model's, at the start */
    BURST_SUSTAINED = BURST_START + BURST_LAYOUTS, /* and after that */
    BURST_CONSTANTS = BURST_SUSTAINED + BURST_LAYOUTS
};

struct burst {
    int shape, layout, batch;
    int abreast;           /* prompts that are prefilled side by side: by owners, else 1 */
    bool spread;           /* no rank of the prefill pool holds all KV */
    double input_tokens;   /* of all prompts */
    double attn_s, rest_s; /* of the whole prefill by the cost model */
    double s;              /* measured; not used to predict */
};

struct burst_model {
    double constant[BURST_CONSTANTS];
    double start_tokens; /* how many of a burst's are prefilled at its start */
};

/* Requests in the decode pool while the last one is, itself among them, in the mean over its stay
 * of `alone_s` + `beside_s` x that many seconds. Prefill ends at even distances in groups. */
double burst_beside(const struct burst *b, double prefill_s, double alone_s, double beside_s);

double burst_predict_s(const struct burst_model *m, const struct burst *b);

/* Least absolute relative error of time over all bursts but those of one shape (none: -1). */
void burst_fit(struct burst_model *m, const struct burst *b, int n, int without_shape);

#endif
