/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile as a page speaks of it: how sure its numbers are, and where they come from.
 */
#ifndef SIM_CMD_PROFILE_ABOUT_H
#define SIM_CMD_PROFILE_ABOUT_H

#include "hw/catalog.h"

struct profile_about {
    struct catalog_doc doc;
    char text[128];       /* "b200-analytic: efficiencies assumed, not measured" */
    const json_t *source; /* array of strings, or NULL */
};

/* By name or path. One that cannot be read is named all the same. Must not be moved. */
void profile_about_open(struct profile_about *p, const char *profile);
void profile_about_close(struct profile_about *p);

#endif
