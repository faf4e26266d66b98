/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fit writes: a profile under its own name, with its collectives beside it where they
 * are not the base's.
 */
#ifndef SIM_CMD_FIT_OUTPUT_H
#define SIM_CMD_FIT_OUTPUT_H

#include "hw/catalog.h"
#include "hw/profile.h"

/* Name the profile as given, or (NULL) as its file `output` less ".json". */
int fit_output_name(const char *name, const char *output, char out[CATALOG_NAME_SIZE],
                    struct err *err);

/* Whether collectives must be written, though the base's: its table is a path of its own, which
 * would not be found from the new file. */
bool fit_output_moves_collectives(const struct profile *base);

/* Write the profile's collectives as NAME.csv beside `output`, with `head` (lines that begin with
 * '#') above them, and give the profile that name for them. */
int fit_output_collectives(struct profile *p, const char *output, const char *head,
                           struct err *err);

/* Write the profile; frees its n lines of "source" and the array. */
void fit_output_profile(const struct profile *p, char **source, int n, FILE *out);

#endif
