/* SPDX-License-Identifier: Apache-2.0
 *
 * What a simulated run is made of: the options that describe it (docs/formats.md, Scenario), and
 * the machine, trace and policies that they name, loaded and run. Whoever simulates a trace from
 * options goes through here.
 */
#ifndef SIM_CMD_SCENARIO_H
#define SIM_CMD_SCENARIO_H

#include "sim/cmd/lineup.h"
#include "traces/trace.h"

struct scenario_options {
    struct setup_options setup;
    struct opt_list policies;
    const char *prefill_policy, *slo;
    struct trace_reading reading; /* its seed is that of every draw */
    struct trace_select select;
    struct engine_config engine;
};

/* Rows for a command's option table, those that no part has; `base` is the offset of a struct
 * scenario_options. The rows of setup, reading, select and engine go along. */
/* clang-format off */
#define SCENARIO_OPTS(base)                                                                        \
    {"policy", 0, OPT_LIST, (base) + offsetof(struct scenario_options, policies),                  \
     "POLICY", NULL, 0, 0, NULL,                                                                   \
     "policy to run, as in fixed:dp or splash:margin=0.1 (wavetank list policies); without it, "   \
     "every fixed layout, splash and best-fixed"},                                                 \
    {"prefill-policy", 0, OPT_STR, (base) + offsetof(struct scenario_options, prefill_policy),     \
     "POLICY", NULL, 0, 0, NULL, "policy of the prefill replicas (without it: each run's own)"},   \
    {"seed", 0, OPT_I64, (base) + offsetof(struct scenario_options, reading.seed),                 \
     "N", "0", 0, 9e18, NULL, "seed of every random draw"},                                        \
    {"slo", 0, OPT_STR, (base) + offsetof(struct scenario_options, slo), "LIMITS", NULL, 0, 0,     \
     NULL, "what counts as goodput: ttft=2s,tpot=50ms,e2e=60s or some of them"}
/* clang-format on */

struct scenario {
    const struct scenario_options *options;
    bool quiet; /* no warnings: of a run like one that has warned */
    struct setup setup;
    struct trace trace;
    struct engine_request *request;
    struct lineup lineup;
};

/* Refuse options that contradict each other, and read `slo` into the engine's limits. Call it once,
 * before the scenario is loaded. */
int scenario_check(struct scenario_options *o, struct err *err);
/* Of checked options: is there a limit at all? */
bool scenario_has_slo(const struct scenario_options *o);

/* The parts of a zeroed scenario (`quiet` may be set), in this order. Options are borrowed; the
 * scenario must not be moved afterwards. Release it in any case. */
int scenario_load_machine(struct scenario *s, const struct scenario_options *o, struct err *err);
int scenario_load_trace(struct scenario *s, const char *path, struct err *err);
/* Run the lineup; the observer may be NULL. */
int scenario_run(struct scenario *s, const struct engine_observer *observer, struct err *err);
void scenario_release(struct scenario *s);

#endif
