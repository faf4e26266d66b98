/* SPDX-License-Identifier: Apache-2.0
 *
 * What every value of a preset has: its number, and where that comes from. "source" names a paper
 * or a trace, or begins with "assumed:" where the number is ours.
 */
#ifndef WORKLOADS_PRESET_H
#define WORKLOADS_PRESET_H

#include "sim/base/json.h"

#define PRESET_TOKENS_MAX 1e8
#define PRESET_COUNT_MAX  1e6
#define PRESET_SECONDS    1e6

/* Refuse an object without a "source" that says something. */
int preset_source(struct jobj *o, struct err *err);
/* Read {"value":V,"source":"..."} under `key`. */
int preset_f64(struct jobj *up, const char *key, double min, double max, double *out,
               struct err *err);
int preset_i64(struct jobj *up, const char *key, double min, double max, int64_t *out,
               struct err *err);

#endif
