/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine that a command works on: model, cluster, profile and layouts as the options name
 * them, and the cost model compiled from these.
 */
#ifndef SIM_CMD_SETUP_H
#define SIM_CMD_SETUP_H

#include <stdio.h>

#include "sim/base/opt.h"
#include "sim/cost/cost.h"

struct setup_options {
    const char *model, *cluster, *profile, *layouts;
};

/* Rows for a command's option table; `base` is the offset of a struct setup_options. */
/* clang-format off */
#define SETUP_MACHINE_OPTS(base)                                                                   \
    {"model", 0, OPT_STR, (base) + offsetof(struct setup_options, model),                          \
     "NAME", NULL, 0, 0, NULL, "model, by name or path (wavetank list models)"},                   \
    {"cluster", 0, OPT_STR, (base) + offsetof(struct setup_options, cluster),                      \
     "NAME", NULL, 0, 0, NULL, "cluster, by name or path (wavetank list clusters)"},               \
    {"profile", 0, OPT_STR, (base) + offsetof(struct setup_options, profile),                      \
     "NAME", NULL, 0, 0, NULL, "profile instead of the cluster's own (wavetank list profiles)"}
#define SETUP_LAYOUTS_OPT(base)                                                                    \
    {"layouts", 0, OPT_STR, (base) + offsetof(struct setup_options, layouts),                      \
     "LIST", "tp,cp,dp,dop", 0, 0, NULL, "candidate layouts; a policy starts in the first"}
/* clang-format on */

struct setup {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    struct cost *cost;
};

/* Load everything and compile the cost model. Must not be moved afterwards. On failure nothing is
 * held. */
int setup_load(struct setup *s, const struct setup_options *o, int64_t page_tokens,
               struct err *err);
void setup_release(struct setup *s);

/* The lines on model, cluster and profile that open a command's report. */
void setup_print(const struct setup *s, FILE *out);

#endif
