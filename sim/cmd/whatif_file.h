/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of `wavetank whatif`: a base scenario and named variations, each of which is the base
 * with some options set anew (docs/whatif.md).
 */
#ifndef SIM_CMD_WHATIF_FILE_H
#define SIM_CMD_WHATIF_FILE_H

#include "sim/cmd/plan_recorder.h"
#include "sim/cmd/scenario.h"

struct whatif_options {
    struct scenario_options run; /* checked; of one policy */
    const char *trace;
    double slo_attained_frac, price_per_gpu_hour;
    struct plan_options plan; /* read and left alone: a result's scenario has them */
};

struct whatif_case {
    const char *name; /* "base" for the first */
    json_t *set;      /* what the variation says, borrowed; NULL: the base */
    struct whatif_options options;
};

struct whatif_file {
    json_t *document; /* strings are borrowed from it */
    struct whatif_case *item;
    int n;
};

/* Load and check every case; "FILE: .variations[1].set: .key: what" on error. Release it in any
 * case. */
int whatif_file_load(struct whatif_file *f, const char *path, struct err *err);
void whatif_file_release(struct whatif_file *f);

/* Every option of a case, as a new object. */
json_t *whatif_options_dump(const struct whatif_options *o);

#endif
