/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

enum { SLOTS_FIRST = 16 };

/* FNV-1a. */
static uint64_t hash_of(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (const char *c = name; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001B3u;
    return h ^ (h >> 32);
}

/* Where the name is or would go. */
static uint32_t *find_slot(const struct names *s, const char *name)
{
    size_t i = hash_of(name);
    while (s->slot[i & (s->slots - 1)] != 0 &&
           strcmp(s->name[s->slot[i & (s->slots - 1)] - 1], name) != 0)
        i++;
    return &s->slot[i & (s->slots - 1)];
}

static void grow(struct names *s)
{
    s->slots = s->slots > 0 ? 2 * s->slots : SLOTS_FIRST;
    free(s->slot);
    s->slot = xcalloc(s->slots, sizeof *s->slot);
    for (size_t i = 0; i < s->n; i++)
        *find_slot(s, s->name[i]) = (uint32_t)i + 1;
}

int32_t names_number(struct names *s, const char *name)
{
    if (2 * (s->n + 1) > s->slots)
        grow(s);
    uint32_t *slot = find_slot(s, name);
    if (*slot == 0) {
        assert(s->n < INT32_MAX);
        s->name = xgrow(s->name, &s->cap, s->n + 1, sizeof *s->name);
        s->name[s->n++] = xstrdup(name);
        *slot = (uint32_t)s->n;
    }
    return (int32_t)*slot - 1;
}

int32_t names_find(const struct names *s, const char *name)
{
    return s->slots > 0 ? (int32_t)*find_slot(s, name) - 1 : -1;
}

void names_release(struct names *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->name[i]);
    free(s->name);
    free(s->slot);
    *s = (struct names){0};
}
