/* SPDX-License-Identifier: Apache-2.0
 *
 * Fitting a profile to measured plans. Stage by stage, the parameters of docs/calibration.md are
 * chosen so that the squared relative errors of sim/cost's own predictions are least over the steps
 * without a switch (the transfers': over the blocking switches, the interference's: over overlapped
 * ones). What the data do not say keeps the
 * base profile's value.
 */
#ifndef SIM_STUDY_FIT_H
#define SIM_STUDY_FIT_H

#include "sim/cost/cost.h"
#include "sim/plan/plan.h"

enum fit_stage {
    FIT_PROJ,
    FIT_ATTN_DECODE,  /* steps that only decode */
    FIT_ATTN_PREFILL, /* steps with a chunk of a prompt */
    FIT_FFN,
    FIT_EXCHANGE,
    FIT_REST,     /* the step less its stages; errors are relative to the step */
    FIT_TRANSFER, /* exposed time of blocking switches that move something */
    FIT_OVERLAP,  /* what overlapped ones add to the step, over target-ready ones of the batch */
    FIT_STAGE_COUNT
};

extern const char *const fit_stage_names[FIT_STAGE_COUNT]; /* "proj", "attn_decode", ... */

/* One measured step. */
struct fit_step {
    struct batch batch;
    struct batch_item *item;         /* the batch's, owned */
    int layout;                      /* index in fit_data */
    int from;                        /* -1 unless it switches */
    bool blocks, overlaps, is_ready; /* by mechanism; ready: target-ready, by free */
    struct plan_times meas;          /* median of the repeats */
    int64_t added_ns; /* of an overlapped switch: the step's time over that of the median
                         target-ready step of the batch; 0 without any */
};

struct fit_source {
    char *path;
    struct plan_header header;
    int steps, without_switch, unmeasured;
};

/* Measured steps of one model on one machine. */
struct fit_data {
    const struct model *model;
    const struct cluster *cluster;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct fit_step *step;
    size_t n, cap;
    struct fit_source *source;
    size_t n_sources, cap_sources;
    /* Collectives measured by themselves; without any, no operation has a curve. */
    struct collective_table collectives;
    char *collectives_said; /* "FILE: what it says it is"; NULL without any */
};

/* No steps yet. Borrows both. */
void fit_data_init(struct fit_data *d, const struct model *m, const struct cluster *c);
void fit_data_release(struct fit_data *d);
/* Add the measured lines of a plan. Refuses another model, other layers or ranks, layouts that this
 * model cannot have, and a file in which nothing is measured. */
int fit_data_load(struct fit_data *d, const char *path, struct err *err);
/* Take collectives measured by themselves (hw/collective.h, by name or path): of the operations
 * that it has over the cluster's ranks, steps then say only the latency. Refuses a table without
 * any. */
int fit_data_load_collectives(struct fit_data *d, const char *name_or_path, struct err *err);
/* Once all are loaded: what overlapped switches add. */
void fit_data_compare(struct fit_data *d);

/* What of a profile a parameter sets. */
enum fit_target {
    FIT_LAUNCH,    /* launch_us of a stage */
    FIT_HBM,       /* hbm_frac of a stage, everywhere */
    FIT_FLOP,      /* flop_frac of a stage at one size */
    FIT_MERGE,     /* attention.merge_us */
    FIT_COMBINE,   /* attention.combine_us */
    FIT_SPILL,     /* attention.spill_frac */
    FIT_IMBALANCE, /* expert_imbalance */
    FIT_LATENCY,   /* us of a collective at its smallest */
    FIT_BANDWIDTH, /* GB/s of a collective's growth up to 1 GiB */
    FIT_LAYER_LAUNCH,
    FIT_STEP_LAUNCH,
    FIT_REPACK,
    FIT_REGROUP,
    FIT_WEIGHTS_FACTOR,
    FIT_KV_FACTOR,
    FIT_BESIDE,
    FIT_LINK_INTERFERENCE,
    FIT_REGROUP_INTERFERENCE
};

enum fit_state {
    FIT_FITTED,
    FIT_BOUNDED, /* the data only say that it is no further on the base's side */
    FIT_KEPT,    /* not in the data: the base's value */
    FIT_SET      /* follows from a convention, see docs/calibration.md */
};

struct fit_param {
    char name[48]; /* "proj.flop_frac[256]" */
    enum fit_stage stage;
    enum fit_target target;
    int which;   /* enum profile_stage or enum collective */
    double size; /* of FIT_FLOP */
    double low, high, base, value;
    double sigma; /* one standard deviation, from the curvature; 0 unless fitted */
    enum fit_state state;
};

/* Errors, predicted / measured - 1, of some steps. */
struct fit_errors {
    int n;
    double abs_p50, abs_p95, abs_mean, mean;
};

/* Sum up n errors, which become their sizes in ascending order. */
struct fit_errors fit_errors_of(double *error, int n);

enum { FIT_PARAMS_MAX = 96, FIT_STEP = FIT_STAGE_COUNT, FIT_KINDS = FIT_STAGE_COUNT + 1 };

struct fit {
    struct profile profile; /* what was fitted; its name is the base's until the caller sets it */
    bool fits_collectives;  /* its collectives are not the base's */
    struct fit_param param[FIT_PARAMS_MAX];
    int n_params;
    /* By stage, FIT_STEP being the whole step without a switch, and by layout; the last column is
     * all of them. */
    struct fit_errors errors[FIT_KINDS][LAYOUT_MAX + 1];
    /* The same of every fifth step of each layout, by a second fit that did not see them. */
    struct fit_errors held_out[FIT_KINDS][LAYOUT_MAX + 1];
};

/* What follows from how a replay does attention, whatever is measured. */
void fit_as_replayed(struct attention_profile *a);

/* Fit to everything, then once more without every fifth step of each layout. Fails when no step
 * without a switch is measured. Same data, same bytes. */
int fit_run(struct fit *f, const struct fit_data *d, const struct profile *base, struct err *err);
void fit_release(struct fit *f);

/* What the profile's "source" says: one line a measured file, the sizes that they cover, and what
 * was kept of the base. Free each line and the array. */
char **fit_sources(const struct fit *f, const struct fit_data *d, const struct profile *base,
                   int *n);

#endif
