/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout is two ownership choices: how the attention projections are sharded and who holds the KV
 * of a request. Everything else (footprint, loads, exchanges, switches) is derived from the fields
 * of `struct layout`; no code asks for a layout by name.
 */
#ifndef SIM_LAYOUT_LAYOUT_H
#define SIM_LAYOUT_LAYOUT_H

#include <stdbool.h>

#include "hw/model.h"
#include "sim/base/err.h"

enum { LAYOUT_MAX = 16, RANKS_MAX = 128, SUB_BATCHES_MAX = 8 };

enum layout_kind { LAYOUT_TP, LAYOUT_CP, LAYOUT_DP, LAYOUT_DOP, LAYOUT_HELIX, LAYOUT_KIND_COUNT };

extern const char *const layout_kind_names[LAYOUT_KIND_COUNT]; /* "tp", "cp", "dp", ... */

struct layout {
    enum layout_kind kind; /* for names and reports only */
    char name[40];         /* as one writes it, defaults left out: "dop:cache=0.25" */
    int ranks;             /* T */

    /* Projections, sharded by head. */
    int in_shards;            /* Q-B and KV-B, or Q: T for tp and dop, TPA for helix, else 1 */
    int kv_in_shards;         /* K and V of GQA: in_shards, but at most K */
    int out_shards;           /* O: T for tp, dop and helix, else 1 */
    double full_weights_frac; /* DOP-P: this share of the layers, from the first, keeps full ones
                                 too */

    /* KV of one request. */
    bool kv_owned;       /* one rank holds the request: dp, dop */
    int kv_head_shards;  /* head axis: min(T, K) for tp, TPA for helix, else 1 */
    int kv_pos_shards;   /* position axis: T for cp, KVP for helix, else 1 */
    int kv_layer_shards; /* layer axis: T for cp:storage=layer, else 1 */

    /* Attention work. */
    int attn_head_shards; /* heads of one request are split so many ways: T for tp, TPA for helix */
    int attn_pos_shards;  /* its positions: T for cp (also when stored by layer), KVP for helix */
    bool rows_owned;      /* hidden rows live with their owner between stages: dp, dop:rows=owned */
    int sub_batches; /* HOP-B: decode attends to so many parts of the batch in turn, each part's
                        results travelling beside the next one's attention; 1: no overlap */
};

/* Parse "tp", "cp", "cp:storage=layer", "dp", "dop", "dop:cache=0.25", "dop:rows=owned",
 * "helix:kvp=4,tpa=2" or "helix:kvp=4,tpa=2,hopb=4" for T ranks and this model. Refuses, saying
 * why, what cannot be: T outside [1, RANKS_MAX], kvp * tpa != T, tpa > K, hopb outside
 * [1, SUB_BATCHES_MAX] or above 1 with kvp=1, heads that the shards do not divide. */
int layout_parse(struct layout *l, const char *text, const struct model *m, int ranks,
                 struct err *err);

/* Parse a list "tp,cp,dp,dop". Variants keep their commas: "helix:kvp=4,tpa=2,tp" is helix and tp.
 * Duplicates are refused. Returns the count or -1. */
int layout_parse_list(struct layout out[LAYOUT_MAX], const char *text, const struct model *m,
                      int ranks, struct err *err);

/* Whether both cut the KV of a request alike: then a rank's pages look the same under both, and
 * what it keeps stays where it is; else an engine whose pages follow the cut groups it anew. */
bool layout_cuts_kv_alike(const struct layout *a, const struct layout *b);

/* The layout as linear-attention (KDA) layers see it. Their recurrent state has a head axis and
 * sits whole at an owner, so an owner needs their whole projections: dop's linear layers are dp's.
 * (This is what the pools of SPLASH Table 3 show for GLM-5.3-Flash: DOP - DP is the MLA layers'
 * alone.) */
struct layout layout_of_linear(const struct layout *l);

/* The layout as the layers that keep full projections see it (full_weights_frac of DOP-P). */
struct layout layout_of_cached(const struct layout *l);

#endif
