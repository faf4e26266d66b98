/* SPDX-License-Identifier: Apache-2.0
 *
 * How the sections add their rows, and what those sections are. The paper's value is the text in
 * its table, which says how many decimals it was printed with.
 */
#ifndef SIM_REPRODUCE_ROWS_H
#define SIM_REPRODUCE_ROWS_H

#include "sim/reproduce/reproduction.h"

/* Ours is printed with as many decimals. */
void rows_exact(struct reproduction *r, const char *paper, double ours, const char *id, ...)
    __attribute__((format(printf, 4, 5)));
/* Words. */
void rows_exact_text(struct reproduction *r, const char *paper, const char *ours, const char *id,
                     ...) __attribute__((format(printf, 4, 5)));
/* Met when the error is at most `goal_frac`, or half a unit of the paper's last digit. Returns
 * whether it is. */
bool rows_predicted(struct reproduction *r, const char *paper, double ours, double goal_frac,
                    const char *id, ...) __attribute__((format(printf, 5, 6)));
/* A figure about other rows or a constant that was fitted; `ok` says whether it meets `goal`. */
void rows_figure(struct reproduction *r, double ours, double goal, bool ok, const char *id, ...)
    __attribute__((format(printf, 5, 6)));
/* What the paper has and we have no model of: no error. */
void rows_unpredicted(struct reproduction *r, const char *paper, const char *id, ...)
    __attribute__((format(printf, 3, 4)));

/* From `low` to `high`, as one assumption is varied; `note` says where that is the paper's value.
 */
void rows_scanned(struct reproduction *r, const char *paper, double low, double high,
                  const char *note, const char *id, ...) __attribute__((format(printf, 6, 7)));

typedef int section_fn(struct reproduction *r, struct err *err);
section_fn reproduce_projections, reproduce_kv_bytes, reproduce_loads, reproduce_pools;
section_fn reproduce_regimes, reproduce_manifest;
section_fn reproduce_primitives, reproduce_switches, reproduce_throughput;
section_fn reproduce_end_to_end;
section_fn reproduce_roofline, reproduce_overlap_example, reproduce_frontiers, reproduce_ablation;
section_fn reproduce_assumptions;

/* A section before it is computed; `about` as in struct section. */
struct section_source {
    const char *name, *title, *about;
    section_fn *run;
};

enum { HELIX_SECTIONS = 5 };
extern const struct section_source helix_sections[HELIX_SECTIONS];

#endif
