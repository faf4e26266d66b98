/* SPDX-License-Identifier: Apache-2.0
 *
 * The course of a run in bounded memory: time in equal bins, of all groups together. When the run
 * outgrows the bins, two become one, so that sums stay exact and no extreme is lost, however long
 * it is.
 */
#ifndef SIM_REPORT_COURSE_H
#define SIM_REPORT_COURSE_H

#include <jansson.h>

#include "sim/engine/engine.h"

enum { COURSE_BINS = 1024 };

enum course_quantity {
    COURSE_QUEUE,
    COURSE_DECODE,  /* requests of the batch that decode */
    COURSE_PREFILL, /* and that have a prefill chunk */
    COURSE_CTX_TOKENS,
    COURSE_KV_FRAC, /* of the fullest rank */
    COURSE_QUANTITIES
};

/* Of the steps that ran in a bin. */
struct course_range {
    double area_ps; /* sum of value x time */
    double min, max;
};

/* Switches or wishes for one: how many, and of them the one that stands out. */
struct course_event {
    int64_t n, at_ps, exposed_ps;
    int group, from, to;
    struct weighed why;
};

struct course_bin {
    int64_t busy_ps, exposed_ps;
    int64_t layout_ps[LAYOUT_MAX];
    struct course_range range[COURSE_QUANTITIES];
    struct course_event switched; /* the costliest */
    struct course_event refused;  /* memory forbade it: the one that led by most */
};

/* All switches from one layout to another; likewise wishes. */
struct course_direction {
    int64_t n, forced, exposed_ps, most_exposed_ps;
    int64_t weighed; /* of these, and their leads */
    double lead_sum, lead_min, lead_max;
    int64_t refused;
    double refused_lead_max;
};

struct course {
    int64_t bin_ps;
    int n_bins; /* up to the last that was touched */
    struct course_bin bin[COURSE_BINS];
    struct course_direction direction[LAYOUT_MAX][LAYOUT_MAX];
    int n_groups;
    int *wanted; /* of each group, last; -1: nothing */
};

/* By how much of the step the other layout was faster; NAN where nothing was weighed, or the
 * layout of before could not go on. */
double course_lead(const struct weighed *w);

struct course *course_new(int n_groups);
void course_free(struct course *c);
/* An engine_observer's span(). */
void course_span(struct course *c, const struct span_record *r);

/* {"policy", "bin_s", "columns", "rows", "switches", "refusals"} with a row per bin, and in the
 * other two, which are such tables again, one per bin that has any; docs/report.md has the columns.
 */
json_t *course_json(const struct course *c, const char *policy, const struct layout *layouts,
                    int n_layouts);

#endif
