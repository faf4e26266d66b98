/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies that one command compares, each run once: entries in the order asked for, and
 * best-fixed, which is no run of its own but the best of the fixed ones in hindsight.
 */
#ifndef SIM_CMD_LINEUP_H
#define SIM_CMD_LINEUP_H

#include "sim/cmd/setup.h"
#include "sim/engine/engine.h"
#include "sim/report/summary.h"

struct run {
    char *policy;     /* as policy_new() takes it */
    int fixed_layout; /* or -1 */
    bool looks_ahead;
    bool done;
    struct run_result result; /* once done */
};

struct lineup {
    const struct setup *setup;
    const char *prefill_policy; /* of every run's groups that only run prompts; NULL: the run's */
    const struct policy_kind *prefill_kind; /* its kind, or NULL */
    struct run *run;                        /* no two of the same policy */
    int n_runs, running;                    /* how many; the one in progress */
    size_t cap_runs;
    struct entry {
        char *name; /* the run's policy; best-fixed:<layout> once that is known */
        int run;    /* -1 for best-fixed until all have run */
        bool in_hindsight;
    } * entry;
    int n;
    size_t cap;
};

/* Check the policies and list their runs. Without any: every fixed layout, splash and best-fixed.
 * `setup` and `prefill_policy`, which may be NULL, are borrowed. Release it in any case. */
int lineup_init(struct lineup *l, const struct setup *setup, const struct opt_list *policies,
                const char *prefill_policy, struct err *err);
void lineup_release(struct lineup *l);

/* One run, without a progress bar but input's own; fills in input's cost and policies.
 * `prefill_policy` may be NULL: the same. */
int lineup_run_one(const struct setup *setup, const char *policy, const char *prefill_policy,
                   struct engine_input input, struct run_result *out, struct err *err);

/* Run every policy once on the same input, each with a progress bar. The lineup fills in cost,
 * policies and progress. */
int lineup_run(struct lineup *l, const struct engine_input *input, struct err *err);

/* The entries' results, in order, for reports; `row` has room for l->n of them. Names and results
 * are borrowed. */
void lineup_rows(const struct lineup *l, struct summary_row *row);

#endif
