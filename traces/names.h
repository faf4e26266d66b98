/* SPDX-License-Identifier: Apache-2.0
 *
 * Names numbered from 0 in order of first appearance.
 */
#ifndef TRACES_NAMES_H
#define TRACES_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. */
struct names {
    char **name;
    size_t n, cap;
    uint32_t *slot; /* of a hash table, at most half full: a number plus one; 0: free */
    size_t slots;
};

/* The name's number; it gets one when it is new. */
int32_t names_number(struct names *s, const char *name);
/* -1 when it has none. */
int32_t names_find(const struct names *s, const char *name);
void names_release(struct names *s);

#endif
