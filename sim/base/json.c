/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"

enum { PATH_BYTES = 256 };

json_t *json_load_path(const char *path, struct err *err)
{
    struct stat st;
    json_error_t fault;
    json_t *root = NULL;
    if (stat(path, &st) != 0)
        err_set(err, "%s: cannot open: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        err_set(err, "%s: is a directory, expected a JSON file", path);
    else if (S_ISREG(st.st_mode) && st.st_size == 0)
        err_set(err, "%s: is empty, expected a JSON object", path);
    else if ((root = json_load_file(path, JSON_REJECT_DUPLICATES, &fault)) == NULL)
        err_at(err, path, fault.line, "%s", fault.text);
    return root;
}

static const char *type_name(const json_t *value)
{
    static const char *const name[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return name[json_typeof(value)];
}

/* Writes ".a.b[2]" for the object, "" for the root; returns the length, cut to fit. */
static size_t write_path(const struct jobj *o, char *buf, size_t size)
{
    buf[0] = '\0';
    if (o->up == NULL)
        return 0;
    size_t used = write_path(o->up, buf, size);
    int n = o->index < 0 ? snprintf(buf + used, size - used, ".%s", o->key)
                         : snprintf(buf + used, size - used, ".%s[%d]", o->key, o->index);
    used += (size_t)n;
    return used < size ? used : size - 1;
}

int jobj_fail(const struct jobj *o, const char *key, struct err *err, const char *fmt, ...)
{
    char path[PATH_BYTES], text[512];
    size_t used = write_path(o, path, sizeof path);
    if (key != NULL)
        snprintf(path + used, sizeof path - used, ".%s", key);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(err, "%s: %s%s%s", o->file, path, path[0] ? ": " : "", text);
}

static bool was_asked(const struct jobj *o, const char *key)
{
    for (int i = 0; i < o->n_asked; i++)
        if (strcmp(o->asked[i], key) == 0)
            return true;
    return false;
}

/* A missing key is most often a misspelt one, so name the unread key that comes nearest. */
static void fail_missing(const struct jobj *o, const char *key, struct err *err)
{
    const char **unread = xcalloc(json_object_size(o->obj), sizeof *unread);
    int n = 0;
    const char *present;
    json_t *value;
    json_object_foreach (o->obj, present, value) {
        if (!was_asked(o, present))
            unread[n++] = present;
    }
    const char *near = err_nearest(key, unread, n);
    if (near != NULL)
        jobj_fail(o, key, err, "required key is missing (is it misspelt as \"%s\"?)", near);
    else
        jobj_fail(o, key, err, "required key is missing");
    free(unread);
}

/* 1 and *value when the key is there, 0 when it may be absent, -1 on error. */
static int get(struct jobj *o, const char *key, bool required, json_t **value, struct err *err)
{
    if (!was_asked(o, key)) {
        assert(o->n_asked < JOBJ_KEYS_MAX);
        o->asked[o->n_asked++] = key;
    }
    json_t *found = json_object_get(o->obj, key);
    if (found != NULL) {
        *value = found;
        return 1;
    }
    if (!required)
        return 0;
    fail_missing(o, key, err);
    return -1;
}

int jobj_root(struct jobj *o, const char *file, json_t *value, struct err *err)
{
    if (!json_is_object(value))
        return err_set(err, "%s: must be a JSON object, got %s", file, type_name(value));
    *o = (struct jobj){.file = file, .index = -1, .obj = value};
    return 0;
}

static int open_value(struct jobj *o, struct jobj *up, const char *key, int index, json_t *value,
                      struct err *err)
{
    struct jobj opened = {.file = up->file, .up = up, .key = key, .index = index, .obj = value};
    if (!json_is_object(value))
        return jobj_fail(&opened, NULL, err, "must be an object, got %s", type_name(value));
    *o = opened;
    return 0;
}

int jobj_open(struct jobj *o, struct jobj *up, const char *key, bool required, struct err *err)
{
    json_t *value;
    int there = get(up, key, required, &value, err);
    if (there <= 0)
        return there;
    return open_value(o, up, key, -1, value, err) < 0 ? -1 : 1;
}

int jobj_open_at(struct jobj *o, struct jobj *up, const char *key, size_t i, struct err *err)
{
    json_t *array = NULL;
    if (jobj_array(up, key, true, &array, err) < 0)
        return -1;
    if (i >= json_array_size(array))
        return jobj_fail(up, key, err, "has %zu elements, needs at least %zu",
                         json_array_size(array), i + 1);
    return open_value(o, up, key, (int)i, json_array_get(array, i), err);
}

int jobj_f64(struct jobj *o, const char *key, bool required, double min, double max, double *out,
             struct err *err)
{
    json_t *value;
    int there = get(o, key, required, &value, err);
    if (there <= 0)
        return there;
    if (!json_is_number(value))
        return jobj_fail(o, key, err, "must be a number, got %s", type_name(value));
    double x = json_number_value(value);
    char range[64];
    if (!(x >= min && x <= max))
        return jobj_fail(o, key, err, "must be %s, got %.15g",
                         units_range(min, max, range, sizeof range), x);
    *out = x;
    return 0;
}

/* Whether the value is a whole number that int64_t holds exactly. */
static bool is_whole(const json_t *value)
{
    double x = json_real_value(value);
    return json_is_integer(value) || (json_is_real(value) && x == rint(x) && fabs(x) <= 0x1p53);
}

/* 1 and *out, 0 when the key may be absent, -1 on error. */
static int read_whole(struct jobj *o, const char *key, bool required, int64_t min, int64_t max,
                      int64_t *out, struct err *err)
{
    json_t *value;
    int there = get(o, key, required, &value, err);
    if (there <= 0)
        return there;
    if (json_is_real(value) && !is_whole(value))
        return jobj_fail(o, key, err, "must be a whole number, got %.15g", json_real_value(value));
    if (!is_whole(value))
        return jobj_fail(o, key, err, "must be a whole number, got %s", type_name(value));
    int64_t x =
        json_is_integer(value) ? json_integer_value(value) : (int64_t)json_real_value(value);
    char range[64];
    if (x < min || x > max)
        return jobj_fail(o, key, err, "must be %s, got %lld",
                         units_range((double)min, (double)max, range, sizeof range), (long long)x);
    *out = x;
    return 1;
}

int jobj_i64(struct jobj *o, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
             struct err *err)
{
    return read_whole(o, key, required, min, max, out, err) < 0 ? -1 : 0;
}

int jobj_int(struct jobj *o, const char *key, bool required, int min, int max, int *out,
             struct err *err)
{
    int64_t x = 0;
    int there = read_whole(o, key, required, min, max, &x, err);
    if (there == 1)
        *out = (int)x;
    return there < 0 ? -1 : 0;
}

int jobj_bool(struct jobj *o, const char *key, bool required, bool *out, struct err *err)
{
    json_t *value;
    int there = get(o, key, required, &value, err);
    if (there <= 0)
        return there;
    if (!json_is_boolean(value))
        return jobj_fail(o, key, err, "must be true or false, got %s", type_name(value));
    *out = json_is_true(value);
    return 0;
}

int jobj_str(struct jobj *o, const char *key, bool required, const char **out, struct err *err)
{
    json_t *value;
    int there = get(o, key, required, &value, err);
    if (there <= 0)
        return there;
    if (!json_is_string(value))
        return jobj_fail(o, key, err, "must be a string, got %s", type_name(value));
    *out = json_string_value(value);
    return 0;
}

int jobj_enum(struct jobj *o, const char *key, bool required, const char *const *names, int n,
              int *out, struct err *err)
{
    const char *word = NULL;
    if (jobj_str(o, key, required, &word, err) < 0)
        return -1;
    if (word == NULL)
        return 0;
    char list[256] = "";
    for (int i = 0; i < n; i++) {
        if (strcmp(word, names[i]) == 0) {
            *out = i;
            return 0;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return jobj_fail(o, key, err, "must be one of %s, got \"%s\"", list, word);
}

int jobj_array(struct jobj *o, const char *key, bool required, json_t **out, struct err *err)
{
    json_t *value;
    if (jobj_any(o, key, required, &value, err) < 0)
        return -1;
    if (value != NULL && !json_is_array(value))
        return jobj_fail(o, key, err, "must be an array, got %s", type_name(value));
    *out = value;
    return 0;
}

int jobj_any(struct jobj *o, const char *key, bool required, json_t **out, struct err *err)
{
    json_t *value = NULL;
    if (get(o, key, required, &value, err) < 0)
        return -1;
    *out = value;
    return 0;
}

int jobj_done(const struct jobj *o, struct err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (o->obj, key, value) {
        if (was_asked(o, key))
            continue;
        const char *near = err_nearest(key, o->asked, o->n_asked);
        if (near != NULL)
            return jobj_fail(o, key, err, "unknown key (did you mean \"%s\"?)", near);
        return jobj_fail(o, key, err, "unknown key");
    }
    return 0;
}

json_t *json_num(double x)
{
    assert(isfinite(x));
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);
    /* adding zero turns -0 into 0 */
    return json_real(strtod(text, NULL) + 0.0);
}
