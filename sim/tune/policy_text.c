/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/policy_text.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

struct items {
    char **item;
    int n;
    size_t cap;
};

static size_t key_length(const char *item)
{
    return strcspn(item, "=");
}

static bool is_plain(const char *item)
{
    size_t len = key_length(item);
    return len > 0 && item[len] == '=' && strcspn(item, ":") >= len;
}

/* One "key=value" as all are written. */
static char *spell(const char *item)
{
    size_t len = key_length(item), stem = strcspn(item, ".=");
    char *end, *copy = xstrdup(item);
    for (size_t i = 0; i < stem; i++) /* the '-' in margin.tp-dp stays */
        if (copy[i] == '-')
            copy[i] = '_';
    double x = strtod(copy + len + 1, &end);
    if (*end != '\0' || end == copy + len + 1 || !isfinite(x))
        return copy;
    char *made = xasprintf("%.*s=%.9g", (int)len, copy, x);
    free(copy);
    return made;
}

/* In its place by key, instead of one with the same key. */
static void put(struct items *list, const char *item)
{
    char *made = spell(item);
    size_t len = key_length(made) + 1;
    int at = 0;
    while (at < list->n && strncmp(list->item[at], made, len) < 0)
        at++;
    if (at < list->n && strncmp(list->item[at], made, len) == 0) {
        free(list->item[at]);
    } else {
        list->item = xgrow(list->item, &list->cap, (size_t)list->n + 1, sizeof *list->item);
        memmove(&list->item[at + 1], &list->item[at], (size_t)(list->n - at) * sizeof *list->item);
        list->n++;
    }
    list->item[at] = made;
}

/* Of "a=1,b=2"; false when some item is not of that form. */
static bool put_all(struct items *list, const char *options)
{
    char *copy = xstrdup(options), *rest = copy, *item;
    bool plain = true;
    while (plain && (item = strtok_r(rest, ",", &rest)) != NULL) {
        plain = is_plain(item);
        if (plain)
            put(list, item);
    }
    free(copy);
    return plain;
}

char *policy_text(const char *text, const char *const *added, int n)
{
    struct items list = {0};
    size_t head = strcspn(text, ":"), size;
    bool plain = text[head] == '\0' || put_all(&list, text + head + 1);
    char *made;
    FILE *f = open_memstream(&made, &size);
    assert(f != NULL);
    fprintf(f, "%.*s", (int)(plain ? head : strlen(text)), text);
    for (int i = 0; i < n; i++)
        if (plain)
            put(&list, added[i]);
        else
            fprintf(f, ",%s", added[i]);
    for (int i = 0; i < list.n; i++) {
        if (plain)
            fprintf(f, "%c%s", i == 0 ? ':' : ',', list.item[i]);
        free(list.item[i]);
    }
    free(list.item);
    fclose(f);
    return made;
}
