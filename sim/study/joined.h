/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan's predictions beside a replay's measurements, joined line by line. The plan says what was
 * predicted (the measurement repeats what its own plan said, which may be older); the measurement
 * says what was measured, at the median of the repeats.
 */
#ifndef SIM_STUDY_JOINED_H
#define SIM_STUDY_JOINED_H

#include "sim/cost/transition.h"
#include "sim/plan/plan.h"

enum step_kind {
    STEP_STEADY, /* no switch */
    STEP_READY,  /* target-ready: a switch by `free`, over before the clock starts */
    STEP_SWITCH, /* a switch by another mechanism, inside the step */
    STEP_KIND_COUNT
};

/* Parts of a step. What the four stages leave over is the rest. */
enum step_part { PART_PROJ, PART_ATTN, PART_EXCHANGE, PART_FFN, PART_REST, PART_COUNT };

extern const char *const step_part_names[PART_COUNT]; /* "proj", ..., "rest" */

struct joined_step {
    const struct plan_step *at; /* the plan's line: what ran */
    const struct plan_times *pred, *meas;
    int64_t first_ns; /* measured, of the first of the repeats; 0: not said */
    enum step_kind kind;
    int layout, from;         /* in struct joined's list; from is -1 without a switch */
    enum mechanism mechanism; /* of the switch */
    double error;             /* predicted / measured - 1 of step_ns */
};

struct joined {
    struct joined_step *step;
    int n;
    int layers;          /* of the plan */
    int unmatched;       /* steps of the plan behind the last measured one */
    const char **layout; /* names, in order of appearance */
    int n_layouts;
    double check_max_error;
};

/* Join. The measurement must be of the plan's model, cluster, ranks and layers, and its lines the
 * plan's in step, layout, switch and rows; it may end earlier. Refuses, naming the step and what
 * differs, anything else, and lines without a measurement. Borrows both plans; the paths are for
 * messages. */
int joined_init(struct joined *j, const struct plan *plan, const char *plan_path,
                const struct plan *measured, const char *measured_path, struct err *err);
void joined_release(struct joined *j);

/* Times by part. They add up to step_ns when no switch is inside; the rest may be negative, since
 * each measured stage is the slowest rank's. */
void joined_parts(const struct plan_times *t, int64_t part_ns[PART_COUNT]);

/* The size of a step's batch. */
struct step_shape {
    int requests;
    int64_t rows, prefill_rows; /* query rows, and those of chunks (q > 1) */
    int64_t mean_ctx_tokens, max_ctx_tokens;
};

struct step_shape joined_shape(const struct plan_step *s);

/* Whether two steps run the same requests of the same owners with the same query rows, and contexts
 * that differ, all requests taken together, by at most a share of b's or 16 tokens a request. */
bool joined_same_batch(const struct plan_step *a, const struct plan_step *b, double context_frac);

/* Whether step i goes on, without a switch, in the layout that the step before it switched to. */
bool joined_is_settled(const struct joined *j, int i);

#endif
