/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the steps of a run as a plan: all of them, a range, or those around each switch, of which
 * it keeps the last few at hand until it knows whether a switch follows.
 */
#ifndef SIM_CMD_PLAN_RECORDER_H
#define SIM_CMD_PLAN_RECORDER_H

#include <stdio.h>

#include "sim/cmd/setup.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"

struct plan_options {
    const char *steps;       /* "A:B": steps A up to but without B; NULL: all */
    int64_t around_switches; /* so many before and after each switch; -1: not asked for */
};

/* Rows for a command's option table; `base` is the offset of a struct plan_options. */
/* clang-format off */
#define PLAN_OPTS(base)                                                                            \
    {"plan-steps", 0, OPT_STR, (base) + offsetof(struct plan_options, steps),                      \
     "A:B", NULL, 0, 0, NULL, "plan steps A to B - 1 only"},                                       \
    {"plan-around-switches", 0, OPT_I64, (base) + offsetof(struct plan_options, around_switches),  \
     "N", "-1", -1, 10000, NULL, "plan N steps before and after each switch only (-1: all)"}
/* clang-format on */

struct plan_recorder {
    const struct setup *setup;
    FILE *out;
    int64_t first, end;       /* range of steps, end excluded */
    int64_t around;           /* steps on both sides of a switch, or -1 */
    int64_t due;              /* steps still to write after the last switch */
    struct plan_step *recent; /* ring of the last `around` steps that were not written */
    int64_t n_recent, next;
    struct plan_step current;
    int64_t written;
};

int plan_recorder_init(struct plan_recorder *p, const struct plan_options *o, struct err *err);
void plan_recorder_release(struct plan_recorder *p);

/* Write the header and take steps from now on. Both arguments are borrowed. */
void plan_recorder_begin(struct plan_recorder *p, const struct setup *setup, uint64_t seed,
                         FILE *out);
/* An engine_observer's step(); `recorder` is the struct plan_recorder. */
void plan_recorder_step(void *recorder, const struct step_record *r);

#endif
