/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank fit of a table of speeds: fits, writes and prints.
 */
#ifndef SIM_CMD_FIT_SPEEDS_H
#define SIM_CMD_FIT_SPEEDS_H

#include "sim/study/speeds.h"

/* Write the profile, called `name`, to `out`, which is the file `output`; its collectives, if
 * fitted, beside it; the tables to stdout. */
int fit_speeds(const struct speeds *s, const struct profile *base, const char *name,
               const char *output, FILE *out, struct err *err);

#endif
