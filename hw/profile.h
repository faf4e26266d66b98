/* SPDX-License-Identifier: Apache-2.0
 *
 * Profile theta: what a machine reaches of its peaks, per stage, and its fixed times. An "analytic"
 * profile states efficiencies; a "measured" one comes from calibration. hw/profiles/NAME.json.
 */
#ifndef HW_PROFILE_H
#define HW_PROFILE_H

#include "hw/collective.h"

enum { PROFILE_POINTS_MAX = 24 };

/* A fraction of peak as a function of a size: linear in log2(size) between points, flat outside. */
struct efficiency {
    int n;
    double size[PROFILE_POINTS_MAX], frac[PROFILE_POINTS_MAX];
    double log2_size[PROFILE_POINTS_MAX]; /* by efficiency_init() */
};

enum profile_stage {
    STAGE_PROJ,
    STAGE_ATTN_PREFILL,
    STAGE_ATTN_DECODE,
    STAGE_FFN,
    STAGE_HEAD,
    STAGE_COUNT
};

extern const char *const profile_stage_names[STAGE_COUNT]; /* "proj", "attn_prefill", ... */

struct stage_profile {
    /* Of device_tflops; size = rows per rank (decode attention: heads per rank). */
    struct efficiency flop_frac;
    /* Of hbm_gb_per_s; size = context tokens for attention, rows else. */
    struct efficiency hbm_frac;
    /* Of one layer, whatever the sizes: launches, tails, merging. The head's is not used. */
    double launch_us;
};

enum mla_prefill {
    MLA_EXPANDED, /* K and V of the whole context are made from the latent again in every chunk */
    MLA_ABSORBED  /* against the latent, as in decode */
};

/* What ranks that hold parts of a context's positions do. */
enum position_rows {
    POSITIONS_SPLIT,  /* a prompt's rows, and hidden rows where projections are whole, are split
                         alike */
    POSITIONS_PARTIAL /* every rank has all rows; partial results meet, a prompt's as decode's */
};

/* How the engine does attention. */
struct attention_profile {
    enum mla_prefill mla_prefill;
    enum position_rows positions;
    int row_tokens;    /* what a query row costs beside the tokens that it sees, in tokens */
    double merge_us;   /* a layer, of one of the parts that SMs leave of a row */
    double combine_us; /* a layer, of combining ranks' partial results besides reading them */
    double spill_frac; /* by which a prompt takes longer where L2 has nothing of its context */
};

struct profile {
    char name[48], kind[16]; /* kind: "analytic", "measured" or "fitted" */
    struct stage_profile stage[STAGE_COUNT];
    struct attention_profile attention;
    double layer_launch_us;  /* per layer: launches that nothing hides (t0 of Eq. 10) */
    double step_launch_us;   /* per step: scheduler, sampling, graph launch */
    double overlap_frac;     /* eta of Eq. 10: share of attention time that may hide exchange */
    double expert_imbalance; /* busiest EP rank over the mean, >= 1 */
    struct {
        double weights_factor, kv_factor; /* network time over the bare collective's */
        /* Shares of HBM bandwidth. 0: it is not done. */
        double repack_hbm_frac;  /* what arrives is put together with what was there */
        double regroup_hbm_frac; /* KV that stays goes to pages of the new cut */
        /* A layer's transfer beside the computation of the layer before: */
        double beside_frac; /* its speed, over that when nothing else runs */
        /* What computation that HBM paces loses, over the time in HBM of what passes the network
         * (read here, written there) and of what is grouped anew. */
        double link_interference, regroup_interference;
    } transfer;
    struct collective_table collectives;
    char collectives_name[96]; /* as the file names them */
};

/* Load by name or path. The file's "collectives" names a table, or a path from the file's folder.
 */
int profile_load(struct profile *p, const char *name_or_path, struct err *err);
void profile_release(struct profile *p);

/* Write what profile_load() reads, with these lines as its "source"; the collectives by name. */
void profile_write(const struct profile *p, const char *const *source, int n, FILE *out);

/* Once n, size and frac are set. */
void efficiency_init(struct efficiency *e);

double efficiency_at(const struct efficiency *e, double size);

#endif
