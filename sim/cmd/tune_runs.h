/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of a study: what options a setting has, how a worker makes a run of it, and what the
 * store knows it by.
 */
#ifndef SIM_CMD_TUNE_RUNS_H
#define SIM_CMD_TUNE_RUNS_H

#include "sim/cmd/machine.h"
#include "sim/cmd/tune_draws.h"

/* What a grid may vary, besides the policy's own options. */
struct run_settings {
    struct setup_options setup;
    const char *policy, *prefill_policy, *slo;
    struct engine_config engine;
};

/* Rows for an option table, between those of setup and of engine; `base` is the offset of a struct
 * run_settings. */
/* clang-format off */
#define RUN_OPTS(base)                                                                             \
    {"policy", 0, OPT_STR, (base) + offsetof(struct run_settings, policy),                         \
     "POLICY", "splash", 0, 0, NULL, "the policy to tune, with what the grid leaves alone"},       \
    {"prefill-policy", 0, OPT_STR, (base) + offsetof(struct run_settings, prefill_policy),         \
     "POLICY", NULL, 0, 0, NULL, "policy of the prefill replicas (without it: the same)"},         \
    {"slo", 0, OPT_STR, (base) + offsetof(struct run_settings, slo),                               \
     "LIMITS", NULL, 0, 0, NULL, "what counts as goodput: ttft=2s,tpot=50ms,e2e=60s or some"}
/* clang-format on */

/* All options of a struct run_settings. */
extern const struct opt tune_run_options[];

/* All that runs are made of; read by every worker, and borrowed all. */
struct tune_runs {
    const struct run_settings *base;
    const struct draw_options *draw_options;
    const struct draws *draws;
    const struct study *study;
};

/* A setting, with the policy's text in one spelling. */
struct run_setting {
    struct run_settings s;
    char *policy;
};

int run_setting_make(struct run_setting *r, const struct tune_runs *t, int64_t setting,
                     struct err *err);
void run_setting_release(struct run_setting *r);
/* The options of a setting that are not the policy's, as typed: " --max-running 64"; to be freed.
 */
char *run_setting_options(const struct tune_runs *t, int64_t setting);

/* Refuse a grid with a value that no run can have. */
int tune_runs_check(const struct tune_runs *t, struct err *err);

/* For struct team_task; the context is a struct tune_runs. */
void *tune_worker_new(const void *context);
void tune_worker_free(void *worker);
void tune_worker_run(void *worker, int64_t job, struct outcome *out);

#endif
