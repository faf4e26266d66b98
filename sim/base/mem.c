/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p, size_t size)
{
    if (p == NULL && size > 0) {
        fprintf(stderr, "out of memory (%zu bytes)\n", size);
        exit(1);
    }
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1), size);
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1), size);
}

char *xstrdup(const char *s)
{
    size_t size = strlen(s) + 1;
    return memcpy(xmalloc(size), s, size);
}

void *xmemdup(const void *array, size_t n, size_t size)
{
    return array != NULL ? memcpy(xmalloc(n * size), array, n * size) : NULL;
}

void *xgrow(void *array, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return array;
    size_t grown = *cap ? *cap : 16;
    while (grown < need)
        grown = grown > SIZE_MAX / 2 ? need : grown * 2;
    if (grown > SIZE_MAX / size)
        checked(NULL, SIZE_MAX);
    array = checked(realloc(array, grown * size), grown * size);
    *cap = grown;
    return array;
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = xmalloc((size_t)len + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, ap);
    va_end(ap);
    return text;
}
