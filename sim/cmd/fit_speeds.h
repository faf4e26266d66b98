/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank fit of a table of speeds: fits, writes and prints.
 */
#ifndef SIM_CMD_FIT_SPEEDS_H
#define SIM_CMD_FIT_SPEEDS_H

#include "sim/cmd/fit_output.h"
#include "sim/study/speeds.h"

/* Write the profile and what goes with it; its collectives, if fitted, beside it. */
int fit_speeds(const struct speeds *s, const struct profile *base, const struct fit_destination *to,
               struct err *err);

#endif
