/* SPDX-License-Identifier: Apache-2.0
 *
 * A study: every setting on every draw, or successive halving: all settings on a ninth of each
 * trace, the best third of them on a third, the best third of those on all of it (K. Jamieson and
 * A. Talwalkar, AISTATS 2016, with eta = 3). Runs that the store has are not repeated.
 */
#ifndef SIM_TUNE_STUDY_H
#define SIM_TUNE_STUDY_H

#include "sim/tune/grid.h"
#include "sim/tune/run_store.h"
#include "sim/tune/scores.h"
#include "sim/tune/team.h"

enum { STUDY_RUNGS_MAX = 3, STUDY_KEEP = 3 };
#define STUDY_RUNS_MAX 1000000

struct study {
    /* what is asked for; all borrowed */
    const struct grid *grid;
    const int64_t *point; /* of each setting, ascending */
    int64_t n;
    struct draw_set draws;
    int rungs; /* 1, or STUDY_RUNGS_MAX to halve */
    const struct formula *objective;
    /* what came of it */
    struct rung {
        bool *in; /* settings that ran */
        struct metrics *run;
    } rung[STUDY_RUNGS_MAX];
    int64_t made, found; /* runs, and those that the store had */
    uint64_t wall_ns;    /* of the runs made, together */
};

/* A run: setting, draw and rung as one number. */
struct study_job {
    int64_t setting;
    int draw, rung;
};
struct study_job study_job(const struct study *s, int64_t job);
/* By how much a rung's traces are cut: 9, 3, 1. */
int study_cut(const struct study *s, int rung);
/* Runs that it takes in all. */
int64_t study_runs(const struct study *s);

/* Of a run to the store: its key, and what else but metrics and time its row has. */
typedef int study_label_fn(void *context, int64_t job, struct run_row *row, struct err *err);

/* Run it, on rank 0. `store` may be NULL. Release it in any case. */
int study_run(struct study *s, struct team *team, struct run_store *store, study_label_fn *label,
              void *context, struct err *err);
void study_release(struct study *s);

/* Scores of a rung; the last rung's decide. */
void study_scores(const struct study *s, int rung, struct scores *scores);
/* The setting that has a grid's point, or -1. */
int64_t study_find(const struct study *s, int64_t point);

#endif
