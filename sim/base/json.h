/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict reading of JSON objects on top of Jansson: every error names the file and the key path,
 * every key must be asked for (an unknown one is refused with a "did you mean"), duplicates are
 * refused, numbers are finite and inside the range that the caller states.
 */
#ifndef SIM_BASE_JSON_H
#define SIM_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "sim/base/err.h"

enum { JOBJ_KEYS_MAX = 64 };

/* A cursor over one object; lives on the caller's stack, borrows everything. */
struct jobj {
    const char *file; /* for messages */
    const struct jobj *up;
    const char *key; /* of this object in `up`, or NULL at the root */
    int index;       /* in an array under `key`, or -1 */
    json_t *obj;
    int n_asked;
    const char *asked[JOBJ_KEYS_MAX];
};

/* Load one JSON document. Returns a new reference, or NULL with "FILE:LINE: what". Refuses
 * directories, empty files and duplicate keys. */
json_t *json_load_path(const char *path, struct err *err);

/* Open `value` (borrowed) as the root object. Fails when it is no object. */
int jobj_root(struct jobj *o, const char *file, json_t *value, struct err *err);

/* Open the object under `key`. Returns 1 when there, 0 when absent and !required, -1 on error. */
int jobj_open(struct jobj *o, struct jobj *up, const char *key, bool required, struct err *err);

/* Open element i of the array under `key` (an array of objects). */
int jobj_open_at(struct jobj *o, struct jobj *up, const char *key, size_t i, struct err *err);

/* Typed reads. With `required` false an absent key leaves *out alone. 0 or -1. Integers may be
 * written as reals without a fraction (1e6). */
int jobj_f64(struct jobj *o, const char *key, bool required, double min, double max, double *out,
             struct err *err);
int jobj_i64(struct jobj *o, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
             struct err *err);
int jobj_int(struct jobj *o, const char *key, bool required, int min, int max, int *out,
             struct err *err);
int jobj_bool(struct jobj *o, const char *key, bool required, bool *out, struct err *err);
/* Borrowed string, valid while the document lives. */
int jobj_str(struct jobj *o, const char *key, bool required, const char **out, struct err *err);
/* One of `names`; writes its index. */
int jobj_enum(struct jobj *o, const char *key, bool required, const char *const *names, int n,
              int *out, struct err *err);
/* Borrowed array or any value; NULL when absent and !required. */
int jobj_array(struct jobj *o, const char *key, bool required, json_t **out, struct err *err);
int jobj_any(struct jobj *o, const char *key, bool required, json_t **out, struct err *err);

/* Fail with "FILE: .a.b.key: TEXT"; for checks that only the caller can make. A NULL key means the
 * object itself. */
int jobj_fail(const struct jobj *o, const char *key, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Refuse keys that nobody asked for. Call it once per object, last. */
int jobj_done(const struct jobj *o, struct err *err);

/* A number for output: rounded to 9 significant digits, so that text is short and stable when
 * dumped with JSON_REAL_PRECISION(9). Asserts that x is finite. */
json_t *json_num(double x);

#endif
