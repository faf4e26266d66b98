/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are part of the program: the pages of `serve`, and the chart library where the build
 * had it ("make charts"). embed.sh writes the table from the files themselves.
 */
#ifndef SIM_WEB_ASSET_H
#define SIM_WEB_ASSET_H

#include <stddef.h>

struct asset {
    const char *name; /* "index.html" */
    const char *type; /* for Content-Type */
    const unsigned char *data;
    size_t len; /* bytes; a NUL that is not counted follows */
};

extern const struct asset assets[]; /* ends with a NULL name */

/* NULL when the build has no such file. */
const struct asset *asset_find(const char *name);

#endif
