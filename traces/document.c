/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/document.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"

#define SECONDS_MAX ((double)TRACE_SPAN_MAX_PS / 1e12)

static bool is_whole(const struct lines *l)
{
    size_t len = l->len;
    while (len > 0 && strchr(" \t", l->line[len - 1]) != NULL)
        len--;
    char first = l->line[strspn(l->line, " \t")];
    char last = first;
    if (len > 0)
        last = l->line[len - 1];
    return (first == '{' && last == '}') || (first == '[' && last == ']');
}

static json_t *parse_line(const struct lines *l, struct err *err)
{
    json_error_t fault;
    json_t *root = json_loadb(l->line, l->len, JSON_REJECT_DUPLICATES, &fault);
    if (root == NULL)
        err_at(err, l->path, l->number, "column %d: %s", fault.column, fault.text);
    return root;
}

/* 1: another one was added, 0: the end, -1: error. */
static int add_next(struct trace *t, struct lines *l,
                    int (*add)(struct trace *, const struct document *, struct err *),
                    struct err *err)
{
    int got = reader_next(l, err);
    if (got <= 0)
        return got;
    struct document d = {.line = is_whole(l) ? l->number : 0};
    char *place = d.line > 0 ? xasprintf("%s:%ld", l->path, d.line) : xstrdup(l->path);
    if (d.line == 0)
        lines_unread(l);
    d.place = place;
    d.root = d.line > 0 ? parse_line(l, err) : reader_json(l, err);
    int rc = d.root != NULL ? add(t, &d, err) : -1;
    json_decref(d.root);
    free(place);
    return rc < 0 ? -1 : 1;
}

int document_each(struct trace *t, struct lines *l,
                  int (*add)(struct trace *t, const struct document *d, struct err *err),
                  struct err *err)
{
    int got;
    while ((got = add_next(t, l, add, err)) > 0)
        continue;
    return got;
}

bool document_has(const struct jobj *o, const char *key)
{
    json_t *value = json_object_get(o->obj, key);
    return value != NULL && !json_is_null(value);
}

int document_seconds(struct jobj *o, const char *key, int64_t *ps, struct err *err)
{
    double seconds = 0;
    if (!document_has(o, key))
        return 0;
    if (jobj_f64(o, key, true, 0, SECONDS_MAX, &seconds, err) < 0)
        return -1;
    *ps = ps_from_s(seconds);
    return 1;
}

/* FNV-1a. */
static int hash_text(const char *text, size_t len, void *digest)
{
    uint64_t h = *(uint64_t *)digest;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001B3u;
    *(uint64_t *)digest = h;
    return 0;
}

void document_digest(const json_t *value, uint64_t *digest)
{
    json_dump_callback(value, hash_text, digest, JSON_COMPACT | JSON_ENCODE_ANY);
}

int document_tokens(struct jobj *o, const char *key, const char *older, int64_t *tokens,
                    struct err *err)
{
    const char *there = document_has(o, key) ? key : older;
    if (!document_has(o, there))
        return 0;
    return jobj_i64(o, there, true, 0, TRACE_TOKENS_MAX, tokens, err) < 0 ? -1 : 1;
}
