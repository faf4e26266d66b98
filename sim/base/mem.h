/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that cannot fail: out of memory and overflow end the program with a message, so no
 * caller checks. Everything is freed with free().
 */
#ifndef SIM_BASE_MEM_H
#define SIM_BASE_MEM_H

#include <stddef.h>

void *xmalloc(size_t size);

/* n zeroed elements; n * size is checked. */
void *xcalloc(size_t n, size_t size);

char *xstrdup(const char *s);

/* A copy of n elements in fresh memory; NULL of NULL. */
void *xmemdup(const void *array, size_t n, size_t size);

/* Grow an array of `size`-byte elements to hold at least `need`, doubling; *cap is updated.
 * Returns the array, moved or not. */
void *xgrow(void *array, size_t *cap, size_t need, size_t size);

/* A formatted string in fresh memory. */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
