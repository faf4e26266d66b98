/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: the contract between simulator and replay. JSON Lines; line 1 is a header, then one
 * line per step. Saving what was loaded gives the same bytes. docs/formats.md states every key.
 */
#ifndef SIM_PLAN_PLAN_H
#define SIM_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/file.h"

enum { PLAN_VERSION = 1, PLAN_NAME_MAX = 64, PLAN_ROWS_MAX = 1 << 20 };

/* Where a measured plan comes from. Empty or 0: not said. */
struct plan_origin {
    char device[96];
    char date[16]; /* YYYY-MM-DD */
    char transport[64];
    char command[256];
    int repeats; /* of each step that does not switch */
};

struct plan_header {
    char model[PLAN_NAME_MAX], cluster[PLAN_NAME_MAX];
    int ranks, layers;
    uint64_t seed;
    struct plan_origin origin; /* of a measured plan only */
};

struct plan_row {
    int64_t req;
    int owner;
    int64_t ctx_tokens; /* "ctx": live context, this step's rows included */
    int64_t q;          /* query rows */
};

struct plan_times {
    int64_t step_ns, proj_ns, attn_ns, exchange_ns, ffn_ns, switch_exposed_ns;
    int64_t switch_first_ns; /* of the exposed, what comes before the first layer; 0: not said */
};

struct plan_step {
    int64_t step;  /* index in the run, ascending */
    int64_t at_ns; /* start */
    char layout[PLAN_NAME_MAX];
    char from[PLAN_NAME_MAX];      /* "" unless this step switches */
    char mechanism[PLAN_NAME_MAX]; /* of the switch, "" without */
    struct plan_row *row;
    int n_rows, cap_rows;
    struct plan_times pred; /* step_ns includes exposed switch time and what comes once a step */
    /* By a replay: the slowest rank's times, over the repeats, and the largest error of any output
     * against the reference, relative to the largest output. */
    bool is_measured;
    struct plan_times meas_p50, meas_p95;
    int64_t meas_first_ns; /* step_ns of the first of the repeats; 0: not said */
    double check_error;
};

struct plan {
    struct plan_header header;
    struct plan_step *step;
    int n, cap;
};

/* One line each, with the line end. */
void plan_write_header(FILE *out, const struct plan_header *h);
void plan_write_step(FILE *out, const struct plan_step *s);

/* Read a whole plan; strict: unknown keys, kinds, layouts and versions are errors with FILE:LINE,
 * as are rows whose owner is no rank, q > ctx, steps out of order, a switch from a layout to itself
 * and negative times. Lines may be measured ones. Layout names are checked by form (a
 * known layout kind), not against a model. */
int plan_load(struct plan *p, const char *path, struct err *err);
int plan_save(const struct plan *p, const char *path, struct err *err);
/* The layouts that steps run under or come from, in order of appearance, as "tp,helix:kvp=2,tpa=1";
 * to be freed. */
char *plan_layouts(const struct plan *p);
void plan_release(struct plan *p);
void plan_step_release(struct plan_step *s);

#endif
