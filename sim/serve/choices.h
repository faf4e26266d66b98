/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator may choose from: models, clusters, profiles, policies, presets of traces and the
 * samples. All by name: the server takes no path from anybody.
 */
#ifndef SIM_SERVE_CHOICES_H
#define SIM_SERVE_CHOICES_H

#include <jansson.h>

#include "sim/base/err.h"

struct choices {
    json_t *json;       /* as GET /api/choices gives it */
    char *text;         /* the same, dumped */
    char samples[4096]; /* the folder of the samples; empty: there is none */
};

/* Reads the data folder once. Afterwards WAVETANK_DATA names it by its absolute path, since workers
 * run elsewhere. */
int choices_load(struct choices *c, struct err *err);
void choices_release(struct choices *c);

/* Is it one of `list` ("models")? An error names what there is. */
int choices_check(const struct choices *c, const char *list, const char *name, struct err *err);
/* The workload that a preset belongs to, borrowed, or NULL. */
const char *choices_workload(const struct choices *c, const char *preset);

/* Text that goes to the simulator and names no file: letters, digits and what policies and lists
 * are written with, and no ending of a file's. */
int choices_check_text(const char *key, const char *text, struct err *err);

#endif
