/* SPDX-License-Identifier: Apache-2.0
 *
 * A mapping: how decode is laid out over GPUs. Layers over `pp` stages; a stage's requests over
 * `dp` replicas of attention, each of kvp x tpa GPUs; its FFN over tpf x ep GPUs. Families (tp, pp,
 * ep, dpa, kvp, helix) are rules on these numbers, in one table; costs read the numbers only.
 */
#ifndef SIM_PARETO_MAPPING_H
#define SIM_PARETO_MAPPING_H

#include <stddef.h>

#include "sim/layout/layout.h"

enum mapping_family {
    FAMILY_TP,    /* one width for attention and FFN; experts over TPF x EP */
    FAMILY_PP,    /* the same in stages */
    FAMILY_EP,    /* attention by request, experts over all GPUs (DeepSeek's own serving) */
    FAMILY_DPA,   /* attention by request, a dense FFN over all GPUs */
    FAMILY_KVP,   /* Medha: KV by position, the FFN on one fixed TP group, nothing overlapped */
    FAMILY_HELIX, /* KV by position, TPA <= K, the FFN over all GPUs */
    FAMILY_COUNT
};

extern const char *const mapping_family_names[FAMILY_COUNT]; /* "tp", "pp", ... */

enum { MAPPING_TEXT_SIZE = 96 };

struct mapping {
    enum mapping_family family;
    int pp, dp, kvp, tpa, tpf, ep;
    int hopb; /* HOP-B: sub-batches whose exchange travels beside the next one's attention */
};

int mapping_gpus(const struct mapping *m);       /* all of them */
int mapping_stage_gpus(const struct mapping *m); /* of a stage: dp x kvp x tpa */
int mapping_ffn_gpus(const struct mapping *m);   /* of a stage that have FFN weights */

/* Whether GPUs do other things while what O and the FFN made is reduced: all families but kvp. */
bool mapping_overlaps(const struct mapping *m);

/* The ownership of a replica's projections and KV, for footprint.h. */
struct layout mapping_layout(const struct mapping *m, const struct model *model);

/* "helix:kvp=8,tpa=8,tpf=64,hopb=4": what is 1 is left out. Returns `text`. */
char *mapping_text(const struct mapping *m, char text[MAPPING_TEXT_SIZE]);

/* Parse the same. Refuses, saying why, what mapping_check() refuses. */
int mapping_parse(struct mapping *m, const char *text, const struct model *model, struct err *err);

/* Whether the family's rules hold and the model can be cut so: heads in equal shares, KV heads in
 * equal shares or equal copies, no more EP ranks than experts, stages than layers. */
int mapping_check(const struct mapping *m, const struct model *model, struct err *err);

/* Every possible mapping of the families in `families` (bit 1 << family) on just `gpus` GPUs with
 * hopb = 1, in a fixed order, appended to *list, which is xgrow'n; *n and *cap follow. */
void mapping_enumerate(const struct model *model, unsigned families, int gpus,
                       struct mapping **list, size_t *n, size_t *cap);

#endif
