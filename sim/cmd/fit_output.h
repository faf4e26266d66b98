/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fit writes: a profile under its own name, with its collectives beside it where they
 * are not the base's.
 */
#ifndef SIM_CMD_FIT_OUTPUT_H
#define SIM_CMD_FIT_OUTPUT_H

#include "hw/catalog.h"
#include "hw/profile.h"
#include "sim/report/fit_html.h"

/* Where a fit goes to. All borrowed. */
struct fit_destination {
    const char *name, *path; /* of the profile */
    FILE *profile, *page;    /* page: NULL without --report */
    bool page_is_stdout;     /* which then has no tables */
    struct page_about about; /* of the page, but for the profile's sources */
};

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

/* Write the profile with its n lines of "source", which are freed, and the page; print `text`,
 * which the tables are. */
int fit_output_write(const struct fit_destination *to, const struct profile *p, char **source,
                     int n, const char *text, const struct fit_pairs *pairs, struct err *err);

#endif
