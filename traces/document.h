/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that are JSON documents: one that takes the whole file, or one on each line. Messages name
 * the file, the line where there is one document a line, and the key path.
 */
#ifndef TRACES_DOCUMENT_H
#define TRACES_DOCUMENT_H

#include "sim/base/json.h"
#include "traces/reader.h"

struct document {
    const char *place; /* "FILE" or "FILE:LINE", for jobj_root() */
    long line;         /* 0 where the document takes the whole file */
    json_t *root;      /* borrowed */
};

/* `add` for each document. A line is one when it ends with the bracket that its first one asks for;
 * else all that is left is one. */
int document_each(struct trace *t, struct lines *l,
                  int (*add)(struct trace *t, const struct document *d, struct err *err),
                  struct err *err);

/* Whether the key is there and not null. */
bool document_has(const struct jobj *o, const char *key);
/* Seconds as picoseconds: 1 and *ps, 0 when it is absent or null, -1 on error. */
int document_seconds(struct jobj *o, const char *key, int64_t *ps, struct err *err);
/* Tokens from 0 to TRACE_TOKENS_MAX under the first of two keys that is there: 1 and *tokens, 0
 * when both are absent or null, -1 on error. */
int document_tokens(struct jobj *o, const char *key, const char *older, int64_t *tokens,
                    struct err *err);

/* Stir what a value holds into a digest, which begins as DOCUMENT_DIGEST. */
#define DOCUMENT_DIGEST 0xCBF29CE484222325u
void document_digest(const json_t *value, uint64_t *digest);

#endif
